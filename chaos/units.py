"""Processes as systemd runs them: a unit is restarted when it ends, and leaves nothing behind."""

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
    """What a unit runs.

    All its processes, and no others, work in `folder`: by this they are known, whoever started
    them and whatever they call themselves.
    """

    name: str
    command: Sequence[str]
    folder: Path
    started_in: Path
    environment: Mapping[str, str]
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM


class Unit:
    """A program that is kept running, to be killed, paused and restarted."""

    def __init__(self, program: Program) -> None:
        self.name = program.name
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._ended_at: float | None = None
        self._away_s = RESTART_AFTER_S
        self._killed_at: float | None = None  # when it is, if it has not stopped by then
        self._resumed_at: float | None = None

    def start(self) -> None:
        """Start it; it ends with this process, even if that is killed."""
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
                start_new_session=True,  # Ctrl-C reaches us alone
            )

    def tend(self) -> None:
        """Do what is due: let it go on, put an end to it, or start it again."""
        now = monotonic()
        if self._resumed_at and now >= self._resumed_at:
            self.resume()
        if self._process and self._process.poll() is None:
            if self._killed_at and now >= self._killed_at:
                self._signal(signal.SIGKILL)
        elif self._ended_at is None:
            self._ended_at = now
            self._signal(signal.SIGKILL)  # what it left behind
        elif now >= self._ended_at + self._away_s and not self.pids():
            self.start()

    def kill(self, random: Random) -> bool:
        """Kill its main process or any of it, without a warning; tell whether there was one."""
        pids = self.pids()
        if not pids:
            return False
        self._send(random.choice([self._main(pids), random.choice(pids)]), signal.SIGKILL)
        return True

    def pause(self, seconds: float, *, main_only: bool = False) -> bool:
        """Stop all of it for a while; tell whether there was anything to stop."""
        self._resumed_at = monotonic() + seconds
        pids = self.pids()
        for pid in [self._main(pids)] if main_only and pids else pids:
            self._send(pid, signal.SIGSTOP)
        return bool(pids)

    def resume(self) -> None:
        """Let all of it go on."""
        self._resumed_at = None
        self._signal(signal.SIGCONT)

    def restart(self, away_s: float = RESTART_AFTER_S) -> bool:
        """Ask it to stop, and leave it stopped for a while; tell whether it ran."""
        self._away_s = away_s
        return self._ask_to_stop()

    def stop(self) -> None:
        """Put an end to it."""
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
        """Return its processes."""
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
