"""Histories of a job's counters and traces."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl
from django.db.models import Sum
from psycopg import sql

from collectors.lustre import opcodes
from collectors.tables import UTC_US
from ioportal.findings.evidence import job_peaks
from ioportal.findings.history.source import INTERVAL, HistorySource, moving
from ioportal.rules import outlier
from ioportal.rules.evidence import PEAK_SPAN, SUSTAINED_SPAN
from ioportal.site.models import Server
from ioportal.telemetry import levels
from ioportal.telemetry.copy import read_frame
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import AttributedRpc, Principal
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from ioportal.findings.history.source import Spans
    from ioportal.findings.models import Flag
    from ioportal.jobs.models import Job
    from ioportal.telemetry.levels import Level

_CUMULATIVE = "Cumulative, at the end of each poll interval (job_stats)."


def _run(flag: Flag) -> Interval | None:
    """Return the run of a flag's job; a running job ends at the latest data."""
    job = flag.job
    if job is None or job.started_at is None or job.known_until is None:
        return None
    end = job.ended_at or max(job.known_until, flag.until)
    return Interval(job.started_at, end) if end > job.started_at else None


def _jobs(spans: Spans) -> list[int]:
    """Return the keys of the flags' jobs."""
    return [_job(flag).pk for flag, _ in spans]


def _by_subject(frame: pl.DataFrame, amount: pl.Expr | None = None) -> pl.DataFrame:
    """Return the amounts by subject, from a frame with columns key (of the job), start and end."""
    amount = pl.col("amount") if amount is None else amount
    return frame.select(
        pl.col("key").cast(pl.String).alias("subject"), *INTERVAL, amount.alias("amount")
    )


def peak_source(peak: str, levels: Level, *, by_node: bool = False) -> HistorySource:
    """Return the source of a peak's history."""
    span = SUSTAINED_SPAN if peak == "sustained_operations" else PEAK_SPAN

    def amounts(spans: Spans) -> pl.DataFrame:
        totals = moving(job_peaks.windows(_jobs(spans), peak), span)
        if not by_node:
            return _by_subject(totals)
        nodes = {_job(flag).pk: _job(flag).node_count for flag, _ in spans}
        return _by_subject(totals, pl.col("amount") / pl.col("key").replace_strict(nodes))

    minutes = span // timedelta(minutes=1)
    about = f"Totals of {minutes} minutes, at the end of each interval."
    return HistorySource(about, (levels,), _run, amounts)


def counter_source(amount: pl.Expr) -> HistorySource:
    """Return the source of an expression over the cumulative counters `_COUNTED`."""

    def amounts(spans: Spans) -> pl.DataFrame:
        return _by_subject(_counted(_jobs(spans)), amount)

    return HistorySource(_CUMULATIVE, (levels.IO_WINDOWS,), _run, amounts, adds_up=True)


_MDT_COUNTERS = ("open", "close", "mknod", "unlink")
_TARGET_COUNTERS = ("read", "write", "read_bytes", "write_bytes")
_COUNTERS = sql.SQL("""
SELECT w.job_id, w.start, w."end", sum({operations}) FILTER (WHERE w.target_id <> 0),
    {mdt_counters}, {target_counters}
FROM telemetry_iowindow w WHERE w.job_id = ANY(%(jobs)s) AND w.job_id <> 0 GROUP BY 1, 2, 3
""").format(
    operations=metadata_operations("w"),
    mdt_counters=sql.SQL(", ").join(
        sql.SQL("sum({}) FILTER (WHERE w.target_id <> 0)").format(sql.Identifier("w", name))
        for name in _MDT_COUNTERS
    ),
    target_counters=sql.SQL(", ").join(
        sql.SQL("sum({})").format(sql.Identifier("w", name)) for name in _TARGET_COUNTERS
    ),
)
_COUNTED = ("metadata_operations", *_MDT_COUNTERS, *_TARGET_COUNTERS)


def _counted(jobs: list[int]) -> pl.DataFrame:
    """Return the jobs' cumulative counters at the end of each window."""
    columns = {"key": pl.Int64(), **INTERVAL, **dict.fromkeys(_COUNTED, pl.Float64())}
    counters = read_frame(_COUNTERS, columns, {"jobs": jobs}).sort("key", "end", "start")
    return counters.with_columns(pl.col(_COUNTED).fill_null(0).cum_sum().over("key"))


def _startup(spans: Spans) -> pl.DataFrame:
    windows = job_peaks.windows(_jobs(spans), "startup_operations")
    return _by_subject(windows, pl.col("amount").cum_sum().over("key"))


def _first_minutes(_flag: Flag, run: Interval) -> Interval:
    return Interval(run.start, min(run.start + PEAK_SPAN, run.end))


STARTUP = HistorySource(
    "Cumulative over the first five minutes, at the end of each poll interval (job_stats).",
    (levels.IO_WINDOWS,),
    _run,
    _startup,
    _first_minutes,
    adds_up=True,
)


def _unexplained(spans: Spans) -> pl.DataFrame:
    """Subtract explained operations from lock enqueues, at each read of the counters."""
    jobs = _jobs(spans)
    servers = Server.objects.filter(kind=Server.Kind.MDS).values("pk")
    rpcs = AttributedRpc.objects.filter(
        kind=Principal.JOB, job_id__in=jobs, server_id__in=servers, opcode=opcodes.LDLM_ENQUEUE
    )
    rows = rpcs.values("job_id", "start").annotate(count=Sum("count")).order_by("job_id", "start")
    enqueues = pl.DataFrame(
        list(rows.values_list("job_id", "start", "count")),
        schema={"key": pl.Int64(), "end": UTC_US, "enqueues": pl.Float64()},
        orient="row",
    ).with_columns(
        pl.col("end") + levels.ATTRIBUTED_RPCS.width, pl.col("enqueues").cum_sum().over("key")
    )
    counted = _counted(jobs).select(
        "key", *INTERVAL, explained=pl.col("metadata_operations") - pl.col("close")
    )
    reads = counted.group_by("key", "end").agg(pl.min("start"), pl.last("explained")).sort("end")
    ordered = enqueues.sort("end")
    joined = reads.join_asof(ordered, on="end", by="key", check_sortedness=False)
    return _by_subject(
        joined.sort("key", "end"), pl.col("enqueues").fill_null(0) - pl.col("explained")
    )


UNEXPLAINED = HistorySource(
    "Lock enqueues (rpctrace) minus operations except closes (job_stats), both cumulative, at the "
    "end of each poll interval.",
    (levels.ATTRIBUTED_RPCS, levels.IO_WINDOWS),
    _run,
    _unexplained,
    adds_up=True,
)


def _z_score(spans: Spans) -> pl.DataFrame:
    counted = _counted(_jobs(spans))
    frames = []
    for flag, _ in spans:
        per_node = pl.col("metadata_operations") / _job(flag).node_count
        score = outlier.score_at(per_node, flag.numbers)
        frames.append(_by_subject(counted.filter(key=_job(flag).pk), score))
    return pl.concat(frames)


Z_SCORE = HistorySource(
    "From cumulative metadata operations per node, at the end of each poll interval (job_stats), "
    "compared with the similar jobs of the evaluation.",
    (levels.IO_WINDOWS,),
    _run,
    _z_score,
    adds_up=True,
)


def _job(flag: Flag) -> Job:
    if flag.job is None:
        raise ValueError(f"{flag} has no job.")
    return flag.job
