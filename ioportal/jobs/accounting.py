"""What batch systems and launchers tell: jobs, their nodes and their launches.

Records of one job may come in any order, twice, and from several files. The record that knows most
stands (the later start, then the later end), whichever came last.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection

from collectors.batch import hostlists
from ioportal.jobs import locks, workloads
from ioportal.jobs.models import Allocation, DirtyStatistics, Job, Launch
from ioportal.jobs.precedence import precedence
from ioportal.site import name_ids
from ioportal.telemetry.copy import copy_frame

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ioportal.site.models import Cluster

OPEN_END = datetime(2200, 1, 1, tzinfo=UTC)  # an end for intervals that have none yet

_BATCH = 2_000
_AN_HOUR = timedelta(hours=1)  # what a forgotten daylight-saving change shifts a syslog stamp by

_Identity = tuple[str, str, datetime]  # batch id, array index, submit time

_FACTS = (
    "started_at", "ended_at", "name", "owner", "project", "queue", "state", "exit_status",
    "exit_signal", "node_count", "core_count", "cpu_s", "time_limit_s", "nodes", "precedence",
)  # fmt: skip
_TELLING = ("state", "exit_status", "cpu_s", "nodes")  # of records with the same times

_SIZES = {  # characters that the database keeps
    "launch": 64,
    "batch_id": 64,
    "array_index": 64,
    "name": 255,
    "user": 64,
    "project": 128,
    "queue": 128,
}


@dataclass(frozen=True)
class Change:
    """A job whose time or nodes are other than they were: what it may have touched."""

    job_id: int
    start: datetime
    end: datetime
    node_ids: tuple[int, ...]  # held before, and no more


@dataclass(frozen=True)
class Recorded:
    """What a table of records changed, and which job each of its lines speaks of."""

    changes: list[Change]
    job_id_by_line: dict[int, int]


def record_jobs(cluster: Cluster, records: pl.DataFrame) -> Recorded:
    """Store jobs; `records` are rows of `tables.JOBS` without launches, all with a submit time."""
    locks.accounting()
    rows = [
        row | {"precedence": precedence(row, ("started_at", "ended_at"), _TELLING)}
        for row in _storable(records).to_dicts()
    ]
    best = {
        _identity(row): row
        for row in sorted(rows, key=lambda row: (_identity(row), row["precedence"]))
    }
    known = _known_jobs(cluster, {batch_id for batch_id, _, _ in best})
    told = [
        _job(cluster, row)
        for identity, row in best.items()
        if identity not in known or row["precedence"] > known[identity].precedence
    ]
    Job.objects.bulk_create(
        told,
        batch_size=_BATCH,
        update_conflicts=True,
        unique_fields=["cluster", "batch_id", "array_index", "submitted_at"],
        update_fields=_FACTS,
    )
    ids = {_identity_of(job): job.pk for job in [*known.values(), *told]}
    relinked = _link_launches(cluster, {job.batch_id for job in told})
    others = Job.objects.filter(pk__in=relinked.difference(job.pk for job in told))
    changes = _allocate(
        cluster,
        [(known.get(_identity_of(job)), job) for job in told] + [(job, job) for job in others],
        relinked,
    )
    workloads.link_to_jobs(cluster, {job.batch_id for job in told})
    DirtyStatistics.objects.mark(job.pk for job in told)
    return Recorded(changes, {row["line"]: ids[_identity(row)] for row in rows})


def record_launches(cluster: Cluster, records: pl.DataFrame) -> list[Change]:
    """Store launches; `records` are rows of `tables.LAUNCHES`, starts and ends in any order."""
    locks.accounting()
    rows = _storable(records).to_dicts()
    known = {
        (launch.name, launch.batch_id, launch.array_index): launch
        for part in _parts(sorted({row["launch"] for row in rows}))
        for launch in Launch.objects.filter(cluster=cluster, name__in=part)
    }
    # A line that was cut before its batch id speaks of the launch of that name.
    named = {name: (name, batch_id, index) for name, batch_id, index in known if batch_id}
    adopted = []
    for row in rows:
        identity = (row["launch"], row["batch_id"], row["array_index"])
        unnamed = (row["launch"], "", "")
        if identity == unnamed:
            identity = named.get(row["launch"], unnamed)
        else:
            named[row["launch"]] = identity
            if unnamed in known and identity not in known:
                launch = known[identity] = known.pop(unnamed)
                adopted.append(launch.pk)
                launch.pk, launch.batch_id, launch.array_index = None, *identity[1:]
        launch = known.get(identity) or Launch(
            cluster=cluster, name=identity[0], batch_id=identity[1], array_index=identity[2]
        )
        known[identity] = _merged(launch, row)
    Launch.objects.filter(pk__in=adopted).delete()
    Launch.objects.bulk_create(
        [known[identity] for identity in sorted(known)],
        batch_size=_BATCH,
        update_conflicts=True,
        unique_fields=["cluster", "name", "batch_id", "array_index"],
        update_fields=(
            "started_at", "ended_at", "node_count", "nodes", "command", "exit_status",
            "exit_signal",
        ),
    )  # fmt: skip
    batch_ids = {row["batch_id"] for row in rows} - {""}
    relinked = _link_launches(cluster, batch_ids)
    jobs = _known_jobs(cluster, batch_ids).values()
    return _allocate(
        cluster,
        [(job, job) for job in jobs if not job.nodes or job.pk in relinked],
        relinked,
    )


def _storable(records: pl.DataFrame) -> pl.DataFrame:
    """Cut texts to what the database keeps."""
    return records.with_columns(
        name_ids.storable(pl.col(column), size)
        for column, size in _SIZES.items()
        if column in records.columns
    )


def _identity(row: dict[str, Any]) -> _Identity:
    return row["batch_id"], row["array_index"], row["submitted_at"]


def _identity_of(job: Job) -> _Identity:
    return job.batch_id, job.array_index, job.submitted_at


def _job(cluster: Cluster, row: dict[str, Any]) -> Job:
    same = {
        name: row[name]
        for name in ("batch_id", "array_index", "submitted_at", *_FACTS)
        if name in row
    }
    return Job(
        cluster=cluster,
        **same
        | {
            "owner": row["user"],
            "node_count": row["node_count"] or 0,
            "core_count": row["core_count"] or 0,
        },
    )


def _known_jobs(cluster: Cluster, batch_ids: Collection[str]) -> dict[_Identity, Job]:
    return {
        _identity_of(job): job
        for part in _parts(sorted(batch_ids))
        for job in Job.objects.filter(cluster=cluster, batch_id__in=part)
    }


def _parts(values: list[str]) -> Iterable[list[str]]:
    return (values[start : start + _BATCH] for start in range(0, len(values), _BATCH))


def _merged(launch: Launch, row: dict[str, Any]) -> Launch:
    """Add a record to what is known of a launch; the order of records does not matter."""
    starts = [moment for moment in (launch.started_at, row["started_at"]) if moment]
    ends = [moment for moment in (launch.ended_at, row["ended_at"]) if moment]
    launch.started_at = min(starts, default=None)
    launch.ended_at = max(ends, default=None)
    if (
        launch.started_at
        and launch.ended_at
        and launch.ended_at < launch.started_at <= launch.ended_at + _AN_HOUR
    ):
        launch.ended_at += _AN_HOUR
    if row["nodes"]:
        launch.nodes, launch.node_count = row["nodes"], row["node_count"] or 0
        launch.command = row["command"] or ""
    for status in ("exit_status", "exit_signal"):
        if row[status] is not None:
            setattr(launch, status, row[status])
    return launch


_LINK = """
WITH linked AS (
    SELECT l.id, l.job_id AS before, (
        SELECT j.id FROM jobs_job j
        WHERE j.cluster_id = l.cluster_id AND j.batch_id = l.batch_id
            AND j.array_index = l.array_index
            AND j.started_at <= coalesce(l.started_at, l.ended_at) + interval '5 minutes'
        ORDER BY j.started_at DESC LIMIT 1
    ) AS after
    FROM jobs_launch l
    WHERE l.cluster_id = %s AND l.batch_id = ANY(%s)
)
UPDATE jobs_launch l SET job_id = linked.after
FROM linked
WHERE l.id = linked.id AND linked.before IS DISTINCT FROM linked.after
RETURNING linked.before, linked.after
"""


def _link_launches(cluster: Cluster, batch_ids: Collection[str]) -> set[int]:
    """Give launches the job of their time: ids repeat, the last one begun before holds them.

    Returns the jobs that gained or lost one.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LINK, [cluster.pk, sorted(batch_ids)])
        return {job_id for row in cursor.fetchall() for job_id in row if job_id}


