"""Histories of the jobs of an application, a user or a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from collectors.tables import UTC_US
from ioportal.findings.evidence import group_evidence
from ioportal.findings.history.source import INTERVAL, HistorySource, moving, one_by_one
from ioportal.rules.evidence import DAY, HOUR, PEAK_SPAN
from ioportal.telemetry import buckets, levels
from ioportal.telemetry.coverage import Interval

if TYPE_CHECKING:
    from ioportal.findings.models import Flag


def _days(flag: Flag) -> Interval:
    return Interval(
        buckets.floor(flag.since - DAY, HOUR), buckets.ceil(flag.until, levels.IMPACT.width)
    )


def _within_a_day(flag: Flag, over: Interval) -> pl.DataFrame:
    """Return the operations of the 24 hours before the end of each hour."""
    since = over.start - DAY
    jobs = group_evidence.jobs_of(flag.subject_kind, [flag.subject], since, over.end)["job"]
    by_hour = group_evidence.operations_by_hour(jobs.to_list(), since, over.end)
    totals = group_evidence.within_a_day(by_hour.with_columns(key=pl.lit(0)))
    return (
        totals.filter(pl.col("hour") >= over.start)
        .select(
            start="hour",
            end=pl.min_horizontal(pl.col("hour") + HOUR, pl.lit(flag.until, UTC_US)),
            amount="operations",
        )
        .sort("end")
    )


OPERATIONS = HistorySource(
    "Totals of 24 hours, at the end of each hour with operations (job_stats).",
    (levels.IO_TEN_MINUTES,),
    _days,
    one_by_one(_within_a_day),
)


def _impact(flag: Flag, over: Interval) -> pl.DataFrame:
    groups = group_evidence.keys_of(flag.subject_kind, [flag.subject])
    windows = group_evidence.impact_windows(groups, *over)
    amounts = windows.select(*INTERVAL, amount=pl.col("impact_us") / 1e6)
    return moving(amounts, PEAK_SPAN)


IMPACT = HistorySource(
    "Totals of 5 minutes, at the end of each interval.",
    (levels.IMPACT,),
    _days,
    one_by_one(_impact),
)
