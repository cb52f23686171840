"""Histories of the numbers in flags: `SOURCES` has those that develop over time.

The highest amount of a history is the flag's number, until data of the same time is added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ioportal.analysis.rules.rule import Subject
from ioportal.flags.history.jobs import STARTUP, UNEXPLAINED, Z_SCORE, of_counters, of_peak
from ioportal.flags.history.outside_jobs import OUTSIDE_JOBS, UNATTRIBUTED
from ioportal.flags.history.source import HistorySource, MeasureHistory
from ioportal.flags.history.users import TOGETHER
from ioportal.telemetry import levels, retention

if TYPE_CHECKING:
    from ioportal.flags.models import Flag

SOURCES: dict[tuple[str, str], HistorySource] = {
    (Subject.JOB, "peak_impact_s"): of_peak("peak_impact_s", levels.IMPACT),
    (Subject.JOB, "peak_locks_s"): of_peak("peak_locks_s", levels.ATTRIBUTED_RPCS),
    (Subject.JOB, "peak_stats"): of_peak("peak_stats", levels.IO_WINDOWS),
    (Subject.JOB, "sustained_per_node"): of_peak(
        "sustained_operations", levels.IO_WINDOWS, by_node=True
    ),
    (Subject.JOB, "startup_operations"): STARTUP,
    (Subject.JOB, "metadata_operations"): of_counters(pl.col("metadata_operations")),
    (Subject.JOB, "churned_files"): of_counters(pl.min_horizontal("mknod", "unlink")),
    (Subject.JOB, "failed_opens"): of_counters(pl.col("open") - pl.col("close")),
    (Subject.JOB, "reads"): of_counters(pl.col("read")),
    (Subject.JOB, "writes"): of_counters(pl.col("write")),
    (Subject.JOB, "read_bytes"): of_counters(pl.col("read_bytes")),
    (Subject.JOB, "io_bytes"): of_counters(pl.col("read_bytes") + pl.col("write_bytes")),
    (Subject.JOB, "unexplained_enqueues"): UNEXPLAINED,
    (Subject.JOB, "z_score"): Z_SCORE,
    (Subject.USER, "metadata_operations"): TOGETHER,
    (Subject.HOST, "rpcs"): OUTSIDE_JOBS,
    (Subject.FILESYSTEM, "unattributed_share"): UNATTRIBUTED,
}


def for_flag(flag: Flag) -> MeasureHistory | None:
    """Return the history of a flag's measure, otherwise of another number over its threshold.

    None: no number has a history, or its time is unknown.
    """
    for number in dict.fromkeys([flag.measure, *flag.thresholds]):
        way = SOURCES.get((flag.subject_kind, number))
        found, threshold = flag.numbers.get(number), flag.thresholds.get(number)
        if way is None or found is None or threshold is None or found < threshold:
            continue
        if over := way.over(flag):
            amounts = way.amounts(flag, over) if retention.is_retained(way.levels, *over) else None
            return MeasureHistory(number, way.about, way.shown(flag, over), way.adds_up, amounts)
    return None
