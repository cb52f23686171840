"""The most that jobs did within five minutes, from their windows: what their statistics lack."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection
from psycopg import sql

from collectors.lustre import opcodes
from ioportal.analysis import sustained
from ioportal.analysis.rules.evidence import PEAKS, SUSTAINED, WITHIN
from ioportal.flags.models import JobEvidence
from ioportal.telemetry import levels, retention
from ioportal.telemetry.copy import read_frame
from ioportal.telemetry.models import IoWindow, Principal
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from collections.abc import Mapping

_ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
_WANTED = "unnest(%(jobs)s::bigint[], %(since)s::timestamptz[]) AS wanted (job_id, since)"
_TIME = pl.Datetime("us", "UTC")

_IO = sql.SQL("""
SELECT w.job_id, w.filesystem_id, w.start, w."end", w."end" <= j.started_at + %(within)s,
    sum({operations})::float8, sum(coalesce(w.getattr, 0))::float8,
    sum(coalesce(w.open, 0))::float8
FROM {wanted}
JOIN jobs_job j ON j.id = wanted.job_id
JOIN telemetry_iowindow w ON w.job_id = wanted.job_id AND w.job_id <> 0 AND w.start >= wanted.since
WHERE w.target_id <> 0 AND w.basis <> %(TOTAL)s AND w."end" > w.start
GROUP BY 1, 2, 3, 4, 5
""").format(
    wanted=sql.SQL(_WANTED),
    operations=metadata_operations("w"),
)
_IO_COLUMNS = {
    "key": pl.Int64(),
    "filesystem": pl.Int64(),
    "start": _TIME,
    "end": _TIME,
    "is_startup": pl.Boolean(),
    **dict.fromkeys(("operations", "stats", "opens"), pl.Float64()),
}
# Its own RPCs, and others' enqueues on the same server meanwhile.
_RPCS = sql.SQL("""
WITH own AS MATERIALIZED (
    SELECT w.job_id, w.start, w.server_id, sum(w.timed) AS rpcs,
        coalesce(sum(w.timed) FILTER (WHERE w.opcode = %(enqueue)s), 0) AS enqueues,
        coalesce(sum(w.service_us_sum) FILTER (WHERE w.opcode = %(enqueue)s), 0) AS enqueue_us
    FROM {wanted}
    JOIN telemetry_chargedrpc w
        ON w.job_id = wanted.job_id AND w.job_id <> 0 AND w.start >= wanted.since
    JOIN jobs_server s ON s.id = w.server_id AND s.kind = 'mds'
    GROUP BY 1, 2, 3
),
everybody AS MATERIALIZED (
    SELECT server_id, start, sum(timed) AS timed, sum(service_us_sum) AS service_us_sum
    FROM telemetry_total
    WHERE opcode = %(enqueue)s AND start >= (SELECT min(start) FROM own)
        AND start <= (SELECT max(start) FROM own)
    GROUP BY 1, 2
)
SELECT own.job_id, own.start, sum(own.rpcs)::float8, sum(own.enqueues)::float8,
    sum(own.enqueue_us)::float8, sum(t.timed - own.enqueues)::float8,
    sum(t.service_us_sum - own.enqueue_us)::float8
FROM own LEFT JOIN everybody t USING (server_id, start)
GROUP BY 1, 2
""").format(wanted=sql.SQL(_WANTED))
_RPC_AMOUNTS = ("rpcs", "enqueues", "enqueue_us", "others", "others_us")
_RPC_COLUMNS = {
    "key": pl.Int64(),
    "start": _TIME,
    **dict.fromkeys(_RPC_AMOUNTS, pl.Float64()),
}
_IMPACT = sql.SQL("""
SELECT w.who, w.start, sum(w.impact_us)::float8 / 1e6, sum(w.service_us)::float8,
    sum(w.work_us)::float8, sum(w.others_us)::float8, sum(w.others_usual_us)::float8
FROM {wanted}
JOIN telemetry_impactwindow w
    ON w.kind = %(JOB)s AND w.who = wanted.job_id AND w.start >= wanted.since
