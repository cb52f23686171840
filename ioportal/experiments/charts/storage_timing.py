"""Chart of the storage timing of arms: the wall time by use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.experiments.charts.bars import Segment, stacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.core.charts.time_axis import Figure
    from ioportal.experiments.analysis.storage_timing import Timing

PARTS = ("CPU", "reads", "other waiting")
_LOOKS = (("--series-1", ""), ("--series-2", "/"), ("--series-rest", "."))


def time_shares(timings: Sequence[Timing]) -> list[tuple[float | None, ...]]:
    """Return the shares of the wall time: CPU, reads, other waiting; None: unknown.

    Other waiting is the rest. It is 0 if CPU time and reads overlap.
    """
    shares: list[tuple[float | None, ...]] = []
    for each in timings:
        cpu, reads = each.cpu_share, each.read_share
        rest = None if cpu is None or reads is None else max(1 - cpu - reads, 0.0)
        shares.append((cpu, reads, rest))
    return shares


def wall_time(timings: Sequence[Timing]) -> Figure:
    """Draw the uses of the wall time of each arm in per cent.

    Reads take processor time, too: of reads that overlap it, the part beyond is drawn.

    Args:
        timings: one per arm, from top to bottom.
    """
    drawn = [
        (cpu, reads if cpu is None or reads is None else min(reads, max(1 - cpu, 0.0)), rest)
        for cpu, reads, rest in time_shares(timings)
    ]
    by_part = zip(*drawn, strict=True) if timings else iter(())
    segments = [
        Segment(name, token, [None if share is None else 100 * share for share in shares], pattern)
        for name, (token, pattern), shares in zip(PARTS, _LOOKS, by_part, strict=False)
    ]
    return stacked([each.name for each in timings], segments, "Share of the wall time", "%")
