"""Evidence for rules from statistics, peaks and loads, with the context of each subject."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection
from psycopg import sql

from collectors.tables import METADATA_OPERATIONS
from ioportal.findings.evidence import harm, usual_values
from ioportal.jobs import similar_jobs
from ioportal.jobs.analysis.open_meaning import FAILURES_COUNTED_UNTIL
from ioportal.jobs.analysis.quality import GOOD_AMBIGUOUS
from ioportal.jobs.application_names import application_name
from ioportal.jobs.models import JobStatistics
from ioportal.metrics import METRICS
from ioportal.rules.evidence import DAY, EVIDENCE, JOB_EVIDENCE, PEAKS
from ioportal.rules.rule import Subject
from ioportal.telemetry.copy import read_frame

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ioportal.findings.evidence.usual_values import UsualOn

_TIME = pl.Datetime("us", "UTC")
_CONSTANTS = {
    "counted": list(FAILURES_COUNTED_UNTIL),
    "ambiguous": GOOD_AMBIGUOUS,
}

# Columns about a subject in addition to its evidence.
CONTEXT = {
    "cluster": pl.Int64(),
    "filesystem": pl.Int64(),
    "queue": pl.String(),
    "owner": pl.String(),
    "application": pl.String(),  # of a job
    # Quality of metadata counters, byte counters, traces and impact; null: not computed yet.
    "quality": pl.String(),
    "bytes_quality": pl.String(),  # null: falls back to `quality`
    "trace_quality": pl.String(),
    "impact_quality": pl.String(),
    "until": _TIME,  # end of the latest data in the evidence
    # Time and filesystem of the highest load; null: time and filesystem of the evidence.
    "load_at": _TIME,
    "load_filesystem": pl.Int64(),
}


@dataclass(frozen=True)
class Evidence:
    """Evidence of subjects of one kind: columns of `EVIDENCE` of the kind, and `CONTEXT`."""

    kind: Subject
    frame: pl.DataFrame


# End of the latest data; of an ended job its end.
_UNTIL = sql.SQL("""
coalesce(j.ended_at, greatest(
    j.started_at + make_interval(secs => s.duration_s), e.seen_until, j.started_at
))
""")
_JOBS = sql.SQL("""
SELECT j.id, j.core_count, {metrics}, {kinds}, {peaks},
    s.counted_enqueues, e.startup_operations, e.startup_opens, e.lock_share, e.lock_ratio,
    e.impact_s, e.impact_share, e.impact_times, e.impact_is_estimated::int::float8,
    versions.counted, j.ended_at IS NOT NULL,
    {size_class}, {user_and_name}, j.started_at,
    j.cluster_id, e.filesystem_id, s.ambiguous_share <= %(ambiguous)s,
    s.ambiguous_share + s.contradicted_share <= %(ambiguous)s, {until}, e.peak_operations_at
FROM jobs_job j
JOIN jobs_jobstatistics s ON s.job_id = j.id
LEFT JOIN findings_jobevidence e ON e.job_id = j.id
LEFT JOIN LATERAL (
    SELECT bool_and(
        string_to_array(substring(v.version from '^\\d+\\.\\d+'), '.')::int[] <= %(counted)s::int[]
    ) AS counted
    FROM site_server m
    JOIN site_serverversion v ON v.server_id = m.id
    WHERE m.filesystem_id = e.filesystem_id AND m.kind = 'mds'
        AND v.since < coalesce(j.ended_at, now())
        AND NOT EXISTS (
            SELECT 1 FROM site_serverversion later
            WHERE later.server_id = m.id AND later.since > v.since AND later.since <= j.started_at
        )
) versions ON true
WHERE {which} AND j.started_at IS NOT NULL
""")
_JOBS_TEXTS = sql.SQL("""
SELECT j.id, j.queue, j.owner, j.name, s.quality,
    CASE WHEN s.quality = 'good' THEN coalesce(s.bytes_quality, s.quality) ELSE s.quality END
