"""Recognise and stop the processes of this checkout, and no others."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.checkout import Problem, say

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 120  # PostgreSQL replays its log after a crash, and may write much on shutdown
POLL_S = 0.05


@dataclass(frozen=True)
class OwnProcess:
    """A long-running process, recognised by its program and its working directory.

    No other process uses the folder, so a stale pid file with a reused number has no effect.
    """

    name: str
    folder: Path
    pid_file_name: str
    programs: tuple[str, ...]  # possible names in /proc/PID/comm

    @property
    def pid_file(self) -> Path:
        return self.folder / self.pid_file_name

    def owns(self, pid: int) -> bool:
        """Return whether process `pid` is this process or its child."""
        process = Path("/proc", str(pid))
        try:
            program = (process / "comm").read_text().strip()
            return program in self.programs and (process / "cwd").samefile(self.folder)
        except OSError:
            return False

    def recorded_pid(self) -> int | None:
        """Return the number in the pid file; its process may have ended."""
        try:
            return int(self.pid_file.read_text().split(maxsplit=1)[0])
        except (FileNotFoundError, ValueError, IndexError):
            return None

    def pid(self) -> int | None:
        """Return the process id while it runs."""
        pid = self.recorded_pid()
        return pid if pid is not None and self.owns(pid) else None

    def wait_after_crash(self) -> None:
        """After a crash: wait for the end of child processes, so that a new start succeeds."""
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
        leftovers = [pid for pid in pids if self.owns(pid)]
        wait_until(
            lambda: not any(map(self.owns, leftovers)),
            otherwise=f"{self.name} was killed, and its processes do not end: {leftovers}",
        )
        # A server handles its stale pid file itself, unless another process has the number.
        if Path("/proc", str(self.recorded_pid())).exists():
            self.pid_file.unlink()

    def stop(self) -> None:
        """Stop the process, and wait for its end."""
        pid = self.pid()
        if pid is None:
            return
        say(f"Stopping {self.name}")
        os.kill(pid, signal.SIGINT)  # PostgreSQL's fast shutdown: closes sessions without data loss
        wait_until(
            lambda: not self.owns(pid), otherwise=f"{self.name} (process {pid}) does not stop"
        )


def wait_until(condition: Callable[[], bool], *, otherwise: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise Problem(otherwise)
        time.sleep(POLL_S)
