"""Observed intervals of sources. Outside them data is missing, not zero."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.db import connection

from ioportal.telemetry.models import Coverage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime


SHORTEST_GAP = timedelta(minutes=1)  # shorter gaps are not shown: logs rotate within a trace


class Interval(NamedTuple):
    """[start, end)."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        """Length in seconds, as a difference of epoch seconds.

        Tools with comparable rates compute it in the same way, to a quarter of a microsecond:
        39,012 RPCs from .211385 to .774394 are 69,291.96 per second.
        """
        return self.end.timestamp() - self.start.timestamp()


_TRACED = """
SELECT lower(r), upper(r) FROM unnest((
    SELECT range_agg(tstzrange(greatest(start, %(start)s), least("end", %(end)s)))
    FROM telemetry_coverage
    WHERE source = %(source)s AND source_id = ANY(%(ids)s)
        AND tstzrange(start, "end", '[]') && tstzrange(%(start)s, %(end)s, '()')
)) r
"""

# For many sources. Adjacent rows of one source are joined, and so are two reads within its poll
# gap: counters are cumulative, so two reads observe the time between them unless entries may have
# been dropped. Intervals from agents are complete.
_BY_SOURCE = """
WITH observed AS (
    SELECT c.source_id, c.start, c."end", max(c."end") OVER (
        PARTITION BY c.source_id ORDER BY c.start, c."end"
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) + CASE
        WHEN c."end" = c.start
            AND lag(c."end" = c.start) OVER (PARTITION BY c.source_id ORDER BY c.start, c."end")
        THEN sources.gap ELSE interval '0'
    END AS reached
    FROM unnest(%(ids)s::int[], %(gaps)s::interval[]) AS sources(id, gap)
    JOIN telemetry_coverage c ON c.source = %(source)s AND c.source_id = sources.id
        AND tstzrange(c.start, c."end", '[]')
            && tstzrange(%(start)s - sources.gap, %(end)s + sources.gap, '[]')
),
numbered AS (
    SELECT *, count(*) FILTER (WHERE start > reached)
        OVER (PARTITION BY source_id ORDER BY start, "end") AS island
    FROM observed
)
SELECT source_id, min(start), max("end")
FROM numbered
GROUP BY source_id, island
HAVING min(start) < %(end)s AND max("end") > greatest(min(start), %(start)s)
ORDER BY source_id, min(start)
"""


# Per source the last observing row: a trace, or a read with another read shortly before it.
_LAST = """
SELECT sources.id, latest."end"
FROM unnest(%(ids)s::int[], %(gaps)s::interval[]) AS sources(id, gap)
CROSS JOIN LATERAL (
    SELECT c."end" FROM telemetry_coverage c
    WHERE c.source = %(source)s AND c.source_id = sources.id AND (
        c."end" > c.start OR EXISTS (
            SELECT 1 FROM telemetry_coverage earlier
            WHERE earlier.source = c.source AND earlier.source_id = c.source_id
                AND earlier.start < c.start AND earlier.start >= c.start - sources.gap
        )
    )
    ORDER BY c.start DESC LIMIT 1
) latest
"""


# The bins of a long range with a read or an interval from an agent: one index probe per bin,
# independent of the number of reads.
_READ_IN_BINS = """
SELECT sources.id, array_agg(bins.number)
FROM unnest(%(ids)s::int[]) AS sources(id)
CROSS JOIN generate_series(0, %(count)s - 1) AS bins(number)
CROSS JOIN LATERAL (
    SELECT c."end" FROM telemetry_coverage c
    WHERE c.source = %(source)s AND c.source_id = sources.id
        AND c.start < %(start)s + (bins.number + 1) * %(width)s
    ORDER BY c.start DESC, c."end" DESC LIMIT 1
) latest
WHERE latest."end" >= %(start)s + bins.number * %(width)s
GROUP BY sources.id
"""


def contiguous(servers: Iterable[int]) -> dict[int, timedelta]:
    """Return poll gaps of 0 for the traces of servers: traces have no polls."""
    return dict.fromkeys(servers, timedelta(0))


def polled(servers: Iterable[int]) -> dict[int, timedelta]:
    """Return the poll gaps of the service statistics of servers."""
    return dict.fromkeys(servers, settings.POLL_GAP)


def last_observed(
    source: Coverage.Source, poll_gaps: Mapping[int, timedelta]
) -> dict[int, datetime]:
    """Return the latest observation of each source; sources without any are omitted.

    Args:
        source: the kind of observation.
        poll_gaps: maximum distance between two reads without a gap, by source.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LAST, _sources(source, poll_gaps))
        return dict(cursor.fetchall())