FROM jobs_job j JOIN jobs_jobstatistics s ON s.job_id = j.id
WHERE {which} AND j.started_at IS NOT NULL
""")
_BY_KEY = sql.SQL("j.id = ANY(%(jobs)s)")
_ENDED = sql.SQL("j.ended_at >= %(start)s AND j.ended_at < %(end)s")
_JOB_COLUMNS = {
    "subject": pl.Int64(),
    "core_count": pl.Float64(),
    **{metric.name: pl.Float64() for metric in METRICS},
    **{f"count_{kind}": pl.Float64() for kind in METADATA_OPERATIONS},
    **PEAKS,
    **{
        name: JOB_EVIDENCE[name]
        for name in (
            "counted_enqueues",
            "startup_operations",
            "startup_opens",
            "lock_share",
            "lock_ratio",
            "impact_s",
            "impact_share",
            "impact_times",
            "impact_is_estimated",
            "failures_counted",
            "has_ended",
        )
    },
    "size_class": pl.Int64(),
    "user_and_name": pl.Int64(),
    "started_at": _TIME,
    "cluster": CONTEXT["cluster"],
    "filesystem": CONTEXT["filesystem"],
    # Few operations are ambiguous; few are ambiguous or contradicted. RPCs from a node of a job
    # with another's id are contradicted: they are in its measured impact, which the node proves.
    # Lost operations lower an estimated impact: it is good if those counted are the job's.
    "is_attributed": pl.Boolean(),
    "is_clear": pl.Boolean(),
    "until": CONTEXT["until"],
    "load_at": CONTEXT["load_at"],
}
_TEXT_COLUMNS = {
    "subject": pl.Int64(),
    "queue": pl.String(),
    "owner": pl.String(),
    "name": pl.String(),
    "quality": pl.String(),
    "bytes_quality": pl.String(),
}


def for_jobs(jobs: Collection[int], usual_on: UsualOn | None = usual_values.cached) -> Evidence:
    """Return the evidence of some jobs; jobs without statistics are omitted.

    Args:
        jobs: their keys.
        usual_on: source of the usual values of similar jobs; None: none are needed.
    """
    return _jobs(_BY_KEY, {"jobs": sorted(jobs)}, usual_on)


def for_ended_jobs(start: datetime, end: datetime, usual_on: UsualOn | None) -> Evidence:
    """Return the evidence of jobs that ended in [start, end); `usual_on` None: no usual values."""
    return _jobs(_ENDED, {"start": start, "end": end}, usual_on)


def _jobs(which: sql.SQL, values: dict[str, Any], usual_on: UsualOn | None) -> Evidence:
    query = _JOBS.format(
        which=which,
        metrics=_columns("s", (metric.name for metric in METRICS)),
        kinds=_columns("s", (f"count_{kind}" for kind in METADATA_OPERATIONS)),
        peaks=_columns("e", PEAKS),
        size_class=similar_jobs.SIZE_CLASS,
        user_and_name=similar_jobs.USER_AND_NAME,
        until=_UNTIL,
    )
    numbers = read_frame(query, _JOB_COLUMNS, {**values, **_CONSTANTS})
    texts = frame_of(_JOBS_TEXTS.format(which=which), _TEXT_COLUMNS, values)
    if numbers.is_empty():
        return Evidence(Subject.JOB, _empty(Subject.JOB))
    frame = numbers.join(texts, on="subject").with_columns(
        pl.col("subject").cast(pl.String),
        load_filesystem="filesystem",
        application=application_name(pl.col("name")),
        trace_quality=_good_if(pl.col("is_clear")),
        impact_quality=_good_if(
            pl.when(pl.col("impact_is_estimated") > 0).then("is_clear").otherwise("is_attributed")
        ),
    )
    frame = harm.with_capacity(usual_values.with_usual_values(frame, usual_on))
    return Evidence(Subject.JOB, frame.select(*JOB_EVIDENCE, *CONTEXT))


def _good_if(condition: pl.Expr) -> pl.Expr:
    good, partial = JobStatistics.Quality.GOOD, JobStatistics.Quality.PARTIAL
    return pl.when(condition).then(pl.lit(good.value)).otherwise(pl.lit(partial.value))


def by_day(subjects: pl.DataFrame) -> Iterator[tuple[datetime, pl.DataFrame]]:
    """Group subjects by the day of their latest data; yield the latest time and rows of each."""
    days = subjects.with_columns(day=pl.col("until").dt.date()).sort("day").partition_by("day")
    for day in days:
        until: Any = day["until"].max()
        yield until, day.drop("day")


_LATEST_DATA = sql.SQL("""
SELECT flagged.owner, flagged.project, max({until})
FROM unnest(%(owners)s::text[], %(projects)s::text[], %(untils)s::timestamptz[])
    AS flagged (owner, project, until)
