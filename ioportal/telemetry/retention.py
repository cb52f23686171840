"""Dropping chunks that were kept long enough, and remembering what is gone."""

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

# A chunk goes when both what it tells of and its own begin lie far enough back: logs of last year
# that are loaded today are kept as long as those of today.
_OLD_CHUNKS = """
SELECT c.range_start, c.range_end
FROM timescaledb_information.chunks c
WHERE c.hypertable_name = %(table)s
    AND c.range_end <= %(before)s AND c.chunk_creation_time <= %(before)s
ORDER BY c.range_start
"""


def old_chunks(level: Level, before: datetime, needed_from: datetime | None) -> list[Interval]:
    """Return the chunks of a level that end, and were begun, before a moment, in order.

    Args:
        level: whose chunks.
        before: nothing newer is old.
        needed_from: what a stage has still to read begins here; None: nothing waits.
    """
    with connection.cursor() as cursor:
        cursor.execute(_OLD_CHUNKS, {"table": level.table, "before": before})
        old = [Interval(*row) for row in cursor.fetchall()]
    return [chunk for chunk in old if needed_from is None or chunk.end <= needed_from]


def drop(level: Level, chunks: Iterable[Interval]) -> None:
    """Drop chunks of a level, and remember that they are gone."""
    for chunk in chunks:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT drop_chunks(%s::regclass, older_than => %s::timestamptz, "
                "newer_than => %s::timestamptz)",
                [level.table, chunk.end, chunk.start],
            )
        record_dropped(level, chunk)


def record_dropped(level: Level, gone: Interval) -> None:
    """Record an interval as dropped; those that meet become one."""
    meeting = RetentionLog.objects.filter(
        table=level.table, start__lte=gone.end, end__gte=gone.start
    ).order_by("start")
    known = [*meeting.values_list("start", "end"), gone]
    meeting.delete()
    start, end = min(start for start, _ in known), max(end for _, end in known)
    RetentionLog.objects.create(table=level.table, start=start, end=end)


def dropped(levels: Iterable[Level], start: datetime, end: datetime) -> list[Interval]:
    """Return the parts of [start, end) of which rows of any of some levels are gone, in order."""
    rows = RetentionLog.objects.filter(
        table__in=[level.table for level in levels], start__lt=end, end__gt=start
    )
    return [Interval(*row) for row in rows.order_by("start").values_list("start", "end")]


def retained(levels: Iterable[Level], start: datetime, end: datetime) -> list[Interval]:
    """Return the parts of [start, end) of which all rows of some levels are there, in order."""
    return gaps(dropped(levels, start, end), start, end)


def is_retained(levels: Iterable[Level], start: datetime, end: datetime) -> bool:
    """Tell whether nothing of [start, end] was dropped from some levels."""
    return not RetentionLog.objects.filter(
        table__in=[level.table for level in levels], start__lte=end, end__gt=start
    ).exists()


def finest(of: Iterable[Level], start: datetime, end: datetime) -> Level | None:
    """Return the first of some levels, finest first, that is whole in [start, end]; None: none."""
    return next((level for level in of if is_retained([level], start, end)), None)


def licence() -> str:
    """Return the licence of TimescaleDB as it runs: ``apache``, or ``timescale``."""
    with connection.cursor() as cursor:
        # Its settings are known to a session once its library is loaded, by any function of it.
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

    Each chunk is compressed in a transaction of its own, so that one chunk at a time is locked and
    a failure keeps what was compressed before it.

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