def by_source(
    source: Coverage.Source, poll_gaps: Mapping[int, timedelta], start: datetime, end: datetime
) -> list[tuple[int, Interval]]:
    """Return the observed intervals of each source that overlap [start, end), in order.

    Intervals are not cut at the range. A single read of counters observes nothing.

    Args:
        source: the kind of observation.
        poll_gaps: maximum distance between two reads without a gap, by source.
        start: start of the range.
        end: end of the range.
    """
    if not poll_gaps:
        return []
    values = _sources(source, poll_gaps)
    values |= {"start": start, "end": end}
    with connection.cursor() as cursor:
        cursor.execute(_BY_SOURCE, values)
        return [(source_id, Interval(*interval)) for source_id, *interval in cursor.fetchall()]


def traced(server_ids: Collection[int], start: datetime, end: datetime) -> list[Interval]:
    """Return the parts of [start, end) in which at least one of the servers was traced."""
    if start >= end or not server_ids:
        return []
    values: dict[str, Any] = {
        "source": Coverage.Source.RPC_TRACE.value,
        "ids": list(server_ids),
        "start": start,
        "end": end,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TRACED, values)
        return [Interval(*interval) for interval in cursor.fetchall()]


def read_in_bins(
    source: Coverage.Source, ids: Collection[int], start: datetime, width: timedelta, count: int
) -> dict[int, set[int]]:
    """Return the numbers of the bins of `width` in which each target was read or polled.

    Targets without reads are omitted. Bins must not be shorter than the time between two reads.
    """
    values: dict[str, Any] = {"source": source.value, "ids": list(ids)}
    with connection.cursor() as cursor:
        cursor.execute(_READ_IN_BINS, values | {"start": start, "width": width, "count": count})
        return {target: set(numbers) for target, numbers in cursor.fetchall()}


def gaps(observed: Iterable[Interval], start: datetime, end: datetime) -> list[Interval]:
    """Return the parts of [start, end) outside `observed`, which is in order."""
    parts, since = [], start
    for interval in observed:
        if interval.start >= end:
            break
        if interval.start > since:
            parts.append(Interval(since, interval.start))
        since = max(since, interval.end)
    if since < end:
        parts.append(Interval(since, end))
    return parts


def joined(observed: list[Interval]) -> list[Interval]:
    """Join intervals that overlap or are less than `SHORTEST_GAP` apart."""
    intervals: list[Interval] = []
    for interval in sorted(observed):
        if intervals and interval.start - intervals[-1].end < SHORTEST_GAP:
            intervals[-1] = Interval(intervals[-1].start, max(intervals[-1].end, interval.end))
        else:
            intervals.append(interval)
    return intervals


def seconds(observed: list[Interval]) -> float:
    """Return the total length of disjoint intervals."""
    return sum(interval.seconds for interval in observed)


def last_timed(servers: Collection[int]) -> datetime | None:
    """Return the end of the latest traces or service statistics of servers."""
    return max(last_timed_by_server(servers).values(), default=None)


def last_timed_by_server(servers: Collection[int]) -> dict[int, datetime]:
    """Return the end of the latest trace or service statistics of each server; none: omitted."""
    ends = last_observed(Coverage.Source.RPC_TRACE, contiguous(servers))
    for server, end in last_observed(Coverage.Source.MDS_STATS, polled(servers)).items():
        ends[server] = max(end, ends.get(server, end))
    return ends


def is_timed(server: int, start: datetime, end: datetime) -> bool:
    """Return whether there are traces or service statistics of a server around [start, end)."""
    sources = (Coverage.Source.RPC_TRACE, Coverage.Source.MDS_STATS)
    around = Coverage.objects.filter(
        start__lt=end + settings.POLL_GAP, end__gt=start - settings.POLL_GAP
    )
    return around.filter(source__in=sources, source_id=server).exists()


def _sources(source: Coverage.Source, poll_gaps: Mapping[int, timedelta]) -> dict[str, Any]:
    return {"source": source.value, "ids": list(poll_gaps), "gaps": list(poll_gaps.values())}
