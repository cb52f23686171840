"""The most that jobs did within five minutes, from their windows: what their statistics lack."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection
from psycopg import sql

from ioportal.analysis import sustained
from ioportal.analysis.rules.evidence import PEAKS, WITHIN
from ioportal.flags.models import JobEvidence
from ioportal.telemetry import levels, retention
from ioportal.telemetry.models import IoWindow, Principal
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from collections.abc import Mapping

_ENQUEUE = 101  # LDLM_ENQUEUE
_ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
_WINDOW = timedelta(seconds=10)
_WANTED = "unnest(%(jobs)s::bigint[], %(since)s::timestamptz[]) AS wanted (job_id, since)"
_TIME = pl.Datetime("us", "UTC")

_IO = sql.SQL("""
SELECT w.job_id, w.filesystem_id, w.start, w."end", w."end" <= j.started_at + %(within)s,
    sum({operations})::float8, sum({stats})::float8, sum({made})::float8, sum({removed})::float8,
    sum(coalesce(w.open, 0))::float8, sum({operations} - coalesce(w.close, 0))::float8
FROM {wanted}
JOIN jobs_job j ON j.id = wanted.job_id
JOIN telemetry_iowindow w ON w.job_id = wanted.job_id AND w.job_id <> 0 AND w.start >= wanted.since
WHERE w.target_id <> 0 AND w.basis <> %(TOTAL)s AND w."end" > w.start
GROUP BY 1, 2, 3, 4, 5
""").format(
    wanted=sql.SQL(_WANTED),
    operations=metadata_operations("w"),
    **{
        name: sql.SQL(" + ").join(
            sql.SQL("coalesce({}, 0)").format(sql.Identifier("w", kind)) for kind in kinds
        )
        for name, kinds in (
            ("stats", ("getattr", "getxattr", "statfs")),
            ("made", ("mknod", "mkdir", "link")),
            ("removed", ("unlink", "rmdir")),
        )
    },
)
_IO_COLUMNS = {
    "key": pl.Int64(),
    "filesystem": pl.Int64(),
    "start": _TIME,
    "end": _TIME,
    "is_startup": pl.Boolean(),
    **dict.fromkeys(("operations", "stats", "made", "removed", "opens", "explained"), pl.Float64()),
}
# Its own RPCs, and others' enqueues on the same server meanwhile.
_RPCS = sql.SQL("""
SELECT own.job_id, own.start, sum(own.rpcs)::float8, sum(own.enqueues)::float8,
    sum(own.enqueue_us)::float8, sum(t.timed - own.enqueues)::float8,
    sum(t.service_us_sum - own.enqueue_us)::float8
FROM (
    SELECT w.job_id, w.start, w.server_id, sum(w.timed) AS rpcs,
        coalesce(sum(w.timed) FILTER (WHERE w.opcode = %(enqueue)s), 0) AS enqueues,
        coalesce(sum(w.service_us_sum) FILTER (WHERE w.opcode = %(enqueue)s), 0) AS enqueue_us
    FROM {wanted}
    JOIN telemetry_chargedrpc w
        ON w.job_id = wanted.job_id AND w.job_id <> 0 AND w.start >= wanted.since
    JOIN jobs_server s ON s.id = w.server_id AND s.kind = 'mds'
    GROUP BY 1, 2, 3
) own
LEFT JOIN LATERAL (
    SELECT sum(timed) AS timed, sum(service_us_sum) AS service_us_sum FROM telemetry_total t
    WHERE t.server_id = own.server_id AND t.start = own.start AND t.opcode = %(enqueue)s
) t ON true
GROUP BY 1, 2
""").format(wanted=sql.SQL(_WANTED))
_RPC_AMOUNTS = ("rpcs", "enqueues", "enqueue_us", "others", "others_us")
_RPC_COLUMNS = {
    "key": pl.Int64(),
    "start": _TIME,
    **dict.fromkeys(_RPC_AMOUNTS, pl.Float64()),
}
_IMPACT = sql.SQL("""
SELECT w.who, w.start, sum(w.impact_us)::float8 / 1e6
FROM {wanted}
JOIN telemetry_impactwindow w
    ON w.kind = %(JOB)s AND w.who = wanted.job_id AND w.start >= wanted.since
