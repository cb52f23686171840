"""One progress line per long step."""

import sys
from time import monotonic

_BEGAN = monotonic()


def say(text: str) -> None:
    """Write a progress line to stderr."""
    sys.stderr.write(f"simulator {monotonic() - _BEGAN:6.1f} s  {text}\n")
