"""Observations on the storage timing of arms: findings and unsupported conclusions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from ioportal.experiments.analysis.storage_timing import TOP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ioportal.experiments.analysis.storage_timing import Counter, Timing

PLAUSIBLE_BYTES_PER_S = 50e6  # of one slot; a link of 1 Gbit/s serves many
SAME_CPU = 0.02  # largest relative difference of equal CPU times
OTHER_WALL = 0.05  # smallest relative difference of wall times worth an explanation
EXPLAINED = 0.1  # largest part of a difference of wall times that reads leave open
_ALWAYS_COUNTED = ("open", "stagein", "read")
_MIB = 2**20
_ORDER = (
    "identical-counters",
    "other-events",
    "share-of-one",
    "reads-and-wall-time",
    "implausible-throughput",
    "reads-and-bytes",
    "equal-cpu",
    "same-reads",
    "wasted-bytes",
    "more-than-wall-time",
    "failed-operations",
    "missing-counters",
    "unknown-events",
)


@dataclass(frozen=True)
class Observation:
    """A statement on arms; a doubt means that a conclusion is not supported."""

    code: str
    text: str
    is_doubt: bool


def observations(
    timings: Sequence[Timing], plausible_bytes_per_s: float = PLAUSIBLE_BYTES_PER_S
) -> list[Observation]:
    """Return what the counters of arms show and cannot show, in the order of `_ORDER`.

    Args:
        timings: one per arm.
        plausible_bytes_per_s: highest plausible read throughput of one run, by site.
    """
    every = [
        *_pairs(timings),
        *_events(timings),
        *(_share(timings[0]) if len(timings) == 1 else ()),
        *(each for one in timings for each in _of_one(one, plausible_bytes_per_s)),
        *_missing_counters(timings),
        *_equal_cpu(timings),
    ]
    return sorted(every, key=lambda each: _ORDER.index(each.code))


def _pairs(timings: Sequence[Timing]) -> Iterator[Observation]:
    for first, other in combinations(timings, 2):
        if not (first.read_operations and other.read_operations):
            continue
        common = [
            (first.counters[key], other.counters[key])
            for key in first.counters.keys() & other.counters.keys()
        ]
        if all(one == two for one, two in common):
            yield Observation("identical-counters", _identical(first, other), is_doubt=True)
        elif _read_the_same(first, other):
            yield Observation("same-reads", _same_reads(first, other), is_doubt=False)
        elif first is timings[0]:
            yield from _changes(first, other)


def _identical(first: Timing, other: Timing) -> str:
    walls = ""
    if first.wall_s and other.wall_s and first.wall_s != other.wall_s:
        walls = f", but wall times of {_s(first.wall_s)} and {_s(other.wall_s)}"
    return (
        f"{first.name} and {other.name} have identical counters, to the last digit of their "
        f"times{walls}. One block repeats the other: no conclusion on storage is possible."
    )


def _read_the_same(first: Timing, other: Timing) -> bool:
    """Return whether two arms performed the same reads of the same bytes."""

    def amounts(each: Timing) -> list[tuple[float | None, ...]]:
        keys = [(TOP, "read"), *((each.protocol, name) for name in ("read", "readv"))]
        return [each.counter(*key).amounts for key in keys]

    return amounts(first) == amounts(other)


def _same_reads(first: Timing, other: Timing) -> str:
    times = ""
    if first.mean_read_s and other.mean_read_s:
        times = (
            f" A read took {_ms(first.mean_read_s)} and {_ms(other.mean_read_s)}: the difference "
            "lies in the storage or the network."
        )
    return (
        f"{first.name} and {other.name} have the same number of reads "
        f"({first.read_operations:,.0f}) and bytes: a different number of events does not explain "
        f"their difference.{times}"
    )


def _changes(first: Timing, other: Timing) -> Iterator[Observation]:
    """Yield the change of reads, and whether it explains the change of wall time."""
    reads, sizes = _known(first, other, "read_operations"), _known(first, other, "read_bytes")
    if reads and sizes:
        yield Observation(
            "reads-and-bytes",
            f"From {first.name} to {other.name}, reads {_direction(reads)} from {reads[0]:,.0f} to "
            f"{reads[1]:,.0f} and bytes {_direction(sizes)} from {_mib(sizes[0])} to "
            f"{_mib(sizes[1])}.",
            is_doubt=False,
        )
    walls, times = _known(first, other, "wall_s"), _known(first, other, "read_s")
    if not (walls and times):
        return
    wall_s, read_s = walls[1] - walls[0], times[1] - times[0]
    if abs(wall_s) < OTHER_WALL * walls[0]:
        return
    explains = abs(wall_s - read_s) <= EXPLAINED * abs(wall_s)
    share = max(min(read_s / wall_s, 1.0), 0.0)
    yield Observation(
        "reads-and-wall-time",
        f"From {first.name} to {other.name}, wall time changed by {_signed_s(wall_s)} and time in "
        f"reads by {_signed_s(read_s)}: reads explain {'' if explains else f'{share:.0%} of '}the "
        "difference.",
        is_doubt=not explains,
    )


def _known(first: Timing, other: Timing, name: str) -> tuple[float, float] | None:
    """Return a figure of both arms; None if either is unknown."""
    before, after = getattr(first, name), getattr(other, name)
    return None if before is None or after is None else (before, after)


def _direction(values: tuple[float, float]) -> str:
    before, after = values
    if after == before:
        return "stayed"
    return "fell" if after < before else "rose"


def _events(timings: Sequence[Timing]) -> Iterator[Observation]:
    known = {each.name: each.events for each in timings if each.events is not None}
    if len(timings) < 2:  # noqa: PLR2004  (nothing to compare)
        return
    if len(set(known.values())) > 1:
        numbers = ", ".join(f"{name} {events:,.0f}" for name, events in known.items())
        yield Observation(
            "other-events",
            f"Arms processed different numbers of events ({numbers}): compare figures per event.",
            is_doubt=True,
        )
    elif len(known) < len(timings):
        unknown = ", ".join(each.name for each in timings if each.name not in known)
        yield Observation(
            "unknown-events",
            f"The number of events is not in the files of {unknown}.",
            is_doubt=True,
        )


def _share(timing: Timing) -> Iterator[Observation]:
    """Yield the part of the run in reads, if there is no arm to compare with."""
    if timing.read_share is None or not timing.read_operations:
        return
    size = (timing.read_bytes or 0) / timing.read_operations
    yield Observation(
        "share-of-one",
        f"{timing.name} spent {timing.read_share:.0%} of its wall time in "
        f"{timing.read_operations:,.0f} reads of {size / 1024:,.1f} KiB on average. Upload a run "
        "with another set-up as a second arm to compare.",
        is_doubt=False,
    )


def _of_one(timing: Timing, plausible_bytes_per_s: float) -> Iterator[Observation]:
    rate = timing.read_bytes_per_s
    if rate is not None and rate > plausible_bytes_per_s:
        yield Observation(
            "implausible-throughput",
            f"{timing.name} read at {rate / _MIB:,.0f} MiB/s ({rate / 1e6:,.0f} MB/s), above the "
            f"{plausible_bytes_per_s / 1e6:,.0f} MB/s that are plausible for one slot behind a "
            "shared link: do not expect it while all slots of a node are in use.",
            is_doubt=True,
        )
    if timing.storage_share is not None and timing.storage_share > 1:
        yield Observation(
            "more-than-wall-time",
            f"{timing.name} spent {timing.storage_share:.0%} of its wall time in storage calls: "
            "calls ran concurrently, or the times belong to another run.",
            is_doubt=True,
        )
    if timing.wasted_bytes:
        logical = timing.counter(TOP, "read").bytes or 0
        yield Observation(
            "wasted-bytes",
            f"{timing.name} read {_mib(timing.read_bytes or 0)} for requests of {_mib(logical)}: "
            f"{_mib(timing.wasted_bytes)} were not needed.",
            is_doubt=False,
        )
    for name in _ALWAYS_COUNTED:
        counter = timing.counter(timing.protocol, name)
        if (failed := _failed(counter)) > 0:
            yield Observation(
                "failed-operations",
                f"{timing.name}: {failed:,.0f} of {counter.operations:,.0f} operations "
                f"{timing.protocol} {name} failed.",
                is_doubt=True,
            )


def _failed(counter: Counter) -> float:
    if counter.operations is None or counter.successes is None:
        return 0
    return counter.operations - counter.successes


def _missing_counters(timings: Sequence[Timing]) -> Iterator[Observation]:
    for timing in timings:
        present = {name for subsystem, name in timing.counters if subsystem == timing.protocol}
        expected = {
            name
            for other in timings
            for subsystem, name in other.counters
            if subsystem == other.protocol and name in _ALWAYS_COUNTED
        }
        if timing.counters and (missing := sorted(expected - present)):
            yield Observation(
                "missing-counters",
                f"{timing.name} has no counters {', '.join(missing)} of {timing.protocol}, which "
                "other arms have: its block is incomplete, or an excerpt.",
                is_doubt=True,
            )


def _equal_cpu(timings: Sequence[Timing]) -> Iterator[Observation]:
    known = [(each.wall_s, each.cpu_s) for each in timings if each.wall_s and each.cpu_s]
    if len(known) < 2:  # noqa: PLR2004  (nothing to compare)
        return
    (low_wall, high_wall), (low_cpu, high_cpu) = (
        (min(values), max(values)) for values in zip(*known, strict=True)
    )
    if high_wall / low_wall - 1 >= OTHER_WALL and high_cpu / low_cpu - 1 <= SAME_CPU:
        yield Observation(
            "equal-cpu",
            f"CPU times agree ({_s(low_cpu)} to {_s(high_cpu)}) while wall times range from "
            f"{_s(low_wall)} to {_s(high_wall)}: the difference is waiting, not computing.",
            is_doubt=False,
        )


def _s(seconds: float) -> str:
    return f"{seconds:,.1f} s"


def _signed_s(seconds: float) -> str:
    return f"{seconds:+,.1f} s".replace("-", "\N{MINUS SIGN}")


def _ms(seconds: float) -> str:
    return f"{1_000 * seconds:.3g} ms"


def _mib(size_bytes: float) -> str:
    return f"{size_bytes / _MIB:,.1f} MiB"