GROUP BY 1, 2
""").format(wanted=sql.SQL(_WANTED))
_IMPACT_COLUMNS = {"key": pl.Int64(), "start": _TIME, "impact_s": pl.Float64()}
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
    since = {job: changed[job] - WITHIN if job in goes_on else _ALWAYS for job in changed}
    values = _values(since)
    io = _frame(_IO, _IO_COLUMNS, values)
    rpcs = _windows(_frame(_RPCS, _RPC_COLUMNS, values))
    impact = _windows(_frame(_IMPACT, _IMPACT_COLUMNS, values))
    with connection.cursor() as cursor:
        cursor.execute(_IMPACT_ALTOGETHER, values)
        altogether: dict[int, float] = dict(cursor.fetchall())
    found = _by_job(_of_counters(io), _of_startup(io), _of_traces(rpcs, io), _of_impact(impact))
    seen = _by_job(_seen(io), _seen(rpcs))
    rows = []
    for job in changed:
        before = goes_on.get(job)
        row = JobEvidence(job_id=job, impact_s=altogether.get(job))
        newest = [moment for moment in seen.get(job, {}).values() if moment]
        row.seen_until = max([*newest, before.seen_until if before else _ALWAYS])
        _set_greatest(row, found.get(job, {}), before)
        rows.append(row)
    JobEvidence.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["job"], update_fields=_COMPUTED
    )


def course(job: int, peak: str) -> pl.DataFrame:
    """Return what a peak of a job is the most of: sums within five minutes.

    Columns start and end of each window of the job, and the amount in the span up to its end.
    """
    values = _values({job: _ALWAYS})
    if peak in _OF_IMPACT:
        windows, amount = _windows(_frame(_IMPACT, _IMPACT_COLUMNS, values)), _OF_IMPACT[peak]
        found = sustained.sums(windows, WITHIN, [amount])
    elif peak in _OF_COUNTERS:
        windows, amount = _frame(_IO, _IO_COLUMNS, values), _OF_COUNTERS[peak]
        found = _sums_of_counters(windows)
    else:
        windows, amount = _windows(_frame(_RPCS, _RPC_COLUMNS, values)), _OF_TRACES[peak]
        found = _sums_of_traces(windows, _frame(_IO, _IO_COLUMNS, values))
    starts = windows.group_by("end").agg(pl.min("start"))
    return (
        found.group_by("end")
        .agg(pl.max(amount).alias("amount"))
        .join(starts, on="end")
        .sort("end")
        .select("start", "end", "amount")
    )


_COMPUTED = [
    field.name
    for field in JobEvidence._meta.concrete_fields  # noqa: SLF001  (documented meta API)
    if field.name != "job"
]
# What is told of the same five minutes as a peak.
_WITH = {"peak_operations": ("filesystem_id",), "peak_locks_s": ("lock_share", "lock_ratio")}


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


# The amount that each peak is the most of.
_OF_COUNTERS = {"peak_operations": "operations", "peak_stats": "stats", "peak_churn": "churn"}
_OF_TRACES = {"peak_locks_s": "locks_s", "peak_unexplained": "unexplained"}
_OF_IMPACT = {"peak_impact_s": "impact_s"}


def _of_counters(io: pl.DataFrame) -> pl.DataFrame:
    if io.is_empty():
        return pl.DataFrame(schema={"key": pl.Int64()})
    where = io.group_by("key", "filesystem").agg(pl.sum("operations")).sort("operations")
    return (
        _sums_of_counters(io)
        .group_by("key")
        .agg(*_peaks(_OF_COUNTERS))
        .join(where.group_by("key").agg(filesystem_id=pl.last("filesystem")), on="key")
    )


def _sums_of_counters(io: pl.DataFrame) -> pl.DataFrame:
    """Return what was done within five minutes, at the end of each window."""
    amounts = ("operations", "stats", "made", "removed")
    of_all = io.group_by("key", "start", "end").agg(pl.sum(*amounts))
    return sustained.sums(of_all, WITHIN, amounts).with_columns(
        churn=pl.min_horizontal("made", "removed")
    )


def _of_startup(io: pl.DataFrame) -> pl.DataFrame:
    return (
        io.filter("is_startup")
        .group_by("key")
        .agg(startup_operations=pl.sum("operations"), startup_opens=pl.sum("opens"))
    )


def _of_traces(rpcs: pl.DataFrame, io: pl.DataFrame) -> pl.DataFrame:
    if rpcs.is_empty():
        return pl.DataFrame(schema={"key": pl.Int64()})
    at_peak = pl.col("enqueue_us").arg_max()
    return (
        _sums_of_traces(rpcs, io)
        .group_by("key")
        .agg(
            *_peaks(_OF_TRACES),
            lock_share=pl.col("share").get(at_peak),
            lock_ratio=pl.col("ratio").get(at_peak),
        )
    )


def _sums_of_traces(rpcs: pl.DataFrame, io: pl.DataFrame) -> pl.DataFrame:
    """Return what was asked within five minutes, at the end of each window."""
    sums = sustained.sums(rpcs, WITHIN, _RPC_AMOUNTS)
    times = (pl.col("enqueue_us") / pl.col("enqueues")) / (pl.col("others_us") / pl.col("others"))
    return sums.with_columns(
        sustained.reaching(io, sums, WITHIN, "explained"),
        locks_s=pl.col("enqueue_us") / 1e6,
        share=pl.col("enqueues") / pl.col("rpcs"),
        ratio=pl.when(pl.col("others") > 0).then(times.fill_nan(None)),
    ).with_columns(unexplained=pl.max_horizontal(pl.col("enqueues") - pl.col("explained"), 0))


def _of_impact(impact: pl.DataFrame) -> pl.DataFrame:
    if impact.is_empty():
        return pl.DataFrame(schema={"key": pl.Int64()})
    sums = sustained.sums(impact, WITHIN, ["impact_s"])
    return sums.group_by("key").agg(*_peaks(_OF_IMPACT))


def _peaks(amounts: Mapping[str, str]) -> list[pl.Expr]:
    return [
        one
        for name, amount in amounts.items()
        for one in (
            pl.col(amount).max().alias(name),
            pl.col("end").get(pl.col(amount).arg_max()).alias(f"{name}_at"),
        )
    ]


def _seen(windows: pl.DataFrame) -> pl.DataFrame:
    return windows.group_by("key").agg(pl.max("start"))


def _windows(of_ten_seconds: pl.DataFrame) -> pl.DataFrame:
    return of_ten_seconds.with_columns(end=pl.col("start") + _WINDOW)


def _by_job(*frames: pl.DataFrame) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for n, frame in enumerate(frames):
        for row in frame.iter_rows(named=True):
            key = row.pop("key")
            told = {f"start{n}": row["start"]} if set(row) == {"start"} else row
            found.setdefault(key, {}).update(told)
    return found


def _values(since: Mapping[int, datetime]) -> dict[str, Any]:
    return {
        "jobs": list(since),
        "since": list(since.values()),
        "within": WITHIN,
        "enqueue": _ENQUEUE,
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "JOB": Principal.JOB.value,
    }


def _frame(
    query: sql.Composed, columns: dict[str, pl.DataType], values: dict[str, Any]
) -> pl.DataFrame:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return pl.DataFrame(cursor.fetchall(), schema=columns, orient="row")
