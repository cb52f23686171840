"""History of the total of a user's jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection
from psycopg import sql

from collectors.tables import UTC_US
from ioportal.analysis.rules.evidence import DAY
from ioportal.flags.evidence import JOBS_OF_USERS
from ioportal.flags.history.source import HistorySource, one_by_one
from ioportal.telemetry import levels
from ioportal.telemetry.copy import read_frame
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from ioportal.flags.models import Flag

_BEGAN = sql.SQL("SELECT min(j.started_at) FROM {jobs}").format(jobs=JOBS_OF_USERS)
# A job leaves a day after its end.
_CHANGES = sql.SQL("""
WITH counting AS MATERIALIZED (
    SELECT j.id, j.ended_at + %(day)s AS leaves, s.metadata_operations FROM {jobs}
)
SELECT "end", sum(amount) FROM (
    SELECT w."end", {operations} AS amount
    FROM counting JOIN telemetry_iowindow w ON w.job_id = counting.id
    WHERE w.job_id <> 0 AND w.target_id <> 0
        AND w.start >= %(first)s::timestamptz - %(day)s AND w.start < %(until)s
    UNION ALL
    SELECT leaves, -metadata_operations FROM counting WHERE leaves < %(until)s
) changes GROUP BY 1
""").format(jobs=JOBS_OF_USERS, operations=metadata_operations("w"))


def _query_values(flag: Flag) -> dict[str, Any]:
    return {"owners": [flag.subject], "since": flag.since - DAY, "until": flag.until}


def _since_first_start(flag: Flag) -> Interval | None:
    with connection.cursor() as cursor:
        cursor.execute(_BEGAN, _query_values(flag))
        (began,) = cursor.fetchone()
    return Interval(began, flag.until) if began else None


def _day_before(flag: Flag, _over: Interval) -> Interval:
    return Interval(flag.since - DAY, flag.until)


def _running_total(flag: Flag, over: Interval) -> pl.DataFrame:
    """Return the running total over jobs that ran within a day."""
    values = {**_query_values(flag), "first": over.start, "day": DAY}
    changes = read_frame(_CHANGES, {"end": UTC_US, "amount": pl.Float64()}, values).sort("end")
    before = pl.col("end").shift().fill_null(pl.lit(over.start, UTC_US))
    return changes.select(
        pl.min_horizontal(before, "end").alias("start"), "end", pl.col("amount").cum_sum()
    )


USER_TOTAL = HistorySource(
    "Total of the jobs of the last day, at the end of each poll interval (job_stats). A job leaves "
    "the total one day after its end.",
    (levels.IO_WINDOWS,),
    _since_first_start,
    one_by_one(_running_total),
    _day_before,
    adds_up=True,
)
