"""A load with low cost: one second of a trace, written repeatedly with new times."""

from __future__ import annotations

from time import sleep, time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path
    from threading import Event

    from numpy.typing import NDArray

_HEADER = b"00000100:00100000:"  # followed by processor and time: "6.0:1499349600.123456:"
_SECOND_DIGITS, _MICROSECOND_DIGITS = 10, 6
_MICROSECONDS = 1_000_000
_ROTATED_EVERY_S = 20
_ROTATED_KEPT = 4


class Written(NamedTuple):
    """Number of lines of a log at a time."""

    at: float  # epoch seconds
    lines: int


class Load:
    """Lines at a constant rate.

    Args:
        trace: the lines of one second; only their times are replaced.
    """

    def __init__(self, trace: Path) -> None:
        self._bytes = np.frombuffer(trace.read_bytes(), dtype=np.uint8).copy()
        ends = np.flatnonzero(self._bytes == ord("\n"))
        begins = np.concatenate([[0], ends[:-1] + 1])
        colons = np.flatnonzero(self._bytes == ord(":"))
        self._times = colons[np.searchsorted(colons, begins + len(_HEADER))] + 1
        self.rate = len(ends)
        microseconds = np.arange(self.rate) * _MICROSECONDS // self.rate
        self._put(self._times + _SECOND_DIGITS + 1, microseconds, _MICROSECOND_DIGITS)

    def write(self, log: Path, seconds: int, written: list[Written], stop: Event) -> None:
        """Write each second when it is over; record the time of each write."""
        first = int(time()) + 1
        for n in range(seconds):
            sleep(max(0.0, first + n + 1 - time()))
            if stop.is_set():
                return
            self._put(self._times, np.full(self.rate, first + n), _SECOND_DIGITS)
            with log.open("ab") as file:
                file.write(self._bytes.data)
            written.append(Written(time(), (n + 1) * self.rate))
            if n % _ROTATED_EVERY_S == _ROTATED_EVERY_S - 1:
                _rotate(log, n)

    def _put(self, places: NDArray[np.int64], numbers: NDArray[np.int64], digits: int) -> None:
        """Overwrite the digits at some positions with numbers."""
        for n in range(digits):
            self._bytes[places + n] = ord("0") + numbers // 10 ** (digits - 1 - n) % 10


def _rotate(log: Path, number: int) -> None:
    log.rename(f"{log}-{number:06d}")
    for old in sorted(log.parent.glob(f"{log.name}-*"))[:-_ROTATED_KEPT]:
        old.unlink()
