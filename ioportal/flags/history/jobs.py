"""Histories of a job's counters and traces."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl
from django.db.models import Sum
from psycopg import sql

from collectors.lustre import opcodes
from collectors.tables import UTC_US
from ioportal.analysis.rules import outlier
from ioportal.analysis.rules.evidence import PEAK_SPAN, SUSTAINED_SPAN
from ioportal.flags import job_evidence
from ioportal.flags.history.source import INTERVAL, HistorySource, moving
from ioportal.site.models import Server
from ioportal.telemetry import levels
from ioportal.telemetry.copy import read_frame
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import AttributedRpc
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from ioportal.flags.models import Flag
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


def peak_source(peak: str, levels: Level, *, by_node: bool = False) -> HistorySource:
    """Return the source of a peak's history."""
    span = SUSTAINED_SPAN if peak == "sustained_operations" else PEAK_SPAN

    def amounts(flag: Flag, _over: Interval) -> pl.DataFrame:
        nodes = _job(flag).node_count if by_node else 1
        totals = moving(job_evidence.windows(_job(flag).pk, peak), span)
        return totals.with_columns(pl.col("amount") / nodes)

    minutes = span // timedelta(minutes=1)
    about = f"Totals of {minutes} minutes, at the end of each interval."
    return HistorySource(about, (levels,), _run, amounts)


def counter_source(amount: pl.Expr) -> HistorySource:
    """Return the source of an expression over the cumulative counters `_COUNTED`."""

    def amounts(flag: Flag, _over: Interval) -> pl.DataFrame:
        return _counted(_job(flag).pk).select(*INTERVAL, amount=amount)

    return HistorySource(_CUMULATIVE, (levels.IO_WINDOWS,), _run, amounts, adds_up=True)


_MDT_COUNTERS = ("open", "close", "mknod", "unlink")
_TARGET_COUNTERS = ("read", "write", "read_bytes", "write_bytes")
_COUNTERS = sql.SQL("""
SELECT w.start, w."end", sum({operations}) FILTER (WHERE w.target_id <> 0),
    {mdt_counters}, {target_counters}
FROM telemetry_iowindow w WHERE w.job_id = %(job)s AND w.job_id <> 0 GROUP BY 1, 2
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


def _counted(job: int) -> pl.DataFrame:
    """Return a job's cumulative counters at the end of each window."""
    columns = {**INTERVAL, **dict.fromkeys(_COUNTED, pl.Float64())}
    counters = read_frame(_COUNTERS, columns, {"job": job})
    return counters.sort("end", "start").with_columns(pl.col(_COUNTED).fill_null(0).cum_sum())


def _startup(flag: Flag, _over: Interval) -> pl.DataFrame:
    windows = job_evidence.windows(_job(flag).pk, "startup_operations")
    return windows.with_columns(pl.col("amount").cum_sum())


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


def _unexplained(flag: Flag, _over: Interval) -> pl.DataFrame:
    """Subtract explained operations from lock enqueues, at each read of the counters."""
    servers = Server.objects.filter(kind=Server.Kind.MDS).values("pk")
    rpcs = AttributedRpc.objects.for_job(_job(flag).pk).filter(
        server_id__in=servers, opcode=opcodes.LDLM_ENQUEUE
    )
    rows = rpcs.values("start").annotate(count=Sum("count")).order_by("start")
    enqueues = pl.DataFrame(
        list(rows.values_list("start", "count")),
        schema={"end": UTC_US, "enqueues": pl.Float64()},
        orient="row",
    ).with_columns(pl.col("end") + levels.ATTRIBUTED_RPCS.width, pl.col("enqueues").cum_sum())
    counted = _counted(_job(flag).pk).select(
        *INTERVAL, explained=pl.col("metadata_operations") - pl.col("close")
    )
    reads = counted.group_by("end").agg(pl.min("start"), pl.last("explained")).sort("end")
    return reads.join_asof(enqueues, on="end").select(
        *INTERVAL, amount=pl.col("enqueues").fill_null(0) - pl.col("explained")
    )


UNEXPLAINED = HistorySource(
    "Lock enqueues (rpctrace) minus operations except closes (job_stats), both cumulative, at the "
    "end of each poll interval.",
    (levels.ATTRIBUTED_RPCS, levels.IO_WINDOWS),
    _run,
    _unexplained,
    adds_up=True,
)


def _z_score(flag: Flag, _over: Interval) -> pl.DataFrame:
    per_node = pl.col("metadata_operations") / _job(flag).node_count
    score = outlier.score_at(per_node, flag.numbers)
    return _counted(_job(flag).pk).select(*INTERVAL, amount=score)


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
