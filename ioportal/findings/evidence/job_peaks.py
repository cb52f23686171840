"""Peaks of jobs within five minutes, from their windows: not part of their statistics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
from psycopg import sql

from collectors.lustre import opcodes
from ioportal.findings.evidence import harm
from ioportal.findings.models import JobEvidence
from ioportal.jobs.analysis import sustained
from ioportal.rules.evidence import PEAK_SPAN, PEAKS, SUSTAINED_SPAN
from ioportal.telemetry import levels, retention
from ioportal.telemetry.copy import read_frame, replace_frame
from ioportal.telemetry.models import IoWindow, Principal
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
_REQUESTED = "unnest(%(jobs)s::bigint[], %(since)s::timestamptz[]) AS requested (job_id, since)"
_TIME = pl.Datetime("us", "UTC")
_LEVELS = (levels.IO_WINDOWS, levels.ATTRIBUTED_RPCS, levels.IMPACT)

_IO = sql.SQL("""
SELECT w.job_id, w.filesystem_id, w.start, w."end", w."end" <= j.started_at + %(within)s,
    {operations}, coalesce(w.getattr, 0), coalesce(w.open, 0)
FROM {requested}
JOIN jobs_job j ON j.id = requested.job_id
JOIN telemetry_iowindow w
    ON w.job_id = requested.job_id AND w.job_id <> 0 AND w.start >= requested.since
WHERE w.target_id <> 0 AND w.basis <> %(TOTAL)s AND w."end" > w.start
""").format(
    requested=sql.SQL(_REQUESTED),
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
# RPCs of the job, and other enqueues on the same server in the same windows. Sums of integers are
# exact in doubles, and much faster.
_RPCS = sql.SQL("""
WITH own AS MATERIALIZED (
    SELECT w.job_id, w.start, w.server_id, sum(w.timed::float8) AS rpcs,
        coalesce(sum(w.timed::float8) FILTER (WHERE w.opcode = %(enqueue)s), 0) AS enqueues,
        coalesce(sum(w.service_us_sum::float8) FILTER (WHERE w.opcode = %(enqueue)s), 0)
            AS enqueue_us
    FROM {requested}
    JOIN telemetry_attributedrpc w
        ON w.job_id = requested.job_id AND w.job_id <> 0 AND w.start >= requested.since
    JOIN site_server s ON s.id = w.server_id AND s.kind = 'mds'
    GROUP BY 1, 2, 3
),
all_enqueues AS MATERIALIZED (
    SELECT server_id, start, sum(timed::float8) AS timed,
        sum(service_us_sum::float8) AS service_us_sum
    FROM telemetry_rpctotal
    WHERE opcode = %(enqueue)s AND start >= (SELECT min(start) FROM own)
        AND start <= (SELECT max(start) FROM own)
    GROUP BY 1, 2
)
SELECT own.job_id, own.start, own.rpcs, own.enqueues, own.enqueue_us,
    coalesce(t.timed - own.enqueues, 0), coalesce(t.service_us_sum - own.enqueue_us, 0)
FROM own LEFT JOIN all_enqueues t USING (server_id, start)
""").format(requested=sql.SQL(_REQUESTED))
_RPC_AMOUNTS = ("rpcs", "enqueues", "enqueue_us", "others", "others_us")
_RPC_COLUMNS = {
    "key": pl.Int64(),
    "start": _TIME,
    **dict.fromkeys(_RPC_AMOUNTS, pl.Float64()),
}
_IMPACT = sql.SQL("""
SELECT w.principal_id, w.start, w.impact_us, w.work_us, w.all_work_us, w.others_us,
    w.others_usual_us, CASE WHEN w.is_estimated THEN w.impact_us ELSE 0 END
FROM {requested}
JOIN telemetry_impactwindow w
    ON w.kind = %(JOB)s AND w.principal_id = requested.job_id AND w.start >= requested.since
