"""Histories of the numbers in flags. `SOURCES` covers the numbers that develop over time.

The highest amount of a history is the flag's number, until data for the same time is added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ioportal.analysis.rules.rule import Subject
from ioportal.flags.history.jobs import STARTUP, UNEXPLAINED, Z_SCORE, counter_source, peak_source
from ioportal.flags.history.outside_jobs import CONTRADICTED, OUTSIDE_JOBS, UNATTRIBUTED
from ioportal.flags.history.source import HistorySource, MeasureHistory
from ioportal.flags.history.users import USER_TOTAL
from ioportal.telemetry import levels, retention

if TYPE_CHECKING:
    from ioportal.flags.models import Flag

SOURCES: dict[tuple[str, str], HistorySource] = {
    (Subject.JOB, "peak_impact_s"): peak_source("peak_impact_s", levels.IMPACT),
    (Subject.JOB, "peak_locks_s"): peak_source("peak_locks_s", levels.ATTRIBUTED_RPCS),
    (Subject.JOB, "peak_stats"): peak_source("peak_stats", levels.IO_WINDOWS),
    (Subject.JOB, "sustained_per_node"): peak_source(
        "sustained_operations", levels.IO_WINDOWS, by_node=True
    ),
    (Subject.JOB, "startup_operations"): STARTUP,
    (Subject.JOB, "metadata_operations"): counter_source(pl.col("metadata_operations")),
    (Subject.JOB, "churned_files"): counter_source(pl.min_horizontal("mknod", "unlink")),
    (Subject.JOB, "failed_opens"): counter_source(pl.col("open") - pl.col("close")),
    (Subject.JOB, "reads"): counter_source(pl.col("read")),
    (Subject.JOB, "writes"): counter_source(pl.col("write")),
    (Subject.JOB, "read_bytes"): counter_source(pl.col("read_bytes")),
    (Subject.JOB, "io_bytes"): counter_source(pl.col("read_bytes") + pl.col("write_bytes")),
    (Subject.JOB, "unexplained_enqueues"): UNEXPLAINED,
    (Subject.JOB, "z_score"): Z_SCORE,
    (Subject.USER, "metadata_operations"): USER_TOTAL,
    (Subject.HOST, "rpcs"): OUTSIDE_JOBS,
    (Subject.HOST, "contradicted_rpcs"): CONTRADICTED,
    (Subject.FILESYSTEM, "unattributed_share"): UNATTRIBUTED,
}


def for_flag(flag: Flag) -> MeasureHistory | None:
    """Return the history of a flag's measure, otherwise of another number over its threshold.

    None: no number has a history, or its time is unknown.
    """
    for number in dict.fromkeys([flag.measure, *flag.thresholds]):
        source = SOURCES.get((flag.subject_kind, number))
        value, threshold = flag.numbers.get(number), flag.thresholds.get(number)
        if source is None or value is None or threshold is None or value < threshold:
            continue
        if over := source.over(flag):
            amounts = (
                source.amounts(flag, over) if retention.is_retained(source.levels, *over) else None
            )
            return MeasureHistory(
                number, source.about, source.span(flag, over), source.adds_up, amounts
            )
    return None