JOIN jobs_job j ON (j.owner = nullif(flagged.owner, '') OR j.project = nullif(flagged.project, ''))
    AND (j.ended_at IS NULL OR j.ended_at > flagged.until)
JOIN jobs_jobstatistics s ON s.job_id = j.id
LEFT JOIN findings_jobevidence e ON e.job_id = j.id
WHERE j.started_at IS NOT NULL
GROUP BY flagged.owner, flagged.project, flagged.until HAVING max({until}) > flagged.until
""").format(until=_UNTIL)


def latest_of_groups(
    owners: Mapping[str, datetime], projects: Mapping[str, datetime]
) -> pl.DataFrame:
    """Return the end of the latest data of users and projects with data after some times.

    Args:
        owners: a time for each user.
        projects: a time for each project.

    Returns:
        Columns owner and project (one of them is empty) and until.
    """
    none = [""]
    values = {
        "owners": [*owners, *none * len(projects)],
        "projects": [*none * len(owners), *projects],
        "untils": [*owners.values(), *projects.values()],
    }
    columns = {"owner": pl.String(), "project": pl.String(), "until": _TIME}
    return frame_of(_LATEST_DATA, columns, values)


_DAY_OF_GROUPS = sql.SQL("""
SELECT wanted.owner, wanted.project, max({until})
FROM unnest(%(owners)s::text[], %(projects)s::text[]) AS wanted (owner, project)
JOIN jobs_job j ON j.owner = nullif(wanted.owner, '') OR j.project = nullif(wanted.project, '')
LEFT JOIN jobs_jobstatistics s ON s.job_id = j.id
LEFT JOIN findings_jobevidence e ON e.job_id = j.id
WHERE j.started_at < %(end)s AND (j.ended_at IS NULL OR j.ended_at >= %(start)s)
    AND {until} >= %(start)s AND {until} < %(end)s
GROUP BY 1, 2 HAVING NOT bool_or(
    j.id IN (SELECT job_id FROM jobs_dirtystatistics)
    OR j.id IN (SELECT job_id FROM jobs_dirtyevidence)
)
""").format(until=_UNTIL)


def complete_groups(
    owners: Sequence[str], projects: Sequence[str], moment: datetime
) -> pl.DataFrame:
    """Return the users and projects of whose jobs none of a day awaits statistics or evaluation.

    Args:
        owners: users.
        projects: projects.
        moment: any time of the UTC day.

    Returns:
        Columns owner and project (one of them is empty) and until, the end of their latest data.
    """
    start = datetime.combine(moment.astimezone(UTC).date(), time(), UTC)
    values = {
        "owners": [*owners, *[""] * len(projects)],
        "projects": [*[""] * len(owners), *projects],
        "start": start,
        "end": start + DAY,
    }
    columns = {"owner": pl.String(), "project": pl.String(), "until": _TIME}
    return frame_of(_DAY_OF_GROUPS, columns, values)


def with_context(kind: Subject, frame: pl.DataFrame, filesystem: int | None = None) -> Evidence:
    """Add missing columns of the kind; subjects other than jobs always have good quality."""
    good = pl.lit(JobStatistics.Quality.GOOD.value)
    values: dict[str, pl.Expr] = {
        "filesystem": pl.lit(filesystem, dtype=pl.Int64()),
        "quality": good,
        "bytes_quality": good,
        "trace_quality": good,
        "impact_quality": good,
    }
    missing = {
        name: values.get(name, pl.lit(None, dtype=dtype))
        for name, dtype in {**EVIDENCE[kind], **CONTEXT}.items()
        if name not in frame.columns
    }
    return Evidence(kind, frame.with_columns(**missing).select(*EVIDENCE[kind], *CONTEXT))


def _empty(kind: Subject) -> pl.DataFrame:
    return pl.DataFrame(schema={**EVIDENCE[kind], **CONTEXT})


def _columns(table: str, names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL("{}::float8").format(sql.Identifier(table, name)) for name in names
    )


def frame_of(
    query: sql.Composable, columns: dict[str, pl.DataType], values: dict[str, Any]
) -> pl.DataFrame:
    """Return the rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return pl.DataFrame(cursor.fetchall(), schema=columns, orient="row")
