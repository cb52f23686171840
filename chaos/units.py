"""Processes like systemd units: restarted when they end, without leftovers."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

RESTART_AFTER_S = 0.3
STOP_WITHIN_S = 10.0


@dataclass(frozen=True)
class Program:
    """The program of a unit.

    All of its processes, and no others, work in `folder`. This identifies them, regardless of their
    parent and name.
    """

    name: str
    command: Sequence[str]
    folder: Path
    started_in: Path
    environment: Mapping[str, str]
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM


class Unit:
    """A program that is restarted when it ends, with methods to kill, pause and restart it."""

    def __init__(self, program: Program) -> None:
        self.name = program.name
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._ended_at: float | None = None
        self._away_s = RESTART_AFTER_S
        self._killed_at: float | None = None  # deadline of a stop
        self._resumed_at: float | None = None

    def start(self) -> None:
        """Start the program; it ends with this process, even if that is killed."""
        self._ended_at = self._killed_at = self._resumed_at = None
        self._away_s = RESTART_AFTER_S
        with self._program.log.open("ab") as log:
            self._process = subprocess.Popen(
                ("setpriv", "--pdeathsig", "KILL", *self._program.command),
                cwd=self._program.started_in,
                env=self._program.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches only this process
            )

    def tend(self) -> None:
        """Run due actions: resume, kill or restart the program."""
        now = monotonic()
        if self._resumed_at and now >= self._resumed_at:
            self.resume()
        if self._process and self._process.poll() is None:
            if self._killed_at and now >= self._killed_at:
                self._signal(signal.SIGKILL)
        elif self._ended_at is None:
            self._ended_at = now
            self._signal(signal.SIGKILL)  # leftovers
        elif now >= self._ended_at + self._away_s and not self.pids():
            self.start()

    def kill(self, random: Random) -> bool:
        """Kill its main process or any other; return whether there was one."""
        pids = self.pids()
        if not pids:
            return False
        self._send(random.choice([self._main(pids), random.choice(pids)]), signal.SIGKILL)
        return True

    def kill_child(self, random: Random) -> bool:
        """Kill a process other than the main one; return whether there was one."""
        pids = self.pids()
        children = [pid for pid in pids if pid != self._main(pids)]
        if children:
            self._send(random.choice(children), signal.SIGKILL)
        return bool(children)

    def pause(self, seconds: float, *, main_only: bool = False) -> bool:
        """Pause all processes for some time; return whether there were any."""
        self._resumed_at = monotonic() + seconds
        pids = self.pids()
        for pid in [self._main(pids)] if main_only and pids else pids:
            self._send(pid, signal.SIGSTOP)
        return bool(pids)

    def resume(self) -> None:
        """Resume all processes."""
        self._resumed_at = None
        self._signal(signal.SIGCONT)

    def restart(self, away_s: float = RESTART_AFTER_S) -> bool:
        """Stop the program for some time; return whether it was running."""
        self._away_s = away_s
        return self._ask_to_stop()

    def stop(self) -> None:
        """Stop the program."""
        if self._process is None:
            return
        self._ask_to_stop()
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        self._signal(signal.SIGKILL)

    def pids(self) -> list[int]:
        """Return the process ids."""
        return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and self._owns(p)]

    def _owns(self, process: Path) -> bool:
        try:
            return (process / "cwd").samefile(self._program.folder)
        except OSError:
            return False

    def _main(self, pids: list[int]) -> int:
        return next((pid for pid in pids if _parent(pid) not in pids), pids[0])

    def _ask_to_stop(self) -> bool:
        self.resume()
        pids = self.pids()
        if not pids:
            return False
        self._killed_at = monotonic() + STOP_WITHIN_S
        self._send(self._main(pids), self._program.stop_signal)
        return True

    def _signal(self, number: signal.Signals) -> bool:
        pids = self.pids()
        for pid in pids:
            self._send(pid, number)
        return bool(pids)

    @staticmethod
    def _send(pid: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
