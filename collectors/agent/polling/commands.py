"""Execution of an admin's commands."""

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from collectors.parsed import SourceUnavailable

_SHOWN_BYTES = 500


@contextmanager
def output(command: Sequence[str], timeout_s: float) -> Iterator[BinaryIO]:
    """Provide the output of a command as a file, since it may exceed memory.

    Raises:
        SourceUnavailable: the command cannot be run, times out or fails.
    """
    with tempfile.TemporaryFile() as printed:
        run(command, timeout_s, printed)
        printed.seek(0)
        yield printed


def run(command: Sequence[str], timeout_s: float, printed: BinaryIO) -> None:
    """Run a command that writes directly to a file.

    Raises:
        SourceUnavailable: the command cannot be run, times out or fails.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            status = subprocess.run(  # noqa: S603  (the admin's command)
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=errors,
                timeout=timeout_s,
                check=False,
            ).returncode
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise SourceUnavailable(f"{command[0]}: {error}") from error
        if status:
            errors.seek(0)
            reason = errors.read(_SHOWN_BYTES).decode(errors="replace").strip()
            raise SourceUnavailable(f"{command[0]} exited with status {status}: {reason}")
