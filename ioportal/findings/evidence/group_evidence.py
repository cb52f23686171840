"""Evidence about groups of jobs (applications, users, campaigns and projects) over a day."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl
from django.db import connection
from django.db.models import Q
from psycopg import sql

from ioportal.findings.evidence import accused_parts, harm
from ioportal.findings.evidence.subject_evidence import Evidence, with_context
from ioportal.jobs.analysis import sustained
from ioportal.load.impact import job_groups
from ioportal.load.impact.job_groups import Application
from ioportal.rules import capacity
from ioportal.rules.evidence import DAY, HOUR, PEAK_SPAN
from ioportal.rules.rule import GROUPS, PROJECT_GROUPS, Subject
from ioportal.telemetry import buckets, levels, piecewise
from ioportal.telemetry.copy import read_frame
from ioportal.telemetry.models import IoWindow, JobGroup, Principal
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

LOOK_BACK = 2 * DAY  # of the evidence of a group
# Groups whose jobs did less in their whole runs are no campaign at any threshold: their windows are
# not read, and the sum of the runs stands for the most within a day.
_MIN_OPERATIONS = 1_000_000
_TIME = pl.Datetime("us", "UTC")
_WIDTH = levels.IO_TEN_MINUTES.width
_JOBS = sql.SQL("""
SELECT j.id, j.owner, j.project, j.name,
    CASE WHEN s.quality = 'good' THEN coalesce(s.metadata_operations, 0) ELSE 0 END
FROM jobs_job j JOIN jobs_jobstatistics s ON s.job_id = j.id
WHERE (j.owner = ANY(%(owners)s) OR j.project = ANY(%(projects)s))
    AND j.started_at < %(until)s AND (j.ended_at IS NULL OR j.ended_at > %(since)s)
""")
_JOB_COLUMNS = {
    "job": pl.Int64(),
    **dict.fromkeys(("owner", "project", "name"), pl.String()),
    "operations": pl.Float64(),
}
# Windows longer than a day count in part. The first read of a target is a total of unknown
# duration: it counts if the job had started within a day.
_BY_HOUR = sql.SQL("""
SELECT w.job_id, w.filesystem_id, date_trunc('hour', w.{time}, 'UTC'),
    sum({operations} * least(1, extract(epoch FROM %(day)s) /
        greatest(extract(epoch FROM w."end" - w.start), 1)))::float8,
    sum({operations} * least(1, extract(epoch FROM %(hour)s) /
        greatest(extract(epoch FROM w."end" - w.start), 1)))::float8
FROM {table} w JOIN jobs_job j ON j.id = w.job_id
WHERE w.job_id <> 0 AND w.job_id = ANY(%(jobs)s) AND w.target_id <> 0
    AND w.{time} >= {start} AND w.{time} < {end}
    AND (w.basis <> %(TOTAL)s OR j.started_at >= w."end" - %(day)s)
GROUP BY 1, 2, 3
""")
_BY_HOUR_COLUMNS = {
    "job": pl.Int64(),
    "filesystem": pl.Int64(),
    "hour": _TIME,
    "operations": pl.Float64(),
    "hour_operations": pl.Float64(),  # of a longer interval, the mean of an hour
}
_IMPACT = sql.SQL("""
SELECT w.principal_id, w.start, sum(w.impact_us)::float8, sum(w.work_us)::float8,
    sum(w.all_work_us)::float8, sum(w.others_us)::float8, sum(w.others_usual_us)::float8,
    coalesce(sum(w.impact_us) FILTER (WHERE w.is_estimated), 0)::float8
FROM telemetry_impactwindow w
WHERE w.kind = ANY(%(kinds)s) AND w.principal_id = ANY(%(principals)s)
    AND w.start >= %(since)s AND w.start < %(until)s
