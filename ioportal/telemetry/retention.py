"""Retention: drop old chunks and record the dropped intervals; compression; the licence.

Periods are in `ioportal.telemetry.levels`; `ioportal.load.retention_run` drops older data.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db import connection
from psycopg import sql

from ioportal.telemetry.coverage import Interval, gaps
from ioportal.telemetry.models import RetentionLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ioportal.telemetry.levels import Level

ALWAYS = Interval(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))

# A chunk is dropped when both its range and its creation are old: logs of last year that are
# loaded today are retained as long as today's logs.
_OLD_CHUNKS = """
SELECT c.range_start, c.range_end
FROM timescaledb_information.chunks c
WHERE c.hypertable_name = %(table)s
    AND c.range_end <= %(before)s AND c.chunk_creation_time <= %(before)s
ORDER BY c.range_start
"""


def old_chunks(level: Level, before: datetime, needed_from: datetime | None) -> list[Interval]:
    """Return the chunks of a level that end, and were created, before a time, in order.

    Args:
        level: the level of the chunks.
        before: the latest end and creation.
        needed_from: start of the rows that a stage still needs; None: no rows.
    """
    with connection.cursor() as cursor:
        cursor.execute(_OLD_CHUNKS, {"table": level.table, "before": before})
        old = [Interval(*row) for row in cursor.fetchall()]
    return [chunk for chunk in old if needed_from is None or chunk.end <= needed_from]


def drop(level: Level, chunks: Iterable[Interval]) -> None:
    """Drop chunks of a level and record their intervals."""
    for chunk in chunks:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT drop_chunks(%s::regclass, older_than => %s::timestamptz, "
                "newer_than => %s::timestamptz)",
                [level.table, chunk.end, chunk.start],
            )
        record_dropped(level, chunk)


def record_dropped(level: Level, dropped_interval: Interval) -> None:
    """Record an interval as dropped and join it with adjacent ones."""
    adjacent = RetentionLog.objects.filter(
        table=level.table, start__lte=dropped_interval.end, end__gte=dropped_interval.start
    ).order_by("start")
    intervals = [*adjacent.values_list("start", "end"), dropped_interval]
    adjacent.delete()
    start = min(start for start, _ in intervals)
    end = max(end for _, end in intervals)
    RetentionLog.objects.create(table=level.table, start=start, end=end)


def dropped(levels: Iterable[Level], start: datetime, end: datetime) -> list[Interval]:
    """Return the parts of [start, end) in which rows of any level were dropped, in order."""
    rows = RetentionLog.objects.filter(
        table__in=[level.table for level in levels], start__lt=end, end__gt=start
    )
    return [Interval(*row) for row in rows.order_by("start").values_list("start", "end")]


def retained(levels: Iterable[Level], start: datetime, end: datetime) -> list[Interval]:
    """Return the parts of [start, end) in which all levels are retained, in order."""
    return gaps(dropped(levels, start, end), start, end)


def is_retained(levels: Iterable[Level], start: datetime, end: datetime) -> bool:
    """Return whether all levels are retained in [start, end]."""
    return not RetentionLog.objects.filter(
        table__in=[level.table for level in levels], start__lte=end, end__gt=start
    ).exists()


def finest(hierarchy: Iterable[Level], start: datetime, end: datetime) -> Level | None:
    """Return the finest level that is retained in [start, end]; None if there is none."""
    return next((level for level in hierarchy if is_retained([level], start, end)), None)


def licence() -> str:
    """Return the licence of TimescaleDB: ``apache`` or ``timescale``."""
    with connection.cursor() as cursor:
        # A function of the library loads it, which defines its settings for the session.
        cursor.execute("SELECT time_bucket('1 day', now()), current_setting('server_version')")
        cursor.execute("SELECT coalesce(current_setting('timescaledb.license', true), '')")
        (name,) = cursor.fetchone()
        return str(name)


_COMPRESS = sql.SQL(
    "ALTER TABLE {} SET (timescaledb.compress, timescaledb.compress_segmentby = {}, "
    "timescaledb.compress_orderby = {})"
)

# Of a chunk's status, 1 is "compressed" and 8 "partial": rows were added after compression.
_OLD_UNCOMPRESSED = """
SELECT chunk
FROM timescaledb_information.chunks, format('%%I.%%I', chunk_schema, chunk_name) chunk
WHERE hypertable_name = %(table)s AND _timescaledb_functions.chunk_status(chunk::regclass) & 9 <> 1
    AND range_end <= %(before)s AND chunk_creation_time <= %(before)s
ORDER BY range_start
"""


def enable_compression(level: Level) -> sql.Composed:
    """Return the statement that enables compression of a level.

    TimescaleDB parses both lists of columns as SQL: reserved words must be quoted inside them.
    """
    segment_by, order_by = (
        sql.Literal(sql.SQL(", ").join(map(sql.Identifier, columns)).as_string())
        for columns in ([level.by], [*level.then_by, level.time])
    )
    return _COMPRESS.format(sql.Identifier(level.table), segment_by, order_by)


def compress_old(level: Level, before: datetime) -> int:
    """Compress the chunks of a level that end, and were created, before a time; return how many.

    Each chunk is compressed in a separate transaction, so that one chunk at a time is locked and
    a failure keeps earlier results.

    Raises:
        NotSupportedError: the licence does not allow it (`licence`).
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT compression_enabled FROM timescaledb_information.hypertables "
            "WHERE hypertable_name = %s",
            [level.table],
        )
        if cursor.fetchone() == (False,):
            cursor.execute(enable_compression(level))
        cursor.execute(_OLD_UNCOMPRESSED, {"table": level.table, "before": before})
        chunks = cursor.fetchall()
        for chunk in chunks:
            cursor.execute("SELECT compress_chunk(%s::regclass, if_not_compressed => true)", chunk)
    return len(chunks)
