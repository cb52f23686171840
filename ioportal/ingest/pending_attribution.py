"""Observed intervals that await attribution: their figures are pending, not zero."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ioportal.ingest.models import DirtyDeltas, DirtyTrace
from ioportal.telemetry.coverage import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


def trace_intervals(
    server_ids: Iterable[int], start: datetime, end: datetime
) -> dict[int, list[Interval]]:
    """Return the intervals of pending traces in a range, in order, by server."""
    rows = DirtyTrace.objects.filter(
        server__in=server_ids, has_rows=False, start__lt=end, end__gte=start
    )
    return _by_source(rows.values_list("server_id", "start", "end"))


def delta_intervals(
    target_ids: Iterable[int], start: datetime, end: datetime
) -> dict[int, list[Interval]]:
    """Return the intervals of pending differences from agents in a range, in order, by target.

    Reads loaded from files are attributed in the same command.
    """
    rows = DirtyDeltas.objects.filter(
        segment__targets__in=target_ids, has_rows=False, start__lt=end, end__gte=start
    )
    return _by_source(rows.values_list("segment__targets", "start", "end"))


def _by_source(rows: Iterable[tuple[int, datetime, datetime]]) -> dict[int, list[Interval]]:
    spans: dict[int, list[Interval]] = defaultdict(list)
    for source, start, end in sorted(rows):
        spans[source].append(Interval(start, end))
    return dict(spans)
