"""Evidence about groups of jobs (applications, users and projects) over a day."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl
from django.db import connection
from django.db.models import Q
from psycopg import sql

from ioportal.activity import job_groups
from ioportal.activity.job_groups import Application
from ioportal.analysis import sustained
from ioportal.analysis.rules.evidence import DAY, HOUR, PEAK_SPAN
from ioportal.analysis.rules.rule import GROUPS, Subject
from ioportal.flags import impact_figures
from ioportal.flags.evidence import Evidence, with_context
from ioportal.telemetry import buckets, levels, piecewise
from ioportal.telemetry.copy import read_frame
from ioportal.telemetry.models import IoWindow, JobGroup
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
    CASE WHEN s.quality = 'good' THEN coalesce(s.metadata_operations, 0) ELSE 0 END,
    coalesce(e.peak_impact_s, 0), e.impact_share
FROM jobs_job j JOIN jobs_jobstatistics s ON s.job_id = j.id
LEFT JOIN flags_jobevidence e ON e.job_id = j.id
WHERE (j.owner = ANY(%(owners)s) OR j.project = ANY(%(projects)s))
    AND j.started_at < %(until)s AND (j.ended_at IS NULL OR j.ended_at > %(since)s)
""")
_JOB_COLUMNS = {
    "job": pl.Int64(),
    **dict.fromkeys(("owner", "project", "name"), pl.String()),
    "operations": pl.Float64(),
    "part_impact_s": pl.Float64(),
    "part_impact_share": pl.Float64(),
}
# Windows longer than a day count in part. The first read of a target is a total of unknown
# duration: it counts if the job had started within a day.
_BY_HOUR = sql.SQL("""
SELECT w.job_id, date_trunc('hour', w.{time}, 'UTC'), sum(
    {operations} * least(1, extract(epoch FROM %(day)s) /
        greatest(extract(epoch FROM w."end" - w.start), 1))
)::float8
FROM {table} w JOIN jobs_job j ON j.id = w.job_id
WHERE w.job_id <> 0 AND w.job_id = ANY(%(jobs)s) AND w.target_id <> 0
    AND w.{time} >= {start} AND w.{time} < {end}
    AND (w.basis <> %(TOTAL)s OR j.started_at >= w."end" - %(day)s)
GROUP BY 1, 2
""")
_BY_HOUR_COLUMNS = {"job": pl.Int64(), "hour": _TIME, "operations": pl.Float64()}
_IMPACT = sql.SQL("""
SELECT w.principal_id, w.start, sum(w.impact_us)::float8, sum(w.work_us)::float8,
    sum(w.all_work_us)::float8, sum(w.others_us)::float8, sum(w.others_usual_us)::float8,
    coalesce(sum(w.impact_us) FILTER (WHERE w.is_estimated), 0)::float8
FROM telemetry_impactwindow w
WHERE w.kind = ANY(%(kinds)s) AND w.principal_id = ANY(%(groups)s)
    AND w.start >= %(since)s AND w.start < %(until)s
GROUP BY 1, 2
""")
_KINDS = {
    Subject.USER: JobGroup.Kind.USER,
    Subject.PROJECT: JobGroup.Kind.PROJECT,
    Subject.APPLICATION: JobGroup.Kind.APPLICATION,
}


class Groups(NamedTuple):
    """Users with their applications, and projects."""

    owners: Sequence[str]
    projects: Sequence[str]

    @classmethod
    def of_jobs(cls, pairs: Iterable[tuple[str, str]]) -> Groups:
        """Return the groups of jobs by owner and project."""
        known = list(pairs)
        owners, projects = ({pair[n] for pair in known} - {""} for n in range(2))
        return cls(sorted(owners), sorted(projects))


def for_groups(groups: Groups, until: datetime) -> Iterator[Evidence]:
    """Yield the evidence of groups at a time, of each kind."""
    first = buckets.floor(until, HOUR) + HOUR - LOOK_BACK
    jobs = _jobs(groups, first, until)
    members = {kind: _members(kind, jobs, groups) for kind in GROUPS}
    total = pl.sum("operations").over("key")
    large = [
        frame.filter(total >= _MIN_OPERATIONS, pl.col("operations") > 0)["job"]
        for frame in members.values()
    ]
    by_hour = operations_by_hour(pl.concat(large).unique().to_list(), first, until)
    impact = _impact(members, until)
    for kind, frame in members.items():
        if frame.is_empty():
            continue
        rows = (
            _operations(frame, by_hour)
            .join(impact.filter(kind=_KINDS[kind].value).drop("kind"), on="key", how="left")
            .join(_parts_impact(frame, impact), on="key", how="left")
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
        ("project", groups.projects) if kind is Subject.PROJECT else ("user", groups.owners)
    )
    return jobs.filter(pl.col(whole).is_in(names), pl.col(kind).is_not_null()).select(
        "job",
        "operations",
        "part_impact_s",
        "part_impact_share",
        *GROUPS[: GROUPS.index(kind)],
        key=kind,
        owner=pl.lit(None, pl.String) if kind is Subject.PROJECT else pl.col("user"),
    )


def operations_by_hour(jobs: list[int], since: datetime, until: datetime) -> pl.DataFrame:
    """Return metadata operations of jobs by hour; a poll interval counts where it starts."""
    values = {"jobs": jobs, "since": since, "day": DAY, "TOTAL": IoWindow.Basis.TOTAL.value}
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