""").format(requested=sql.SQL(_REQUESTED))
_IMPACT_COLUMNS = {
    "key": pl.Int64(),
    "start": _TIME,
    **dict.fromkeys(harm.AMOUNTS, pl.Float64()),
}
_IMPACT_TOTAL = sql.SQL("""
SELECT principal_id, sum(impact_us) / 1e6 FROM telemetry_impactwindow
WHERE kind = %(JOB)s AND principal_id = ANY(%(jobs)s) GROUP BY 1
""")
_PREVIOUS = sql.SQL("""
SELECT {columns}, j.started_at FROM findings_jobevidence e JOIN jobs_job j ON j.id = e.job_id
WHERE e.job_id = ANY(%(jobs)s)
""")


def refresh(changed: Mapping[int, datetime]) -> None:
    """Update the peaks of jobs.

    Reads windows from one span before the first change. Reads all windows of a job if its first
    minutes changed, or if a peak in the changed windows decreased.

    Args:
        changed: start of the changed windows of each job.
    """
    columns = sql.SQL(", ").join(sql.Identifier("e", name) for name in _COLUMNS)
    previous = read_frame(
        _PREVIOUS.format(columns=columns),
        {**_COLUMNS, "started_at": _TIME},
        {"jobs": list(changed)},
    )
    # Expired windows cannot be read again: their peaks are retained.
    dropped = retention.dropped(_LEVELS, *retention.ALWAYS)
    since = pl.DataFrame(
        {"job_id": list(changed), "since": list(changed.values())},
        schema={"job_id": pl.Int64(), "since": _TIME},
    )
    continued = previous.join(since, on="job_id").filter(
        pl.lit(bool(dropped)) | (pl.col("since") >= pl.col("started_at") + PEAK_SPAN)
    )
    rows = _current_peaks(changed, continued)
    decreased = rows.filter(pl.any_horizontal(map(_has_decreased, PEAKS)))["job_id"].to_list()
    if decreased and not dropped:
        unchanged = rows.filter(~pl.col("job_id").is_in(decreased))
        rows = pl.concat(
            [unchanged, _current_peaks(dict.fromkeys(decreased, _ALWAYS), continued.clear())]
        )
    total = "impact_s"
    if dropped:
        rows = rows.with_columns(pl.max_horizontal(total, total + _BEFORE).alias(total))
    replace_frame(JobEvidence, rows.select("job_id", total, *_greatest()), key="job_id")


def _current_peaks(changed: Iterable[int], continued: pl.DataFrame) -> pl.DataFrame:
    """Return the peaks of the windows, joined with the previous peaks of continued jobs."""
    since = dict.fromkeys(changed, _ALWAYS)
    since |= dict(continued.select("job_id", "since").iter_rows())
    values = _values(since, PEAK_SPAN)
    io = read_frame(_IO, _IO_COLUMNS, _values(since, SUSTAINED_SPAN))
    rpcs = _windows(read_frame(_RPCS, _RPC_COLUMNS, values))
    impact = _windows(read_frame(_IMPACT, _IMPACT_COLUMNS, values))
    total = {"key": pl.Int64(), "impact_s": pl.Float64()}
    ended = pl.concat([io.select("key", "end"), rpcs.select("key", "end")])
    peaks = pl.DataFrame({"key": list(since)}, schema={"key": pl.Int64()})
    for frame in (
        ended.group_by("key").agg(seen_until=pl.max("end")),
        _counter_peaks(io),
        _startup_figures(io),
        _trace_peaks(rpcs),
        _impact_peaks(impact),
        read_frame(_IMPACT_TOTAL, total, values),
    ):
        peaks = peaks.join(frame, on="key", how="left")
    return peaks.rename({"key": "job_id"}).join(continued, on="job_id", how="left", suffix=_BEFORE)


def windows(jobs: Iterable[int], figure: str) -> pl.DataFrame:
    """Return the windows behind a peak of some jobs or their start-up figure.

    Columns key (of the job), start, end and amount; windows of one interval are added.
    """
    values = _values(dict.fromkeys(jobs, _ALWAYS), timedelta(0))
    if figure == "peak_impact_s":
        rows = _windows(read_frame(_IMPACT, _IMPACT_COLUMNS, values))
        amount = pl.col("impact_us") / 1e6
    elif figure == "peak_locks_s":
        rows = _windows(read_frame(_RPCS, _RPC_COLUMNS, values))
        amount = pl.col("enqueue_us") / 1e6
    else:
        rows, amount = read_frame(_IO, _IO_COLUMNS, values), pl.col(_COUNTED[figure])
    if figure == "startup_operations":
        rows = rows.filter("is_startup")
    by_interval = rows.group_by("key", "start", "end").agg(amount.sum().alias("amount"))
    return by_interval.sort("key", "end", "start")


_COUNTED = {
    "peak_operations": "operations",
    "sustained_operations": "operations",
    "startup_operations": "operations",
    "peak_stats": "stats",
}
_DTYPES = {"FloatField": pl.Float64(), "DateTimeField": _TIME, "BooleanField": pl.Boolean()}
_COLUMNS = {
    field.attname: _DTYPES.get(field.get_internal_type(), pl.Int64())
    for field in JobEvidence._meta.concrete_fields  # noqa: SLF001  (documented meta API)
}
_BEFORE = "_before"
# Further figures of the same five minutes as a peak.
_AT_PEAK = {
    "peak_operations": ("filesystem_id",),
    "peak_locks_s": ("lock_share", "lock_ratio"),
    "peak_impact_s": ("impact_share", "impact_times", "impact_is_estimated"),
}


def _has_decreased(peak: str) -> pl.Expr:
    """Return whether a peak in the changed windows decreased."""
    now, before = pl.col(peak).fill_null(0), pl.col(peak + _BEFORE)
    return _was_in_changed_windows(peak) & (now < before)


def _was_in_changed_windows(peak: str) -> pl.Expr:
    return pl.col(f"{peak}_at{_BEFORE}") > pl.col("since")


def _greatest() -> Iterator[pl.Expr]:
    """Yield each peak: the greater of current and previous, or the only one."""
    for peak in PEAKS:
        now, before = pl.col(peak), pl.col(peak + _BEFORE)
        is_now = before.is_null() | (now > before) | (now == before) & _was_in_changed_windows(peak)
        for name in (peak, f"{peak}_at", *_AT_PEAK.get(peak, ())):
            yield pl.when(is_now).then(name).otherwise(name + _BEFORE).alias(name)
    for name in ("startup_operations", "startup_opens"):
        yield pl.max_horizontal(name, name + _BEFORE).alias(name)
    until = pl.max_horizontal("seen_until", f"seen_until{_BEFORE}").fill_null(_ALWAYS)
    yield until.alias("seen_until")


def _counter_peaks(io: pl.DataFrame) -> pl.DataFrame:
    amounts = ("operations", "stats")
    sums = sustained.sums(io, PEAK_SPAN, amounts)
    longer = sustained.sums(io, SUSTAINED_SPAN, ["operations"])
    peaks = sums.group_by("key").agg(
        *_peak("peak_operations", "operations"), *_peak("peak_stats", "stats")
    )
    sustained_peaks = longer.group_by("key").agg(*_peak("sustained_operations", "operations"))
    return peaks.join(sustained_peaks, on="key").join(_filesystem_at_peak(io, peaks), on="key")


def _filesystem_at_peak(io: pl.DataFrame, peaks: pl.DataFrame) -> pl.DataFrame:
    """Return the filesystem with most operations at each job's peak."""
    at, start, end = pl.col("peak_operations_at"), pl.col("start"), pl.col("end")
    at_peak = io.join(peaks.select("key", "peak_operations_at"), on="key").filter(
        end <= at, (start >= at - PEAK_SPAN) | (end == at)
    )
    by_filesystem = at_peak.group_by("key", "filesystem").agg(pl.sum("operations"))
    ordered = by_filesystem.sort("operations", "filesystem")
    return ordered.group_by("key").agg(filesystem_id=pl.last("filesystem"))