GROUP BY 1, 2
""").format(wanted=sql.SQL(_WANTED))
_IMPACT_AMOUNTS = ("impact_s", "service_us", "work_us", "others_us", "others_usual_us")
_IMPACT_COLUMNS = {
    "key": pl.Int64(),
    "start": _TIME,
    **dict.fromkeys(_IMPACT_AMOUNTS, pl.Float64()),
}
_IMPACT_ALTOGETHER = """
SELECT who, sum(impact_us)::float8 / 1e6 FROM telemetry_impactwindow
WHERE kind = %(JOB)s AND who = ANY(%(jobs)s) GROUP BY 1
"""


def refresh(changed: Mapping[int, datetime]) -> None:
    """Bring the peaks of jobs up to date.

    Args:
        changed: since when on windows of each job changed. Of one that was seen until then, only
            what comes after is read, and the five minutes before it.
    """
    known = JobEvidence.objects.in_bulk(changed)
    gone = retention.dropped((levels.IO_WINDOWS, levels.CHARGED_RPCS), *retention.ALWAYS)
    goes_on = {
        job: known[job]
        for job, since in changed.items()
        # What is gone cannot be read again: what was known of it stays.
        if job in known and (since >= known[job].seen_until - WITHIN or gone)
    }
    since = {job: changed[job] - SUSTAINED if job in goes_on else _ALWAYS for job in changed}
    values = _values(since)
    io = read_frame(_IO, _IO_COLUMNS, values)
    rpcs = _windows(read_frame(_RPCS, _RPC_COLUMNS, values))
    impact = _windows(read_frame(_IMPACT, _IMPACT_COLUMNS, values))
    with connection.cursor() as cursor:
        cursor.execute(_IMPACT_ALTOGETHER, values)
        altogether: dict[int, float] = dict(cursor.fetchall())
    found = _by_job(_of_counters(io), _of_startup(io), _of_traces(rpcs), _of_impact(impact))
    begun = pl.concat([io.select("key", "start"), rpcs.select("key", "start")])
    seen = dict(begun.group_by("key").agg(pl.max("start")).iter_rows())
    rows = []
    for job in changed:
        before = goes_on.get(job)
        row = JobEvidence(job_id=job, impact_s=altogether.get(job))
        row.seen_until = max(seen.get(job, _ALWAYS), before.seen_until if before else _ALWAYS)
        _set_greatest(row, found.get(job, {}), before)
        rows.append(row)
    JobEvidence.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["job"], update_fields=_COMPUTED
    )


def windows(job: int, figure: str) -> pl.DataFrame:
    """Return what a peak of a job, or its start-up, is made of.

    Columns start, end and amount of its windows, those of one interval together.
    """
    values = _values({job: _ALWAYS})
    if figure == "peak_impact_s":
        found, amount = _windows(read_frame(_IMPACT, _IMPACT_COLUMNS, values)), pl.col("impact_s")
    elif figure == "peak_locks_s":
        found = _windows(read_frame(_RPCS, _RPC_COLUMNS, values))
        amount = pl.col("enqueue_us") / 1e6
    else:
        found, amount = read_frame(_IO, _IO_COLUMNS, values), pl.col(_COUNTED[figure])
    if figure == "startup_operations":
        found = found.filter("is_startup")
    return found.group_by("start", "end").agg(amount.sum().alias("amount")).sort("end", "start")


_COUNTED = {
    "peak_operations": "operations",
    "sustained_operations": "operations",
    "startup_operations": "operations",
    "peak_stats": "stats",
}
_COMPUTED = [
    field.name
    for field in JobEvidence._meta.concrete_fields  # noqa: SLF001  (documented meta API)
    if field.name != "job"
]
# What is told of the same five minutes as a peak.
_WITH = {
    "peak_operations": ("filesystem_id",),
    "peak_locks_s": ("lock_share", "lock_ratio"),
    "peak_impact_s": ("impact_share", "impact_times"),
}


def _set_greatest(row: JobEvidence, found: dict[str, Any], before: JobEvidence | None) -> None:
    """Set each peak to the greater one of what is found now and what was before."""
    for peak in PEAKS:
        names = (peak, f"{peak}_at", *_WITH.get(peak, ()))
        old = getattr(before, peak, None)
        is_greater = old is None or (found.get(peak) or 0) >= old
        for name in names:
            setattr(row, name, found.get(name) if is_greater else getattr(before, name))
    for name in ("startup_operations", "startup_opens"):
        both = (found.get(name), getattr(before, name, None))
        setattr(row, name, max((one for one in both if one is not None), default=None))


def _of_counters(io: pl.DataFrame) -> pl.DataFrame:
    if io.is_empty():
        return pl.DataFrame(schema={"key": pl.Int64()})
    amounts = ("operations", "stats")
    of_all = io.group_by("key", "start", "end").agg(pl.sum(*amounts))
    sums = sustained.sums(of_all, WITHIN, amounts)
    longer = sustained.sums(of_all, SUSTAINED, ["operations"])
    where = io.group_by("key", "filesystem").agg(pl.sum("operations")).sort("operations")
    return (
        sums.group_by("key")
        .agg(*_peak("peak_operations", "operations"), *_peak("peak_stats", "stats"))
        .join(
            longer.group_by("key").agg(*_peak("sustained_operations", "operations")),
            on="key",
        )
        .join(where.group_by("key").agg(filesystem_id=pl.last("filesystem")), on="key")
    )


def _of_startup(io: pl.DataFrame) -> pl.DataFrame:
    return (
        io.filter("is_startup")
        .group_by("key")
        .agg(startup_operations=pl.sum("operations"), startup_opens=pl.sum("opens"))
    )


def _of_traces(rpcs: pl.DataFrame) -> pl.DataFrame:
    if rpcs.is_empty():
        return pl.DataFrame(schema={"key": pl.Int64()})
    sums = sustained.sums(rpcs, WITHIN, _RPC_AMOUNTS)
    times = (pl.col("enqueue_us") / pl.col("enqueues")) / (pl.col("others_us") / pl.col("others"))
    at_peak = pl.col("enqueue_us").arg_max()
    return (
        sums.with_columns(
            locks_s=pl.col("enqueue_us") / 1e6,
            share=pl.col("enqueues") / pl.col("rpcs"),
            ratio=pl.when(pl.col("others") > 0).then(times.fill_nan(None)),
        )
        .group_by("key")
        .agg(
            *_peak("peak_locks_s", "locks_s"),
            lock_share=pl.col("share").get(at_peak),
            lock_ratio=pl.col("ratio").get(at_peak),
        )
    )


def _of_impact(impact: pl.DataFrame) -> pl.DataFrame:
    if impact.is_empty():
        return pl.DataFrame(schema={"key": pl.Int64()})
    at_peak = pl.col("impact_s").arg_max()
    return (
        sustained.sums(impact, WITHIN, _IMPACT_AMOUNTS)
        .with_columns(
            share=pl.col("service_us") / pl.col("work_us"),
            times=pl.col("others_us") / pl.col("others_usual_us"),
        )
        .group_by("key")
        .agg(
            *_peak("peak_impact_s", "impact_s"),
            impact_share=pl.col("share").get(at_peak),
            impact_times=pl.col("times").get(at_peak),
        )
    )


def _peak(name: str, amount: str) -> tuple[pl.Expr, pl.Expr]:
    first = pl.col(amount).arg_max()
    return pl.col(amount).max().alias(name), pl.col("end").get(first).alias(f"{name}_at")


def _windows(of_ten_seconds: pl.DataFrame) -> pl.DataFrame:
    return of_ten_seconds.with_columns(end=pl.col("start") + levels.CHARGED_RPCS.width)


def _by_job(*frames: pl.DataFrame) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for frame in frames:
        for row in frame.iter_rows(named=True):
            found.setdefault(row.pop("key"), {}).update(row)
    return found


def _values(since: Mapping[int, datetime]) -> dict[str, Any]:
    return {
        "jobs": list(since),
        "since": list(since.values()),
        "within": WITHIN,
        "enqueue": opcodes.LDLM_ENQUEUE,
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "JOB": Principal.JOB.value,
    }
