"""The operations to attribute, computed in Python to check the SQL that derives I/O windows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection
from django.db.models import F
from psycopg import sql

from collectors.tables import COUNTERS, OPERATIONS, TIMES, UTC_US
from ioportal.ingest.models import Segment
from ioportal.site.models import Target
from ioportal.telemetry.copy import read_frame
from ioportal.telemetry.models import Coverage, IoWindow, JobDelta

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    Read = tuple[int, datetime]  # a target and a time

_MOMENT = timedelta(microseconds=1)
_TOTAL = IoWindow.Basis.TOTAL
_ENTRY: dict[str, Any] = {
    "taken_at": UTC_US,
    "target_id": pl.Int64,
    "source_job_id": pl.Int64,
    "entry_started_at": UTC_US,
    **dict.fromkeys(COUNTERS, pl.Int64),
}
_READS: dict[str, Any] = {
    "segment_id": pl.Int64,
    "target_id": pl.Int64,
    "taken_at": UTC_US,
    "previous_at": UTC_US,
}

_LAST_READS = """
SELECT p.target_id, p.at, c.start
FROM unnest(%(targets)s::int[], %(times)s::timestamptz[]) p (target_id, at)
CROSS JOIN LATERAL (
    SELECT start, "end" FROM telemetry_coverage
    WHERE source = %(source)s AND source_id = p.target_id
        AND (start < p.at OR (start = p.at AND "end" = start))
    ORDER BY start DESC LIMIT 1
) c
WHERE c."end" = c.start
"""

_ENTRIES = sql.SQL(
    """
SELECT taken_at, target_id, source_job_id, entry_started_at, {counters}
FROM telemetry_jobsnapshot
JOIN unnest(%(targets)s::int[], %(times)s::timestamptz[]) r (target_id, taken_at)
    USING (target_id, taken_at)
WHERE taken_at BETWEEN %(start)s AND %(end)s
"""
).format(counters=sql.SQL(", ").join(map(sql.Identifier, COUNTERS)))

_POLL = sql.SQL(
    """
SELECT "end" AS taken_at, target_id, source_job_id,
    NULL::timestamptz AS entry_started_at, {counters}
FROM telemetry_jobdelta
WHERE segment_id = %(segment)s AND target_id = %(target)s AND "end" = %(at)s AND start = "end"
    AND basis = %(total)s
"""
).format(counters=sql.SQL(", ").join(map(sql.Identifier, COUNTERS)))


def of_reads(segments: Collection[Segment]) -> dict[int, int]:
    """Return the operations that counters gained since the previous read, by segment."""
    ended = {segment.pk: segment.end for segment in segments if segment.end}
    reads = [(pk, target, ended[pk]) for pk, target in targets_of(ended)]
    before = last_reads([(target, taken_at - _MOMENT) for _, target, taken_at in reads])
    rows = [
        (pk, target, taken_at, before.get((target, taken_at - _MOMENT)))
        for pk, target, taken_at in reads
    ]
    frame = pl.DataFrame(rows, schema=_READS, orient="row")
    times = [*((target, at) for _, target, at, _ in rows)]
    times += [(target, at) for _, target, _, at in rows if at]
    entries = _entries(times)
    now = entries.join(frame, on=["target_id", "taken_at"])
    old = entries.rename({"taken_at": "previous_at"})
    gained = _gained(now, old, on=("target_id", "previous_at", "source_job_id"))
    sums = gained.group_by("segment_id").agg(pl.col("gained").sum())
    return dict.fromkeys(ended, 0) | dict(sums.iter_rows())


def counted_by_files(batches: Sequence[Segment]) -> dict[int, int]:
    """Return the operations in first polls that reads from files counted before, by batch."""
    polls = JobDelta.objects.filter(
        segment_id__in=[batch.pk for batch in batches],
        end__gte=min(batch.start for batch in batches if batch.start),
        end__lte=max(batch.end for batch in batches if batch.end),
        start=F("end"),
        basis=_TOTAL,
    )
    counted: dict[int, int] = {}
    for pk, row_target, polled_at in polls.values_list("segment_id", "target_id", "end").distinct():
        kind = {"pk": row_target} if row_target else {"kind": Target.Kind.OST}
        targets = Target.objects.filter(segment=pk, **kind).values_list("pk", flat=True)
        reads = last_reads([(target, polled_at) for target in targets])
        if reads:
            values = {"segment": pk, "target": row_target, "at": polled_at, "total": _TOTAL.value}
            now = read_frame(_POLL, _ENTRY, values)
            old = _added_up(_entries([(target, at) for (target, _), at in reads.items()]))
            both = [_gained(now, each, on=("source_job_id",)) for each in (old.clear(), old)]
            without, beyond = (int(each["gained"].sum()) for each in both)
            counted[pk] = counted.get(pk, 0) + without - beyond
    return counted


def last_reads(places: Collection[Read]) -> dict[Read, datetime]:
    """Return the last read from a file up to each time of a target, if no poll is after it."""
    values: dict[str, Any] = {
        "targets": [target for target, _ in places],
        "times": [at for _, at in places],
        "source": Coverage.Source.JOB_STATS.value,
    }
    with connection.cursor() as cursor:
        cursor.execute(_LAST_READS, values)
        return {(target, at): read_at for target, at, read_at in cursor.fetchall()}


def targets_of(segments: Collection[int]) -> list[tuple[int, int]]:
    """Return the pairs of segments and their targets."""
    pairs = Segment.targets.through.objects.filter(segment__in=segments)
    return list(pairs.values_list("segment_id", "target_id"))


def _entries(reads: Sequence[Read]) -> pl.DataFrame:
    """Return the entries of reads of targets."""
    if not reads:
        return pl.DataFrame(schema=_ENTRY)
    places = sorted(set(reads))
    times = [at for _, at in places]
    values = {
        "targets": [target for target, _ in places],
        "times": times,
        "start": min(times),
        "end": max(times),
    }
    return read_frame(_ENTRIES, _ENTRY, values)


def _added_up(reads: pl.DataFrame) -> pl.DataFrame:
    """Add up the entries of OSTs; a time is unknown if any of its parts is."""
    known = {
        time: (pl.col(time).is_not_null() | (pl.col(name).fill_null(0) == 0)).all()
        for time, name in TIMES.items()
    }
    return reads.group_by("source_job_id").agg(
        pl.lit(None, UTC_US).alias("entry_started_at"),
        *(
            pl.when(known.get(name, True) & pl.col(name).is_not_null().any())
            .then(pl.col(name).sum())
            .alias(name)
            for name in COUNTERS
        ),
    )


def _gained(now: pl.DataFrame, old: pl.DataFrame, *, on: Sequence[str]) -> pl.DataFrame:
    """Return the entries of reads with the operations that they gained since earlier reads."""
    both = now.join(old.with_columns(was_read=pl.lit(value=True)), on=on, how="left", suffix="_old")
    fell = pl.any_horizontal(pl.col(name) < pl.col(f"{name}_old") for name in COUNTERS)
    restarted = pl.col("entry_started_at") > pl.col("entry_started_at_old")
    continued = pl.col("was_read") & ~(
        fell.fill_null(value=False) | restarted.fill_null(value=False)
    )
    gained = [  # null, and therefore not added, where the counter is missing in one of the reads
        pl.col(name) - pl.when(continued).then(pl.col(f"{name}_old")).otherwise(0)
        for name in OPERATIONS
    ]
    return both.with_columns(gained=pl.sum_horizontal(gained))