def _startup_figures(io: pl.DataFrame) -> pl.DataFrame:
    return (
        io.filter("is_startup")
        .group_by("key")
        .agg(startup_operations=pl.sum("operations"), startup_opens=pl.sum("opens"))
    )


def _trace_peaks(rpcs: pl.DataFrame) -> pl.DataFrame:
    sums = sustained.sums(rpcs, PEAK_SPAN, _RPC_AMOUNTS)
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


def _impact_peaks(impact: pl.DataFrame) -> pl.DataFrame:
    at_peak = pl.col("impact_us").arg_max()
    return (
        sustained.sums(impact, PEAK_SPAN, harm.AMOUNTS)
        .with_columns(**harm.FIGURES)
        .group_by("key")
        .agg(
            *_peak("peak_impact_s", "peak_impact_s"),
            pl.col(_AT_PEAK["peak_impact_s"]).get(at_peak),
        )
    )


def _peak(name: str, amount: str) -> tuple[pl.Expr, pl.Expr]:
    first = pl.col(amount).arg_max()
    return pl.col(amount).max().alias(name), pl.col("end").get(first).alias(f"{name}_at")


def _windows(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(end=pl.col("start") + levels.ATTRIBUTED_RPCS.width)


def _values(changed: Mapping[int, datetime], span: timedelta) -> dict[str, Any]:
    """Return query values for windows from one span before the first change."""
    return {
        "jobs": list(changed),
        "since": [moment - span for moment in changed.values()],
        "within": PEAK_SPAN,
        "enqueue": opcodes.LDLM_ENQUEUE,
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "JOB": Principal.JOB.value,
    }