def jobs_of(kind: str, text: str, since: datetime, until: datetime) -> list[int]:
    """Return the jobs of a group with good data in [since, until)."""
    is_project = kind == Subject.PROJECT
    owner = Application.from_text(text).user
    groups = Groups([], [text]) if is_project else Groups([owner], [])
    jobs = _jobs(groups, since, until)
    return jobs.filter(pl.col(kind) == text, pl.col("operations") > 0)["job"].to_list()


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
    """Return the most operations of each group in 24 hours, of which jobs and the largest part."""
    hours = members.drop("operations").join(by_hour, on="job")
    totals = within_a_day(hours).sort("key", "operations", "hour", descending=[False, True, False])
    peaks = totals.group_by("key").agg(
        peak=pl.first("hour"), metadata_operations=pl.first("operations")
    )
    last_day = pl.col("hour").is_between(pl.col("peak") - DAY, pl.col("peak"), closed="right")
    jobs = (
        hours.join(peaks, on="key")
        .filter(last_day)
        .group_by("key", "job", part=_part(members))
        .agg(pl.sum("operations"))
        .filter(pl.col("operations") > 0)
    )
    parts = (
        jobs.drop_nulls("part")
        .group_by("key", "part")
        .agg(
            part_operations=pl.sum("operations"),
            part_jobs=pl.len(),
            part_largest_job_operations=pl.max("operations"),
        )
        .sort("part_operations", "part", descending=[True, False])
        .unique("key", keep="first", maintain_order=True)
        .drop("part")
    )
    whole_runs = members.group_by("key").agg(pl.first("owner"), upper_bound=pl.sum("operations"))
    largest = jobs.group_by("key").agg(jobs=pl.len(), largest_job_operations=pl.max("operations"))
    return (
        whole_runs.join(peaks.drop("peak"), on="key", how="left")
        .with_columns(metadata_operations=pl.coalesce("metadata_operations", "upper_bound"))
        .drop("upper_bound")
        .join(largest, on="key", how="left")
        .join(parts, on="key", how="left")
    )


def _part(members: pl.DataFrame) -> pl.Expr:
    """Return the next narrower group of each job; null for applications."""
    return next(
        (pl.col(kind) for kind in reversed(GROUPS) if kind in members.columns),
        pl.lit(None, pl.String),
    )


def _impact(members: Mapping[Subject, pl.DataFrame], until: datetime) -> pl.DataFrame:
    """Return the impact of groups in the last day: kind, key and figures of `GROUP_EVIDENCE`."""
    wanted = Q()
    for kind, frame in members.items():
        wanted |= Q(kind=_KINDS[kind], text__in=frame["key"].unique().to_list())
        for part in frame.columns & _KINDS.keys():
            texts = frame[part].unique().drop_nulls().to_list()
            wanted |= Q(kind=_KINDS[Subject(part)], text__in=texts)
    groups = pl.DataFrame(
        list(JobGroup.objects.filter(wanted).values_list("pk", "kind", "text")),
        schema={"group": pl.Int64(), "kind": pl.Int64(), "key": pl.String()},
        orient="row",
    )
    windows = impact_windows(groups["group"].to_list(), until - DAY, until)
    totals = windows.group_by("key").agg(impact_s=pl.sum("impact_us") / 1e6)
    sums = sustained.sums(windows, PEAK_SPAN, impact_figures.AMOUNTS)
    peaks = sums.sort("impact_us", "end", descending=[True, False]).unique(
        "key", keep="first", maintain_order=True
    )
    figures = peaks.select(group="key", **impact_figures.FIGURES).join(
        totals.rename({"key": "group"}), on="group"
    )
    return (
        groups.join(figures, on="group")
        .with_columns(pl.col("impact_is_estimated").cast(pl.Float64))
        .drop("group")
    )


def impact_windows(groups: list[int], since: datetime, until: datetime) -> pl.DataFrame:
    """Return the impact windows of groups: key (of the group), start, end and amounts."""
    columns = {
        "key": pl.Int64(),
        "start": _TIME,
        **dict.fromkeys(impact_figures.AMOUNTS, pl.Float64()),
    }
    values = {
        "kinds": JobGroup.Kind.values,
        "groups": groups,
        "since": since,
        "until": until,
    }
    windows = read_frame(_IMPACT, columns, values)
    return windows.with_columns(end=pl.col("start") + levels.IMPACT.width)


def _parts_impact(members: pl.DataFrame, impact: pl.DataFrame) -> pl.DataFrame:
    """Return the highest impact of a job or a narrower group in each group, and its share."""
    figures = ("key", "part_impact_s", "part_impact_share")
    frames = [members.select(figures)]
    for kind in GROUPS:
        if kind in members.columns:
            parts = impact.filter(kind=_KINDS[kind].value).select(
                pl.col("key").alias(kind),
                part_impact_s="peak_impact_s",
                part_impact_share="impact_share",
            )
            frames.append(members.select("key", kind).join(parts, on=kind).select(figures))
    highest = pl.concat(frames).sort("part_impact_s", descending=True)
    return highest.unique("key", keep="first", maintain_order=True)
