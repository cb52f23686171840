"""Runs the commands that are polled."""

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from collectors.parsed import SourceUnavailable

_SHOWN_BYTES = 500


@contextmanager
def output(command: Sequence[str], timeout_s: float) -> Iterator[BinaryIO]:
    """Provide what a command prints, which may be more than fits into memory.

    Raises:
        SourceUnavailable: it cannot be run, takes too long or says that it failed.
    """
    with tempfile.TemporaryFile() as printed:
        run(command, timeout_s, printed)
        printed.seek(0)
        yield printed


def run(command: Sequence[str], timeout_s: float, printed: BinaryIO) -> None:
    """Run a command that writes its output to a file itself.

    Raises:
        SourceUnavailable: it cannot be run, takes too long or says that it failed.
    """
    with tempfile.TemporaryFile() as complaints:
        try:
            status = subprocess.run(  # noqa: S603  (the admin's command)
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=complaints,
                timeout=timeout_s,
                check=False,
            ).returncode
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise SourceUnavailable(f"{command[0]}: {error}") from error
        if status:
            complaints.seek(0)
            reason = complaints.read(_SHOWN_BYTES).decode(errors="replace").strip()
            raise SourceUnavailable(f"{command[0]} ended with status {status}: {reason}")
