"""Storage of accounting records: jobs, their nodes and their launches.

Records of one job may arrive in any order, repeatedly, and in several files. The record with the
latest start, then the latest end, takes precedence; of records with equal times, the later one.
The owner of a job, once known, changes only by an explicit correction. An ended job and its
launches change only by its own source, the agent that reported its end, or by a file: a stolen
token rewrites no other job. Accounting replaces an end that a view of the queue shows.
"""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import polars as pl

from collectors.batch import hostlists
from collectors.formats import FORMATS
from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.jobs import panda_jobs
from ioportal.jobs.models import Allocation, DirtyStatistics, Job, Launch
from ioportal.jobs.precedence import precedence
from ioportal.site import name_ids
from ioportal.site.models import Source
from ioportal.telemetry.copy import copy_frame

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ioportal.site.models import Cluster

OPEN_END = datetime(2200, 1, 1, tzinfo=UTC)  # stands for the end of unfinished runs

_BATCH = 2_000
_LINK_MARGIN = timedelta(minutes=5)  # between the clocks of jobs and launches
_DST_SHIFT = timedelta(hours=1)  # shift of syslog times without the daylight-saving change

_Identity = tuple[str, str, datetime]  # batch id, array index, submit time

_FACTS = (
    "started_at", "ended_at", "name", "owner", "project", "queue", "state", "exit_status",
    "exit_signal", "recorded_node_count", "node_count", "core_count", "cpu_s", "time_limit_s",
    "nodes", "precedence",
)  # fmt: skip
_DERIVED = ("node_count", "precedence")
_LAUNCH_FACTS = (
    "started_at", "ended_at", "node_count", "nodes", "command", "exit_status", "exit_signal",
)  # fmt: skip
_CORRECTED = "z"  # begins the precedence of a correction with an end

