"""Histories of the numbers in flags. `SOURCES` covers the numbers that develop over time.

The highest amount of a history is the flag's number, until data for the same time is added.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import polars as pl

from collectors.tables import UTC_US
from ioportal.findings.history.groups import IMPACT, OPERATIONS
from ioportal.findings.history.jobs import (
    STARTUP,
    UNEXPLAINED,
    Z_SCORE,
    counter_source,
    peak_source,
)
from ioportal.findings.history.outside_jobs import (
    CONTRADICTED,
    OUTSIDE_JOBS,
    OUTSIDE_OPERATIONS,
    PROCESS_OPERATIONS,
    UNATTRIBUTED,
)
from ioportal.findings.history.source import HistorySource, MeasureHistory
from ioportal.rules.rule import GROUPS, Subject
from ioportal.telemetry import levels, retention

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ioportal.findings.models import Flag

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
    **{(kind, "metadata_operations"): OPERATIONS for kind in GROUPS},
    **{(kind, "peak_impact_s"): IMPACT for kind in GROUPS},
    (Subject.HOST, "rpcs"): OUTSIDE_JOBS,
    (Subject.HOST, "operations"): OUTSIDE_OPERATIONS,
    (Subject.HOST, "process_operations"): PROCESS_OPERATIONS,
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
            is_retained = retention.is_retained(source.levels, *over)
            amounts = source.amounts([(flag, over)]).drop("subject") if is_retained else None
            return MeasureHistory(
                number, source.about, source.span(flag, over), source.adds_up, amounts
            )
    return None


def times_reached(flags: Sequence[Flag]) -> dict[int, datetime]:
    """Return when the measures of new flags reached their thresholds, by position in `flags`.

    Of an amount that varies, the latest such time. Flags without a history are omitted. The number
    of queries does not depend on the number of jobs.
    """
    by_source: dict[tuple[str, str], list[int]] = defaultdict(list)
    for position, flag in enumerate(flags):
        if (flag.subject_kind, flag.measure) in SOURCES:
            by_source[flag.subject_kind, flag.measure].append(position)
    times: dict[int, datetime] = {}
    for key, positions in by_source.items():
        source = SOURCES[key]
        dropped = retention.dropped(source.levels, *retention.ALWAYS)
        overs = {position: source.over(flags[position]) for position in positions}
        spans = {
            position: over
            for position, over in overs.items()
            if over and not any(over.start < gap.end and gap.start <= over.end for gap in dropped)
        }
        if spans:
            amounts = source.amounts([(flags[position], over) for position, over in spans.items()])
            times |= _reached(amounts, {position: flags[position] for position in spans})
    return times


def _reached(amounts: pl.DataFrame, flags: dict[int, Flag]) -> dict[int, datetime]:
    """Return the end of the first interval over the threshold after the last interval below.

    Peaks and totals of jobs never decrease: for them the first interval over the threshold.
    """
    thresholds = pl.DataFrame(
        [(n, flag.subject, flag.threshold, flag.until) for n, flag in flags.items()],
        schema={"n": pl.Int64, "subject": pl.String, "threshold": pl.Float64, "until": UTC_US},
        orient="row",
    )
    is_over = pl.col("amount") >= pl.col("threshold")
    is_of_job = any(flag.subject_kind == Subject.JOB for flag in flags.values())
    before = pl.lit(None, UTC_US) if is_of_job else pl.col("end").filter(~is_over).max()
    joined = amounts.join(thresholds, on="subject").filter(pl.col("end") <= pl.col("until"))
    began = joined.group_by("n").agg(
        pl.col("end").filter(is_over & (before.is_null() | (pl.col("end") > before))).min()
    )
    return {n: end for n, end in began.iter_rows() if end}
