"""Progress of the loading of the simulated year, for the terminal and for the pages of staff.

The loading process writes a small file each second. An older file belongs to a process that ended.
"""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Self

from ioportal.demo.centre import YEAR

if TYPE_CHECKING:
    from pathlib import Path

FILE: Path = YEAR / "progress.json"
_WRITTEN_EVERY_S = 1.0
_VALID_S = 15.0  # a busy machine writes late
_RATE_OVER_S = 120.0
_LONGEST = 200  # characters
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400
_KNOWN_AFTER_S = 60.0  # of work at a steady rate: then the time left can be estimated
_STEADY = 2.0  # times faster or slower in the second half of that time, at most


@dataclass
class Progress:
    """The work of a phase, which is written to the file while the context is open.

    Args:
        phase: what happens, such as "Loading the simulated year".
        total: all work, in bytes; 0: unknown.
    """

    phase: str = ""
    total: int = 0
    done: int = 0

    def __post_init__(self) -> None:
        self.begin(self.phase, self.total)
        self._stop = Event()
        self._writer = Thread(target=self._write_until_stopped, daemon=True)

    def begin(self, phase: str, total: int = 0) -> None:
        """Begin a phase."""
        self.phase, self.total, self.done, self._begun = phase, total, 0, time.monotonic()
        self._marks = deque([(self._begun, 0)])  # times and work done, of the latest minutes

    def __enter__(self) -> Self:
        self._writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._writer.join()
        FILE.unlink(missing_ok=True)

    def text(self) -> str:
        """Return the progress in words, for a page."""
        if not self.total:
            return f"{self.phase}."
        return f"{self.phase}: {100 * self._share:.0f} %{self._left}."

    def status(self) -> str:
        """Return the progress with its rate, for a terminal."""
        if not self.total:
            return f"{self.phase}: {_duration(time.monotonic() - self._begun)} so far"
        return f"{self.phase}: {100 * self._share:.0f} %, {self._rate / 1e6:.1f} MB/s{self._left}"

    @property
    def _share(self) -> float:
        return self.done / self.total

    @property
    def _rate(self) -> float:
        """Bytes per second in the latest minutes: files that were loaded before are skipped."""
        at, done = self._marks[0]
        return (self.done - done) / max(time.monotonic() - at, 1.0)

    @property
    def _left(self) -> str:
        if not self._is_steady:
            return ""
        return f", about {_duration((self.total - self.done) / self._rate)} left"

    @property
    def _is_steady(self) -> bool:
        now = time.monotonic()
        begin, done = self._marks[0]
        middle, half = min(self._marks, key=lambda mark: abs(mark[0] - (begin + now) / 2))
        if now - begin < _KNOWN_AFTER_S or not begin < middle < now or half == done:
            return False
        earlier, later = (half - done) / (middle - begin), (self.done - half) / (now - middle)
        return earlier / _STEADY <= later <= earlier * _STEADY

    def mark(self) -> None:
        """Note the time and the work done, from which the rate follows."""
        now = time.monotonic()
        self._marks.append((now, self.done))
        while self._marks[1][0] <= now - _RATE_OVER_S:
            self._marks.popleft()

    def _write_until_stopped(self) -> None:
        while not self._stop.is_set():
            self.mark()
            new = FILE.with_suffix(".new")
            new.write_text(json.dumps({"text": self.text(), "status": self.status()}))
            new.replace(FILE)
            self._stop.wait(_WRITTEN_EVERY_S)


def current_text() -> str:
    """Return the progress of a running process in words; "": no process loads the year."""
    try:
        if time.time() - FILE.stat().st_mtime > _VALID_S:
            return ""
        return str(json.loads(FILE.read_text())["text"])[:_LONGEST]
    except (OSError, ValueError, KeyError, TypeError):  # none, or a damaged one
        return ""


def _duration(seconds: float) -> str:
    if seconds < _MINUTE_S / 2:
        return f"{seconds:.0f} s"
    for size, unit in ((_DAY_S, "days"), (_HOUR_S, "hours")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    minutes = round(seconds / _MINUTE_S)
    return f"{minutes} minutes" if minutes > 1 else "a minute"