GROUP BY 1, 2
""")
_KINDS = {
    Subject.USER: JobGroup.Kind.USER,
    Subject.PROJECT: JobGroup.Kind.PROJECT,
    Subject.APPLICATION: JobGroup.Kind.APPLICATION,
    Subject.CAMPAIGN: JobGroup.Kind.CAMPAIGN,
}


class Groups(NamedTuple):
    """Users with their applications, and projects with their campaigns."""

    owners: Sequence[str]
    projects: Sequence[str]

    @classmethod
    def of_jobs(cls, pairs: Iterable[tuple[str, str]]) -> Groups:
        """Return the groups of jobs by owner and project."""
        known = list(pairs)
        owners, projects = ({pair[n] for pair in known} - {""} for n in range(2))
        return cls(sorted(owners), sorted(projects))


def for_groups(groups: Groups, until: datetime, *, with_accused: bool = True) -> Iterator[Evidence]:
    """Yield the evidence of groups at a time, of each kind, narrow before wide.

    Args:
        groups: users and projects.
        until: end of the data.
        with_accused: whether current flags on the parts of a group explain its impact; flags on
            evidence that was yielded before count.
    """
    first = buckets.floor(until, HOUR) + HOUR - LOOK_BACK
    jobs = _jobs(groups, first, until)
    members = {kind: _members(kind, jobs, groups) for kind in GROUPS}
    total = pl.sum("operations").over("key")
    large = [
        frame.filter(total >= _MIN_OPERATIONS, pl.col("operations") > 0)["job"]
        for frame in members.values()
    ]
    by_hour = operations_by_hour(pl.concat(large).unique().to_list(), first, until)
    stored = _stored(members)
    windows = impact_windows(stored["group"].to_list(), until - DAY, until)
    impact = _impact(stored, windows)
    of_parts = _of_parts(stored, windows, members, until)
    for kind, frame in members.items():
        if frame.is_empty():
            continue
        accused = accused_parts.accused(frame["job"].to_list(), stored)
        if not with_accused:
            accused = accused.clear()
        explained = accused_parts.explained(kind, frame, of_parts, accused)
        rows = (
            _operations(frame, by_hour)
            .join(impact.filter(part_kind=kind).drop("part_kind"), on="key", how="left")
            .join(explained, on="key", how="left")
            .rename({"key": "subject"})
            .with_columns(until=pl.lit(until, _TIME))
        )
        yield with_context(kind, rows)


def _jobs(groups: Groups, since: datetime, until: datetime) -> pl.DataFrame:
    values = {**groups._asdict(), "since": since, "until": until}
    with connection.cursor() as cursor:
        cursor.execute(_JOBS, values)
        jobs = pl.DataFrame(cursor.fetchall(), schema=_JOB_COLUMNS, orient="row")
    return jobs.with_columns(**job_groups.keys()).drop("owner", "name")


def _members(kind: Subject, jobs: pl.DataFrame, groups: Groups) -> pl.DataFrame:
    """Return the jobs of the groups of a kind: key, job, its figures, owner and parts.

    Jobs of other owners are incomplete: only those in the projects were read.
    """
    whole, names = (
        ("project", groups.projects) if kind in PROJECT_GROUPS else ("user", groups.owners)
    )
    return jobs.filter(pl.col(whole).is_in(names), pl.col(kind).is_not_null()).select(
        "job",
        "operations",
        *GROUPS[: GROUPS.index(kind)],
        key=kind,
        owner=pl.lit(None, pl.String) if kind in PROJECT_GROUPS else pl.col("user"),
    )


def operations_by_hour(jobs: list[int], since: datetime, until: datetime) -> pl.DataFrame:
    """Return metadata operations of jobs by hour and filesystem.

    A poll interval counts where it starts.
    """
    values = {
        "jobs": jobs,
        "since": since,
        "day": DAY,
        "hour": HOUR,
        "TOTAL": IoWindow.Basis.TOTAL.value,
    }
    edges = (buckets.floor(since, _WIDTH), buckets.ceil(until, _WIDTH))
    frames = [pl.DataFrame(schema=_BY_HOUR_COLUMNS)]
    for piece in piecewise.pieces(levels.IO_TEN_MINUTES, *edges) if jobs else ():
        is_rolled_up = piece.level is levels.IO_TEN_MINUTES
        query = _BY_HOUR.format(
            table=sql.Identifier(piece.level.table),
            time=sql.Identifier(piece.level.time),
            operations=sql.SQL("w.metadata_operations")
            if is_rolled_up
            else metadata_operations("w"),
            start=sql.Literal(piece.start),
            end=sql.Literal(piece.end),
        )
        frames.append(read_frame(query, _BY_HOUR_COLUMNS, values))
    return pl.concat(frames)


def jobs_of(kind: str, texts: Collection[str], since: datetime, until: datetime) -> pl.DataFrame:
    """Return the jobs of groups with good data in [since, until): columns subject and job."""
    if kind in PROJECT_GROUPS:
        groups = Groups([], sorted({job_groups.project_of(kind, text) for text in texts}))
    else:
        groups = Groups(sorted({Application.from_text(text).user for text in texts}), [])
    jobs = _jobs(groups, since, until).rename({kind: "subject"})
    is_member = pl.col("subject").is_in(list(texts)) & (pl.col("operations") > 0)
    return jobs.filter(is_member).select("subject", "job")


def keys_of(kind: str, texts: Collection[str]) -> list[int]:
    """Return the keys of groups of a kind with impact windows."""
    groups = JobGroup.objects.filter(kind=_KINDS[Subject(kind)], text__in=texts)
    return list(groups.values_list("pk", flat=True))


def within_a_day(by_hour: pl.DataFrame) -> pl.DataFrame:
    """Return the operations of each key in the 24 hours that end with each of its hours.

    Args:
        by_hour: columns key, hour and operations; an hour may recur.
    """
    hours = by_hour.group_by("key", "hour").agg(pl.sum("operations")).sort("key", "hour")
    return hours.rolling("hour", period=DAY, group_by="key").agg(pl.sum("operations"))


def _operations(members: pl.DataFrame, by_hour: pl.DataFrame) -> pl.DataFrame:
    """Return the most operations of each group in 24 hours and within an hour.

    Columns of `GROUP_EVIDENCE` about operations, and the time and place of the busiest hour.
    """
    narrower = [kind for kind in GROUPS if kind in members.columns]
    hours = members.drop("operations").join(by_hour, on="job")
    totals = within_a_day(hours).sort("key", "operations", "hour", descending=[False, True, False])
    peaks = totals.group_by("key").agg(
        peak=pl.first("hour"), metadata_operations=pl.first("operations")
    )
    last_day = pl.col("hour").is_between(pl.col("peak") - DAY, pl.col("peak"), closed="right")
    jobs = (
        hours.join(peaks, on="key")
        .filter(last_day)
        .group_by("key", "job", *narrower)
        .agg(pl.sum("operations"))
        .filter(pl.col("operations") > 0)
    )
    largest_part = (
        jobs.unpivot(narrower, index=["key", "job", "operations"], value_name="part")
        .drop_nulls("part")
        .group_by("key", "variable", "part")
        .agg(
            part_operations=pl.sum("operations"),
            part_jobs=pl.len(),
            part_largest_job_operations=pl.max("operations"),
        )
        .sort("part_operations", "part_jobs", "part", descending=[True, True, False])
        .unique("key", keep="first", maintain_order=True)
        .drop("part", "variable")
    )
    busiest = (
        harm.with_capacity(
            hours.group_by("key", "filesystem", "hour").agg(pl.sum("hour_operations"))
        )
        .sort(capacity.share("hour_operations", HOUR), "hour", descending=[True, False])
        .unique("key", keep="first", maintain_order=True)
        .rename({"hour": "load_at", "filesystem": "load_filesystem"})
    )
    whole_runs = members.group_by("key").agg(pl.first("owner"), upper_bound=pl.sum("operations"))
    largest = jobs.group_by("key").agg(jobs=pl.len(), largest_job_operations=pl.max("operations"))
    return (
        whole_runs.join(peaks.drop("peak"), on="key", how="left")
        .with_columns(metadata_operations=pl.coalesce("metadata_operations", "upper_bound"))
        .drop("upper_bound")
        .join(largest, on="key", how="left")
        .join(largest_part, on="key", how="left")
        .join(busiest, on="key", how="left")
    )


def _stored(members: Mapping[Subject, pl.DataFrame]) -> pl.DataFrame:
    """Return the stored groups among some groups and their parts: group, part_kind and part."""
    wanted = Q(pk=None)
    for kind, frame in members.items():
        wanted |= Q(kind=_KINDS[kind], text__in=frame["key"].unique().to_list())
        for part in frame.columns & _KINDS.keys():
            texts = frame[part].unique().drop_nulls().to_list()
            wanted |= Q(kind=_KINDS[Subject(part)], text__in=texts)
    labels = {stored.value: kind.value for kind, stored in _KINDS.items()}
    rows = JobGroup.objects.filter(wanted).values_list("pk", "kind", "text")
    return pl.DataFrame(
        [(pk, labels[kind], text) for pk, kind, text in rows],
        schema={"group": pl.Int64(), "part_kind": pl.String(), "part": pl.String()},
        orient="row",
    )


def _impact(stored: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """Return the impact of stored groups: part_kind, key and figures of `GROUP_EVIDENCE`."""
    totals = windows.group_by("key").agg(impact_s=pl.sum("impact_us") / 1e6)
    sums = sustained.sums(windows, PEAK_SPAN, harm.AMOUNTS)
    peaks = sums.sort("impact_us", "end", descending=[True, False]).unique(
        "key", keep="first", maintain_order=True
    )
    figures = peaks.select(group="key", **harm.FIGURES).join(
        totals.rename({"key": "group"}), on="group"
    )
    return (
        stored.join(figures, on="group")
        .with_columns(pl.col("impact_is_estimated").cast(pl.Float64))
        .rename({"part": "key"})
        .drop("group")
    )


def _of_parts(
    stored: pl.DataFrame,
    windows: pl.DataFrame,
    members: Mapping[Subject, pl.DataFrame],
    until: datetime,
) -> pl.DataFrame:
    """Return the impact windows of groups and their jobs: columns of `parts.WINDOWS`."""
    if windows.is_empty():
        return pl.DataFrame(schema=accused_parts.WINDOWS)
    jobs = pl.concat(frame["job"] for frame in members.values()).unique().to_list()
    of_jobs = _windows([Principal.JOB.value], jobs, until - DAY, until)
    of_groups = stored.join(windows.rename({"key": "group"}), on="group")
    return pl.concat(
        [
            of_groups.select(*accused_parts.WINDOWS),
            of_jobs.select(
                pl.col("key").cast(pl.String).alias("part"),
                "start",
                "impact_us",
                part_kind=pl.lit(Subject.JOB.value),
            ).select(*accused_parts.WINDOWS),
        ]
    )


def impact_windows(groups: list[int], since: datetime, until: datetime) -> pl.DataFrame:
    """Return the impact windows of groups: key (of the group), start, end and amounts."""
    return _windows(JobGroup.Kind.values, groups, since, until)


def _windows(
    kinds: list[int], principals: list[int], since: datetime, until: datetime
) -> pl.DataFrame:
    columns = {
        "key": pl.Int64(),
        "start": _TIME,
        **dict.fromkeys(harm.AMOUNTS, pl.Float64()),
    }
    values = {"kinds": kinds, "principals": principals, "since": since, "until": until}
    windows = read_frame(_IMPACT, columns, values)
    return windows.with_columns(end=pl.col("start") + levels.IMPACT.width)
