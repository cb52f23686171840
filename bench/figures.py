"""Measured figures with goals, from several ways that are timed in turn."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 3
_BEGAN = monotonic()


@dataclass(frozen=True)
class Figure:
    """A measured value; the goal is a lower or an upper bound."""

    name: str
    what: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def goal(self) -> str:
        """The goal as text; "" without a goal."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return f"≤ {self.at_most:g}" if self.at_most is not None else ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return self.value <= self.at_most if self.at_most is not None else None


@dataclass(frozen=True)
class Way:
    """One of several ways to do the same thing; preparation is not timed."""

    run: Callable[[], object]
    prepare: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Timed:
    """The seconds of every way in every round."""

    seconds: dict[str, list[float]]

    def median_s(self, way: str) -> float:
        """Return the median seconds of a way."""
        return median(self.seconds[way])

    def speed_up(self, way: str, peer: str) -> float:
        """Return the median over the rounds of a way's speed relative to its peer.

        Both run in every round one after the other, so that a disturbance of more than a round
        affects both.
        """
        rounds = zip(self.seconds[way], self.seconds[peer], strict=True)
        return median(peer_s / way_s for way_s, peer_s in rounds)


def in_turn(what: str, ways: dict[str, Way]) -> Timed:
    """Run the ways A B C A B C ... for `RUNS` rounds, and report each duration."""
    timed = Timed({name: [] for name in ways})
    for number in range(RUNS):
        for name, way in ways.items():
            way.prepare()
            began = monotonic()
            way.run()
            timed.seconds[name].append(monotonic() - began)
        durations = ", ".join(f"{name} {timed.seconds[name][-1]:.2f} s" for name in ways)
        say(f"{what}, round {number + 1} of {RUNS}: {durations}")
    return timed


def say(text: str) -> None:
    """Write a progress line: the time since the start, the machine's load, and `text`."""
    load = os.getloadavg()[0]
    sys.stderr.write(f"{monotonic() - _BEGAN:6.0f} s  load {load:4.1f}  {text}\n")
