"""Observations on the storage timing of arms: findings and unsupported conclusions."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from ioportal.experiments.analysis.storage_timing import TOP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ioportal.experiments.analysis.storage_timing import Timing

PLAUSIBLE_BYTES_PER_S = 50e6  # of one slot; a link of 1 Gbit/s serves many
SAME_CPU = 0.02  # largest relative difference of equal CPU times
OTHER_WALL = 0.05  # smallest relative difference of wall times worth an explanation
EXPLAINED = 0.1  # largest part of a difference of wall times that reads leave open
_ALWAYS_COUNTED = ("open", "stagein", "read")
_MIB = 2**20


def observations(
    timings: Sequence[Timing], plausible_bytes_per_s: float = PLAUSIBLE_BYTES_PER_S
) -> list[str]:
    """Return what the counters of arms show and cannot show, the most important first.

    A doubt means that a conclusion is not supported.

    Args:
        timings: one per arm.
        plausible_bytes_per_s: highest plausible read throughput of one run, by site.
    """
    pairs = [
        pair for pair in combinations(timings, 2) if all(each.read_operations for each in pair)
    ]
    identical = [pair for pair in pairs if _are_identical(*pair)]
    same = [pair for pair in pairs if pair not in identical and _read_the_same(*pair)]
    others = [pair for pair in pairs if pair[0] is timings[0] and pair not in identical + same]
    return [
        *(_identical(*pair) for pair in identical),
        *(_share(timings[0]) if len(timings) == 1 else ()),
        *(text for pair in others for text in _explanation(*pair)),
        *(text for each in timings for text in _throughput(each, plausible_bytes_per_s)),
        *_equal_cpu(timings),
        *(_same_reads(*pair) for pair in same),
        *(text for each in timings for text in _calls(each)),
        *_missing_counters(timings),
        *_unknown_events(timings),
    ]


def _are_identical(first: Timing, other: Timing) -> bool:
    common = first.counters.keys() & other.counters.keys()
    return all(first.counters[key] == other.counters[key] for key in common)


def _identical(first: Timing, other: Timing) -> str:
    walls = ""
    if first.wall_s and other.wall_s and first.wall_s != other.wall_s:
        walls = f", but wall times of {_s(first.wall_s)} and {_s(other.wall_s)}"
    return (
        f"Doubt: {first.name} and {other.name} have identical counters, to the last digit of their "
        f"times{walls}. One block repeats the other: no conclusion on storage is possible."
    )


def _read_the_same(first: Timing, other: Timing) -> bool:
    """Return whether two arms performed the same reads of the same bytes."""

    def amounts(each: Timing) -> list[tuple[float | None, ...]]:
        keys = [(TOP, "read"), *((each.protocol, name) for name in ("read", "readv"))]
        counters = [each.counter(*key) for key in keys]
        return [(one.operations, one.successes, one.bytes) for one in counters]

    return amounts(first) == amounts(other)


def _same_reads(first: Timing, other: Timing) -> str:
    times = ""
    first_s, other_s = (each.figures["mean_read_s"] for each in (first, other))
    if first_s and other_s:
        times = (
            f" A read took {1_000 * first_s:.3g} ms and {1_000 * other_s:.3g} ms: the difference "
            "lies in the storage or the network."
        )
    return (
        f"{first.name} and {other.name} have the same number of reads "
        f"({first.read_operations:,.0f}) and bytes: a different number of events does not explain "
        f"their difference.{times}"
    )


def _explanation(first: Timing, other: Timing) -> Iterator[str]:
    """Yield whether the change of reads explains the change of wall time."""
    figures = first.wall_s, other.wall_s, first.read_s, other.read_s
    if any(figure is None for figure in figures):
        return
    before_s, after_s, reads_before_s, reads_after_s = (figure or 0.0 for figure in figures)
    wall_s, read_s = after_s - before_s, reads_after_s - reads_before_s
    if abs(wall_s) < OTHER_WALL * before_s:
        return
    explains = abs(wall_s - read_s) <= EXPLAINED * abs(wall_s)
    share = max(min(read_s / wall_s, 1.0), 0.0)
    yield (
        f"{'' if explains else 'Doubt: '}From {first.name} to {other.name}, wall time changed by "
        f"{_signed_s(wall_s)} and time in reads by {_signed_s(read_s)}: reads explain "
        f"{'' if explains else f'{share:.0%} of '}the difference."
    )


def _unknown_events(timings: Sequence[Timing]) -> Iterator[str]:
    unknown = [each.name for each in timings if each.events is None]
    known = {each.events for each in timings if each.events is not None}
    if unknown and len(timings) > 1 and len(known) < 2:  # noqa: PLR2004  (different numbers)
        yield f"Doubt: The number of events is not in the files of {', '.join(unknown)}."


def _share(timing: Timing) -> Iterator[str]:
    """Yield the part of the run in reads, if there is no arm to compare with."""
    share, size = (timing.figures[name] for name in ("read_share", "mean_read_bytes"))
    if share is not None and timing.read_operations:
        yield (
            f"{timing.name} spent {share:.0%} of its wall time in {timing.read_operations:,.0f} "
            f"reads of {(size or 0) / 1024:,.1f} KiB on average. Upload a run with another set-up "
            "as a second arm to compare."
        )


def _throughput(timing: Timing, plausible_bytes_per_s: float) -> Iterator[str]:
    rate = timing.figures["read_bytes_per_s"]
    if rate is not None and rate > plausible_bytes_per_s:
        yield (
            f"Doubt: {timing.name} read at {rate / _MIB:,.0f} MiB/s ({rate / 1e6:,.0f} MB/s), "
            f"above the {plausible_bytes_per_s / 1e6:,.0f} MB/s that are plausible for one slot "
            "behind a shared link: do not expect it while all slots of a node are in use."
        )


def _calls(timing: Timing) -> Iterator[str]:
    share = timing.figures["storage_share"]
    if share is not None and share > 1:
        yield (
            f"Doubt: {timing.name} spent {share:.0%} of its wall time in storage calls: calls ran "
            "concurrently, or the times belong to another run."
        )
    for name in _ALWAYS_COUNTED:
        counter = timing.counter(timing.protocol, name)
        operations, successes = counter.operations, counter.successes
        if operations is not None and successes is not None and operations > successes:
            yield (
                f"Doubt: {timing.name}: {operations - successes:,.0f} of {operations:,.0f} "
                f"operations {timing.protocol} {name} failed."
            )


def _missing_counters(timings: Sequence[Timing]) -> Iterator[str]:
    counted = {
        each.name: {name for subsystem, name in each.counters if subsystem == each.protocol}
        for each in timings
    }
    expected = set().union(*counted.values()) & set(_ALWAYS_COUNTED)
    for timing in timings:
        if timing.counters and (missing := sorted(expected - counted[timing.name])):
            yield (
                f"Doubt: {timing.name} has no counters {', '.join(missing)} of {timing.protocol}, "
                "which other arms have: its block is incomplete, or an excerpt."
            )


def _equal_cpu(timings: Sequence[Timing]) -> Iterator[str]:
    known = [(each.wall_s, each.cpu_s) for each in timings if each.wall_s and each.cpu_s]
    if len(known) < 2:  # noqa: PLR2004  (nothing to compare)
        return
    (low_wall, high_wall), (low_cpu, high_cpu) = (
        (min(values), max(values)) for values in zip(*known, strict=True)
    )
    if high_wall / low_wall - 1 >= OTHER_WALL and high_cpu / low_cpu - 1 <= SAME_CPU:
        yield (
            f"CPU times agree ({_s(low_cpu)} to {_s(high_cpu)}) while wall times range from "
            f"{_s(low_wall)} to {_s(high_wall)}: the difference is waiting, not computing."
        )


def _s(seconds: float) -> str:
    return f"{seconds:,.1f} s"


def _signed_s(seconds: float) -> str:
    return f"{seconds:+,.1f} s".replace("-", "\N{MINUS SIGN}")
