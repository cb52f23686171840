"""PanDA jobs: storage, links to batch jobs, and metrics.

Records of a PanDA job may arrive in any order, repeatedly, and before or after the accounting of
its batch job. The record modified last takes precedence. Links are derived from stored rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from operator import itemgetter
from typing import TYPE_CHECKING

import polars as pl
from django.db import connection
from django.db.models import Case, Count, F, FloatField, Func, Q, Sum, Value, When
from django.db.models.functions import NullIf

from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.jobs.models import Job, WorkloadJob
from ioportal.jobs.precedence import digests, precedence
from ioportal.site import name_ids
from ioportal.telemetry.copy import copy_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from django.db.models.expressions import Combinable

    from ioportal.jobs.models import JobQuerySet, WorkloadJobQuerySet
    from ioportal.site.models import Cluster

CLOCK_TOLERANCE = timedelta(minutes=5)  # between PanDA and the batch system
_BATCH = 2_000
_ID_DIGITS = 18  # any such number fits into 64 bits
_FACTS = (
    "task_id", "attempt", "reported_batch_id", "batch_id", "array_index", "site", "host", "state",
    "error", "user", "transformation", "created_at", "started_at", "ended_at", "modified_at",
    "core_count", "cpu_s", "setup_s",
)  # fmt: skip
_LATER_FACTS = (
    "get_job_s", "stage_in_s", "payload_s", "stage_out_s", "event_count", "max_pss_bytes",
    "max_swap_bytes", "transfer_type",
)  # fmt: skip
_SIZES = {  # maximum lengths in the database
    name: size
    for name in (*_FACTS, *_LATER_FACTS)
    if (size := WorkloadJob._meta.get_field(name).max_length)  # type: ignore[union-attr]  # noqa: SLF001
}


def record(cluster: Cluster, records: pl.DataFrame) -> dict[int, int]:
    """Store PanDA jobs from rows of `tables.WORKLOAD_JOBS`; link them to jobs of `cluster`.

    Returns the primary key of the PanDA job by line.
    """
    hold(Lock.ACCOUNTING)
    rows = records.with_columns(
        name_ids.storable(pl.col(column), size) for column, size in _SIZES.items()
    ).to_dicts()
    times = ("modified_at", "ended_at", "started_at")
    candidates = [
        row
        | {
            "cluster_id": cluster.pk,
            "precedence": precedence(row, times, digests(row, _FACTS, _LATER_FACTS)),
            "transfer_type": row["transfer_type"] or "",
        }
        for row in rows
    ]
    best = {
        row["panda_id"]: row for row in sorted(candidates, key=itemgetter("panda_id", "precedence"))
    }
    stored = WorkloadJob.objects.filter(cluster=cluster, panda_id__in=list(best))
    precedences = dict(stored.values_list("panda_id", "precedence"))
    columns = ("cluster_id", "panda_id", *_FACTS, *_LATER_FACTS, "precedence")
    new = [row for panda_id, row in best.items() if panda_id not in precedences]
    copy_rows(WorkloadJob, columns, map(itemgetter(*columns), new))
    newer = [
        row
        for panda_id, row in best.items()
        if panda_id in precedences and row["precedence"] > precedences[panda_id]
    ]
    WorkloadJob.objects.bulk_create(
        [WorkloadJob(**{name: row[name] for name in columns}) for row in newer],
        batch_size=_BATCH,
        update_conflicts=True,
        unique_fields=["panda_id", "cluster"],
        update_fields=[*_FACTS, *_LATER_FACTS, "precedence"],
    )
    ids = dict(stored.values_list("panda_id", "pk"))
    _link([ids[row["panda_id"]] for row in (*new, *newer)])
    return {row["line"]: ids[row["panda_id"]] for row in rows}


def link_to_jobs(cluster: Cluster, batch_ids: Collection[str]) -> None:
    """Link PanDA jobs to new or changed batch jobs."""
    affected = WorkloadJob.objects.filter(cluster=cluster, batch_id__in=batch_ids)
    _link(list(affected.values_list("pk", flat=True)))


# A PanDA job is linked to a batch job with its batch id and an overlapping run, with tolerance for
# clock differences. Batch ids repeat: of several runs, the last that began before the PanDA job is
# linked, otherwise the next one. An array id without an index is linked to all tasks.
_LINK = """
INSERT INTO jobs_workloadjob_jobs (workloadjob_id, job_id)
SELECT w.id, j.id
FROM (
    SELECT id, cluster_id, batch_id, array_index,
        coalesce(started_at, ended_at, modified_at) AS start,
        coalesce(ended_at, greatest(started_at, modified_at)) AS "end"
    FROM jobs_workloadjob
    WHERE id = ANY(%(ids)s) AND batch_id <> ''
) w
CROSS JOIN LATERAL (
    SELECT DISTINCT ON (j.array_index) j.id
    FROM jobs_job j
    WHERE j.cluster_id = w.cluster_id AND j.batch_id = w.batch_id
        AND (w.array_index = '' OR j.array_index = w.array_index)
        AND j.started_at <= w."end" + make_interval(secs => %(apart_s)s)
        AND coalesce(j.ended_at, 'infinity') >= w.start - make_interval(secs => %(apart_s)s)
    ORDER BY j.array_index, j.started_at > w.start + make_interval(secs => %(apart_s)s),
        abs(extract(epoch FROM j.started_at - w.start)), j.submitted_at DESC
) j
"""


_SET_BATCH_JOB = """
UPDATE jobs_workloadjob
SET changed_at = clock_timestamp(), batch_job_id = (
    SELECT CASE WHEN count(*) = 1 THEN min(job_id) END
    FROM jobs_workloadjob_jobs
    WHERE workloadjob_id = jobs_workloadjob.id
)
WHERE id = ANY(%s)
"""


def _link(ids: list[int]) -> None:
    if not ids:
        return
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobs_workloadjob_jobs WHERE workloadjob_id = ANY(%s)", [ids])
        cursor.execute(_LINK, {"ids": ids, "apart_s": CLOCK_TOLERANCE.total_seconds()})
        cursor.execute(_SET_BATCH_JOB, [ids])


def batch_jobs(
    *,
    pandaid: Iterable[int | str] = (),
    jeditaskid: Iterable[int | str] = (),
    batchid: Iterable[str] = (),
) -> JobQuerySet:
    """Find batch jobs by PanDA ids, PanDA task ids or batch ids; invalid ids match nothing."""
    batch_ids = list(batchid)
    inside = WorkloadJob.objects.with_ids(
        panda_ids=valid_ids(pandaid), task_ids=valid_ids(jeditaskid), batch_ids=batch_ids
    )
    links = WorkloadJob.jobs.through.objects.filter(workloadjob__in=inside)
    # A separate query: with OR, a join with links would scan all jobs.
    linked = list(links.values_list("job_id", flat=True).distinct())
    return Job.objects.filter(Q(pk__in=linked) | Q(batch_id__in=batch_ids))


def valid_ids(values: Iterable[int | str]) -> list[int]:
    """Return the valid PanDA ids among values, as integers."""
    ids = map(str, values)
    return [int(id_) for id_ in ids if id_.isascii() and id_.isdigit() and len(id_) <= _ID_DIGITS]


@dataclass(frozen=True)
class PandaSummary:
    """Totals of the PanDA jobs in a batch job."""

    count: int
    states: list[tuple[str, int]]  # PanDA jobs by state, most frequent first
    tasks: list[tuple[int | None, int]]  # PanDA jobs by task, most frequent first
    cpu_s: float | None  # None: not recorded
    cpu_efficiency: float | None  # CPU time / (cores x time), of PanDA jobs with all three

    @property
    def is_shared(self) -> bool:
        """Whether measurements of the batch job combine several PanDA jobs."""
        return self.count > 1


def _seconds(start: str, end: str) -> Func:
    # EXTRACT returns numeric, which takes twice as long for a million rows.
    return Func(Value("epoch"), F(end) - F(start), function="date_part", output_field=FloatField())


_RUN_S = _seconds("started_at", "ended_at")
_CORE_S = F("core_count") * _RUN_S
_HAS_EFFICIENCY = Q(
    cpu_s__isnull=False, core_count__isnull=False, started_at__isnull=False, ended_at__isnull=False
)
# Metrics of a PanDA job, from its record.
FIGURES: dict[str, Combinable] = {
    "panda_duration_s": _RUN_S,
    # The two times are from different clocks.
    "panda_wait_s": Case(
        When(started_at__gte=F("created_at"), then=_seconds("created_at", "started_at")),
        output_field=FloatField(),
    ),
    "panda_core_count": NullIf("core_count", Value(0)),
    "panda_setup_s": F("setup_s"),
    "panda_cpu_s": F("cpu_s"),
    "panda_cpu_efficiency": F("cpu_s") / NullIf(_CORE_S, Value(0.0)),
    "panda_stage_in_s": F("stage_in_s"),
    "panda_stage_out_s": F("stage_out_s"),
    "panda_get_job_s": F("get_job_s"),
    "panda_payload_s": F("payload_s"),
    "panda_events": F("event_count"),
    "panda_max_pss_bytes": F("max_pss_bytes"),
    "panda_max_swap_bytes": F("max_swap_bytes"),
}


def panda_summary(job: Job) -> PandaSummary | None:
    """Return totals of the PanDA jobs in a batch job, in one query; None: no PanDA jobs."""
    states: Counter[str] = Counter()
    tasks: Counter[int | None] = Counter()
    cpu_s: list[float] = []
    used_s = available_s = 0.0
    for group in job.workload_jobs.values("state", "task_id").annotate(
        count=Count("pk"),
        cpu=Sum("cpu_s"),
        used=Sum("cpu_s", filter=_HAS_EFFICIENCY),
        available=Sum(_CORE_S, filter=_HAS_EFFICIENCY),
    ):
        states[group["state"]] += group["count"]
        tasks[group["task_id"]] += group["count"]
        cpu_s += [] if group["cpu"] is None else [group["cpu"]]
        used_s += group["used"] or 0
        available_s += group["available"] or 0
    if not states:
        return None
    return PandaSummary(
        count=states.total(),
        states=states.most_common(),
        tasks=tasks.most_common(),
        cpu_s=sum(cpu_s) if cpu_s else None,
        cpu_efficiency=used_s / available_s if available_s else None,
    )


def panda_metrics(panda_job: WorkloadJob) -> dict[str, float | None]:
    """Return the metrics of a PanDA job."""
    values = WorkloadJob.objects.filter(pk=panda_job.pk).values_list(*FIGURES.values()).get()
    return dict(zip(FIGURES, values, strict=True))


def jobs_inside(job: Job) -> WorkloadJobQuerySet:
    """Return the PanDA jobs in a batch job by start time; those not started come last."""
    return job.workload_jobs.select_related("cluster").order_by(
        F("started_at").asc(nulls_last=True), "panda_id"
    )