_SIZES = {  # maximum lengths in the database
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
    """A change of a job's run time or nodes, with the affected interval."""

    job_id: int
    start: datetime
    end: datetime
    node_ids: tuple[int, ...]  # released nodes


@dataclass(frozen=True)
class Order:
    """The order of records with equal times: by file or stream, by batch, by line."""

    stream: int
    sequence: int = 0
    source_id: int | None = None  # of the agent; None: a file
    is_correction: bool = False  # explicitly: precedes all records that are none

    def precedence(self, row: dict[str, Any]) -> str:
        """Return the sort key of a record; see `ioportal.jobs.precedence`."""
        later = f"{self.stream:019}{self.sequence:019}{row['line']:019}"
        # A correction of a running job is valid until the record of its end.
        is_final = self.is_correction and row["ended_at"] is not None
        times = () if is_final else ("started_at", "ended_at")
        return precedence(row, times, (_CORRECTED if self.is_correction else "s") + later)


@dataclass(frozen=True)
class OwnerConflict:
    """A record that is not applied: it names another owner, or its agent did not end the job."""

    job_id: int
    line: int
    reported_owner: str
    differences: str = "owner"  # facts that it would change


@dataclass(frozen=True)
class Recorded:
    """Changes by a table of records, the job of each line, and conflicts with stored jobs."""

    changes: list[Change]
    job_id_by_line: dict[int, int]
    conflicts: list[OwnerConflict]


@dataclass(frozen=True)
class _Writer:
    """The source or file of records, and the jobs that it may change."""

    source_id: int | None  # None: a file
    queue_ids: frozenset[int]  # sources that view the queue of the cluster

    @classmethod
    def of_source(cls, cluster: Cluster, source_id: int | None) -> _Writer:
        queues = Source.objects.filter(
            cluster=cluster, format__in=[form.name for form in FORMATS if form.is_queue_view]
        )
        return cls(source_id, frozenset(queues.values_list("pk", flat=True)))

    def may_change(self, job: Job) -> bool:
        """Return whether the job runs, or its end is of a file, this source, or a queue view."""
        return (
            self.source_id is None
            or job.ended_at is None
            or job.source_id == self.source_id
            or self._replaces(job)
        )

    def completes(self, before: Job, job: Job) -> bool:
        """Return whether a record of accounting has the end of a job that a queue view showed."""
        is_corrected = before.precedence.startswith(_CORRECTED)
        return job.ended_at is not None and self._replaces(before) and not is_corrected

    def _replaces(self, job: Job) -> bool:
        return job.source_id in self.queue_ids and self.source_id not in self.queue_ids


def record_jobs(cluster: Cluster, records: pl.DataFrame, order: Order) -> Recorded:
    """Store jobs from rows of `tables.JOBS` without launches, all with a submit time."""
    hold(Lock.ACCOUNTING)
    writer = _Writer.of_source(cluster, order.source_id)
    rows = [row | {"precedence": order.precedence(row)} for row in _storable(records).to_dicts()]
    best: dict[_Identity, dict[str, Any]] = {}
    owners: dict[_Identity, str] = {}  # the first known owner
    for row in rows:
        identity = _identity(row)
        best[identity] = max(best.get(identity, row), row, key=itemgetter("precedence"))
        owners[identity] = owners.get(identity) or row["user"]
    stored = _stored_jobs(cluster, {batch_id for batch_id, _, _ in best})
    runs = _by_id(stored.values())
    updated, unchanged_jobs, lines = [], [], {}
    ids: dict[_Identity, int] = {}
    conflicts = []
    for identity, row in best.items():
        job, before = _job(cluster, row), stored.get(identity)
        is_later = before is None or row["precedence"] > before.precedence
        if before and not (is_later or order.is_correction or writer.completes(before, job)):
            continue
        # A batch id runs once at a time: a run during another one would take its operations.
        affected = [*([before] if before else []), *_overlapping(job, runs[identity[:2]])]
        if other := next((run for run in affected if not writer.may_change(run)), None):
            ids[identity] = other.pk
            if differences := _differences(other, job):
                conflicts.append(OwnerConflict(other.pk, row["line"], job.owner, differences))
            continue
        # A file repairs the records of a source, which may repair them again, but no queue view.
        job.source_id = order.source_id
        if before and order.source_id is None and before.source_id not in writer.queue_ids:
            job.source_id = before.source_id
        owner = (before.owner if before else "") or owners[identity]
        if not (order.is_correction and job.owner):
            if job.owner not in {"", owner}:
                lines[identity] = row["line"], job.owner
                job.project = before.project if before else job.project
            job.owner = owner
        if before and _facts(job) == _facts(before):
            before.precedence, before.source_id = job.precedence, job.source_id
            unchanged_jobs.append(before)
        else:
            updated.append(job)
    # Records that repeat a running job's facts are frequent, and its end follows.
    Job.objects.bulk_update(
        [job for job in unchanged_jobs if job.ended_at],
        ["precedence", "source"],
        batch_size=_BATCH,
    )
    Job.objects.bulk_create(
        updated,
        batch_size=_BATCH,
        update_conflicts=True,
        unique_fields=["cluster", "batch_id", "array_index", "submitted_at"],
        update_fields=(*_FACTS, "source"),
    )
    ids |= {_job_identity(job): job.pk for job in [*stored.values(), *updated]}
    relinked = _relink_launches(
        cluster,
        {job.batch_id for job in updated},
        _by_id((stored | {_job_identity(job): job for job in updated}).values()),
        writer,
    )
    unchanged = Job.objects.filter(pk__in=relinked.difference(job.pk for job in updated))
    changes = _allocate(
        cluster,
        [(stored.get(_job_identity(job)), job) for job in updated]
        + [(job, job) for job in unchanged],
        relinked,
    )
    panda_jobs.link_to_jobs(cluster, {job.batch_id for job in updated})
    DirtyStatistics.objects.mark(job.pk for job in updated)
    return Recorded(
        changes,
        {row["line"]: ids[_identity(row)] for row in rows},
        conflicts
        + [OwnerConflict(ids[identity], *reported) for identity, reported in lines.items()],
    )


def record_launches(
    cluster: Cluster, records: pl.DataFrame, source_id: int | None = None
) -> Recorded:
    """Store launches from rows of `tables.LAUNCHES`, starts and ends in any order.

    Args:
        cluster: cluster of the launches.
        records: the rows.
        source_id: the agent that reports jobs and launches; None: a file, or launches alone, whose
            jobs another agent reports.
    """
    hold(Lock.ACCOUNTING)
    writer = _Writer.of_source(cluster, source_id)
    rows = _storable(records).to_dicts()
    launches = {
        (launch.name, launch.batch_id, launch.array_index): launch
        for batch in _batches(sorted({row["launch"] for row in rows}))
        for launch in Launch.objects.filter(cluster=cluster, name__in=batch)
    }
    # Truncated lines without a batch id belong to the launch of the same name.
    identities = {name: (name, batch_id, index) for name, batch_id, index in launches if batch_id}
    batch_ids = {row["batch_id"] for row in rows} | {batch_id for _, batch_id, _ in launches}
    jobs = _stored_jobs(cluster, batch_ids - {""}).values()
    runs = _by_id(jobs)
    jobs_by_pk = {job.pk: job for job in jobs}
    conflicts = []
    replaced = []
    relinked: set[int] = set()
    for row in rows:
        identity = (row["launch"], row["batch_id"], row["array_index"])
        truncated = (row["launch"], "", "")
        if identity == truncated:
            identity = identities.get(row["launch"], truncated)
        before = launches.get(identity) or launches.get(truncated)
        launch = copy(before) if before else Launch(cluster=cluster, name=identity[0])
        launch.batch_id, launch.array_index = identity[1:]
        launch.job = _launching(_merged(launch, row), runs)
        linked = jobs_by_pk.get(before.job_id) if before and before.job_id else None
        affected = [job for job in (linked, launch.job) if job]
        if locked := next((job for job in affected if not writer.may_change(job)), None):
            if before is None or _launch_facts(launch) != _launch_facts(before):
                conflicts.append(OwnerConflict(locked.pk, row["line"], locked.owner, "launches"))
            continue
        if linked != launch.job:
            relinked |= {job.pk for job in affected}
        if identity != truncated:
            identities[row["launch"]] = identity
            if before and before is launches.get(truncated):
                del launches[truncated]
                replaced.append(before.pk)
                launch.pk = None
        launches[identity] = launch
    Launch.objects.filter(pk__in=replaced).delete()
    Launch.objects.bulk_create(
        [launches[identity] for identity in sorted(launches)],
        batch_size=_BATCH,
        update_conflicts=True,
        unique_fields=["cluster", "name", "batch_id", "array_index"],
        update_fields=(*_LAUNCH_FACTS, "job"),
    )
    changes = _allocate(
        cluster,
        [(job, job) for job in jobs if not job.nodes or job.pk in relinked],
        relinked,
    )
    return Recorded(changes, {}, conflicts)


def _storable(records: pl.DataFrame) -> pl.DataFrame:
    """Truncate strings to the lengths of their columns."""
    return records.with_columns(
        name_ids.storable(pl.col(column), size)
        for column, size in _SIZES.items()
        if column in records.columns
    )


def _identity(row: dict[str, Any]) -> _Identity:
    return row["batch_id"], row["array_index"], row["submitted_at"]


def _job_identity(job: Job) -> _Identity:
    return job.batch_id, job.array_index, job.submitted_at


def _job(cluster: Cluster, row: dict[str, Any]) -> Job:
    columns = ("batch_id", "array_index", "submitted_at", *_FACTS)
    values = {name: row[name] for name in columns if name in row}
    values |= {
        "owner": row["user"],
        "recorded_node_count": row["node_count"] or 0,
        "node_count": row["node_count"] or 0,
        "core_count": row["core_count"] or 0,
    }
    return Job(cluster=cluster, **values)


def _facts(job: Job) -> list[object]:
    return [getattr(job, name) for name in _FACTS if name not in _DERIVED]


def _differences(stored: Job, job: Job) -> str:
    """Return the names of the facts that a record knows and states otherwise."""
    return ", ".join(
        name.replace("_", " ")
        for name in ("submitted_at", *_FACTS)
        if name not in _DERIVED
        and getattr(job, name) not in {None, "", 0}
        and getattr(job, name) != getattr(stored, name)
    )


def _by_id(jobs: Iterable[Job]) -> dict[tuple[str, str], list[Job]]:
    runs: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in jobs:
        runs[job.batch_id, job.array_index].append(job)
    return runs


def _overlapping(job: Job, runs: Iterable[Job]) -> list[Job]:
    """Return the runs during which a job ran."""
    return [
        run
        for run in runs
        if job.started_at
        and run.started_at
        and job.started_at < (run.ended_at or OPEN_END)
        and run.started_at < (job.ended_at or OPEN_END)
    ]


def _launching(launch: Launch, runs: dict[tuple[str, str], list[Job]]) -> Job | None:
    """Return the job of a launch: ids repeat, so it is the latest run that began before it."""
    began = launch.started_at or launch.ended_at
    earlier = [
        run
        for run in runs.get((launch.batch_id, launch.array_index), ())
        if began and run.started_at and run.started_at <= began + _LINK_MARGIN
    ]
    return max(earlier, key=lambda run: run.started_at or OPEN_END, default=None)


def _launch_facts(launch: Launch) -> list[object]:
    return [getattr(launch, name) for name in _LAUNCH_FACTS]


def _stored_jobs(cluster: Cluster, batch_ids: Collection[str]) -> dict[_Identity, Job]:
    return {
        _job_identity(job): job
        for batch in _batches(sorted(batch_ids))
        for job in Job.objects.filter(cluster=cluster, batch_id__in=batch)
    }


def _batches(values: list[str]) -> Iterable[list[str]]:
    return (values[start : start + _BATCH] for start in range(0, len(values), _BATCH))


def _merged(launch: Launch, row: dict[str, Any]) -> Launch:
    """Merge a record into a launch, independent of the order of records."""
    starts = [moment for moment in (launch.started_at, row["started_at"]) if moment]
    ends = [moment for moment in (launch.ended_at, row["ended_at"]) if moment]
    launch.started_at = min(starts, default=None)
    launch.ended_at = max(ends, default=None)
    if (
        launch.started_at
        and launch.ended_at
        and launch.ended_at < launch.started_at <= launch.ended_at + _DST_SHIFT
    ):
        launch.ended_at += _DST_SHIFT
    if row["nodes"]:
        launch.nodes, launch.node_count = row["nodes"], row["node_count"] or 0
        launch.command = row["command"] or ""
    for status in ("exit_status", "exit_signal"):
        if row[status] is not None:
            setattr(launch, status, row[status])
    return launch


def _relink_launches(
    cluster: Cluster,
    batch_ids: Collection[str],
    runs: dict[tuple[str, str], list[Job]],
    writer: _Writer,
) -> set[int]:
    """Link the launches of changed runs; return the jobs whose launches changed."""
    jobs_by_pk = {job.pk: job for jobs in runs.values() for job in jobs}
    moved, relinked = [], set()
    for batch in _batches(sorted(batch_ids)):
        for launch in Launch.objects.filter(cluster=cluster, batch_id__in=batch).defer(
            "nodes", "command"
        ):
            linked = jobs_by_pk.get(launch.job_id) if launch.job_id else None
            launch.job = _launching(launch, runs)
            affected = [job for job in (linked, launch.job) if job]
            if linked != launch.job and all(map(writer.may_change, affected)):
                moved.append(launch)
                relinked |= {job.pk for job in affected}
    Launch.objects.bulk_update(moved, ["job"], batch_size=_BATCH)
    return relinked


def _allocate(
    cluster: Cluster, jobs: list[tuple[Job | None, Job]], relinked: set[int]
) -> list[Change]:
    """Store the nodes of jobs; return changes of run times and nodes.

    Args:
        cluster: cluster of the jobs.
        jobs: pairs of previous (None: new) and current job.
        relinked: jobs whose launches changed.
    """
    launched: dict[int, set[str]] = defaultdict(set)
    launches = Launch.objects.filter(job__in=[job.pk for _, job in jobs]).exclude(nodes="")
    for job_id, nodes in launches.values_list("job_id", "nodes").distinct():
        launched[job_id].add(nodes)
    nodes_before: dict[int, set[int]] = defaultdict(set)
    for job_id, node_id in Allocation.objects.filter(
        job__in=[job.pk for _, job in jobs]
    ).values_list("job_id", "node_id"):
        nodes_before[job_id].add(node_id)

    started = [(before, job) for before, job in jobs if job.started_at]
    expanded = pl.DataFrame(
        [
            {"job_id": job.pk, "name": hostlists.expand(nodes)}
            for _, job in started
            for nodes in sorted({job.nodes, *launched.get(job.pk, ())} - {""})
        ],
        schema={"job_id": pl.Int64, "name": pl.List(pl.String)},
    ).explode("name", empty_as_null=False)
    node_ids = name_ids.nodes(cluster).ids(expanded["name"])
    allocated = expanded.select("job_id", node_id=node_ids).unique()
    nodes_now = {
        job_id: set(group["node_id"])
        for (job_id,), group in allocated.partition_by("job_id", as_dict=True).items()
    }
    moved = {job.pk for _, job in started if nodes_now.get(job.pk, set()) != nodes_before[job.pk]}
    _count_nodes(
        [(job, nodes_now.get(job.pk, ()) if job.pk in launched else ()) for _, job in started]
    )
    Allocation.objects.filter(job__in=moved).delete()
    copy_frame(Allocation, allocated.filter(pl.col("job_id").is_in(moved)))
    return [
        _change(before, job, nodes_before[job.pk] - nodes_now.get(job.pk, set()))
        for before, job in started
        if job.pk in moved or job.pk in relinked or before is None or _run(before) != _run(job)
    ]


def _count_nodes(jobs: Iterable[tuple[Job, Collection[int]]]) -> None:
    """Count nodes that only the launches of a job name: Grid Engine names only one node."""
    changed = []
    for job, nodes in jobs:
        node_count = max(job.recorded_node_count, len(nodes))
        if node_count != job.node_count:
            job.node_count = node_count
            changed.append(job)
    Job.objects.bulk_update(changed, ["node_count"], batch_size=_BATCH)
    DirtyStatistics.objects.mark(job.pk for job in changed)


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