def _allocate(
    cluster: Cluster, jobs: list[tuple[Job | None, Job]], relinked: set[int]
) -> list[Change]:
    """Store which nodes the jobs hold, and return what changed.

    Args:
        cluster: theirs.
        jobs: pairs of what was known and what is.
        relinked: those of them whose launches are others than before.
    """
    launched: dict[int, set[str]] = defaultdict(set)
    unnamed = [job.pk for _, job in jobs if not job.nodes]
    placed = Launch.objects.filter(job__in=unnamed).exclude(nodes="")
    for job_id, nodes in placed.values_list("job_id", "nodes"):
        launched[job_id].add(nodes)
    held_before: dict[int, set[int]] = defaultdict(set)
    for job_id, node_id in Allocation.objects.filter(
        job__in=[job.pk for _, job in jobs]
    ).values_list("job_id", "node_id"):
        held_before[job_id].add(node_id)

    started = [(before, job) for before, job in jobs if job.started_at]
    expanded = pl.DataFrame(
        [
            {"job_id": job.pk, "name": hostlists.expand(nodes)}
            for _, job in started
            for nodes in ([job.nodes] if job.nodes else sorted(launched[job.pk]))
        ],
        schema={"job_id": pl.Int64, "name": pl.List(pl.String)},
    ).explode("name", empty_as_null=False)
    held = expanded.select("job_id", node_id=name_ids.nodes(cluster).ids(expanded["name"])).unique()
    now = {
        job_id: set(group["node_id"])
        for (job_id,), group in held.partition_by("job_id", as_dict=True).items()
    }
    moved = {job.pk for _, job in started if now.get(job.pk, set()) != held_before[job.pk]}
    Allocation.objects.filter(job__in=moved).delete()
    copy_frame(Allocation, held.filter(pl.col("job_id").is_in(moved)))
    return [
        _change(before, job, held_before[job.pk] - now.get(job.pk, set()))
        for before, job in started
        if job.pk in moved or job.pk in relinked or before is None or _run(before) != _run(job)
    ]


def _run(job: Job) -> tuple[datetime | None, datetime | None]:
    return job.started_at, job.ended_at


def _change(before: Job | None, job: Job, node_ids: set[int]) -> Change:
    runs = [run for run in (before, job) if run and run.started_at]
    return Change(
        job.pk,
        min(run.started_at for run in runs if run.started_at),
        max(run.ended_at or OPEN_END for run in runs),
        tuple(sorted(node_ids)),
    )
