"""Mean time of the requests of metadata servers over long periods, from arrival to end.

Measured in traces (rpctrace). In intervals without one, it is estimated from service statistics
(mds_stats): the wait in the queue, and the mean time of those kinds that the server times.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection
from psycopg import sql

from collectors.tables import UTC_US
from ioportal.load.impact.impact_estimates import waits
from ioportal.telemetry import buckets, levels, piecewise

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from ioportal.telemetry.piecewise import Piece

LATENCIES = {
    "start": UTC_US,  # of the interval
    "requests": pl.Float64(),  # with a known time
    "took_us": pl.Float64(),  # their time, from arrival to end
    "is_estimated": pl.Boolean(),
}
_MOST_READS = 1_000  # of a server's statistics
_SUMS = sql.SQL("""
SELECT date_bin(%(width)s, start, %(origin)s), sum(timed)::float8, sum(total_us_sum)::float8, false
FROM ({rows}) parts GROUP BY 1
""")
_PIECE = sql.SQL("""
SELECT start, timed, total_us_sum FROM {table}
WHERE server_id = ANY(%(servers)s) AND start >= {start} AND start < {end} AND timed > 0
""")


def by_interval(
    server_ids: Collection[int], start: datetime, end: datetime, width: timedelta
) -> pl.DataFrame:
    """Return the requests of servers and their times by intervals of a width: `LATENCIES`.

    Args:
        server_ids: metadata servers, whose requests are added up.
        start: start of the first interval; a multiple of ten minutes.
        end: end of the range.
        width: a multiple of ten minutes.
    """
    measured = _measured(server_ids, start, end, width)
    estimated = _estimated(server_ids, start, end, width)
    return pl.concat([measured, estimated.join(measured, on="start", how="anti")]).sort("start")


def _measured(
    server_ids: Collection[int], start: datetime, end: datetime, width: timedelta
) -> pl.DataFrame:
    level = levels.RPC_TOTAL_TEN_MINUTES
    parts = piecewise.pieces(level, start, buckets.ceil(end, level.width))
    if not parts:
        return pl.DataFrame(schema=LATENCIES)
    query = _SUMS.format(rows=sql.SQL(" UNION ALL ").join(map(_piece, parts)))
    values: dict[str, Any] = {"servers": list(server_ids), "width": width, "origin": start}
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return pl.DataFrame(cursor.fetchall(), schema=LATENCIES, orient="row")


def _piece(piece: Piece) -> sql.Composed:
    return _PIECE.format(
        table=sql.Identifier(piece.level.table),
        start=sql.Literal(piece.start),
        end=sql.Literal(piece.end),
    )


def _estimated(
    server_ids: Collection[int], start: datetime, end: datetime, width: timedelta
) -> pl.DataFrame:
    """Assign each interval between two reads to the one with its middle."""
    longest = max(2 * width, 2 * (end - start) / _MOST_READS)
    reads = [waits(server, start, end, _MOST_READS, longest) for server in server_ids]
    middle_us = (pl.col("end") - pl.col("start")) / 2 + pl.col("start") - start
    number = middle_us.dt.total_microseconds() // (width // timedelta(microseconds=1))
    rows = pl.concat(reads) if reads else pl.DataFrame(schema={**LATENCIES, "end": UTC_US})
    return (
        rows.group_by((number * width + start).alias("begin"))
        .agg(pl.sum("requests", "took_us"))
        .filter(pl.col("begin").is_between(start, end, closed="left"))
        .select(
            pl.col("begin").cast(UTC_US).alias("start"),
            "requests",
            "took_us",
            pl.lit(value=True).alias("is_estimated"),
        )
    )
