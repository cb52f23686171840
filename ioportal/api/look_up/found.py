"""Results of look-ups: records by id, unknown ids, warnings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from ioportal.api.look_up import records
from ioportal.api.look_up.fields import JOB_FIELDS, PANDA_FIELDS
from ioportal.api.look_up.query import CONDITIONS, IDS
from ioportal.api.look_up.records import Viewer
from ioportal.api.problems import invalid
from ioportal.jobs.job_filters import by_id
from ioportal.jobs.models import Job, WorkloadJob

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from ioportal.api.look_up.query import LookUpQuery
    from ioportal.core.postgres.compiled import Compiled


@dataclass
class Found:
    """Records by id. `unknown`: ids without a visible job, by parameter."""

    records: dict[str, dict[str, Any]]
    unknown: dict[str, list[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    is_truncated: bool = False


def find(user: User, asked: LookUpQuery) -> Found:
    """Look up jobs that a user may see.

    Raises:
        Problem: an unknown field.
    """
    names = JOB_FIELDS if asked.is_of_batch_jobs else PANDA_FIELDS
    if wrong := [name for name in asked.fields if name not in names]:
        raise invalid("fields", f"{wrong[0][:64]!r} is not one of {', '.join(names)}.")
    found = _batch_jobs(user, asked) if asked.is_of_batch_jobs else _panda_jobs(user, asked)
    if asked.fields:
        found.records = {
            key: {name: record[name] for name in asked.fields}
            for key, record in found.records.items()
        }
    found.warnings[:0] = asked.warnings
    if found.is_truncated:
        found.warnings.append(f"There are more than {asked.limit:,} records: only these are sent.")
        found.unknown = {}
    return found


def _panda_jobs(user: User, asked: LookUpQuery) -> Found:
    """Return PanDA jobs by PanDA id, highest ids first; of the same id, the one modified last."""
    viewer = Viewer.of(user)
    jobs = _panda_rows(viewer, asked.conditions, asked.limit).run(**asked.values)
    rows = records.of_panda_jobs(viewer, jobs)
    found = {str(record["pandaid"]): record for record in rows[: asked.limit]}
    tasks = {str(record["jeditaskid"]) for record in found.values()}
    unknown = {
        "pandaid": [id_ for id_ in asked.panda_ids if id_ not in found],
        "jeditaskid": [id_ for id_ in asked.task_ids if id_ not in tasks],
    }
    warnings = []
    if len(found) < min(len(rows), asked.limit):
        warnings.append("Several clusters have a PanDA job of the same id: only one is sent.")
    return Found(found, unknown, warnings, is_truncated=len(rows) > asked.limit)


@lru_cache(records.MOST_COMPILED)
def _panda_rows(
    viewer: Viewer, conditions: tuple[str, ...], limit: int
) -> Compiled[dict[str, Any]]:
    condition = Q(*(CONDITIONS[name] for name in conditions))
    jobs = WorkloadJob.objects.visible_to(viewer.user).filter(condition)
    return records.panda_rows(
        jobs.order_by("-panda_id", "modified_at")[: limit + 1],
        prepare=viewer.sees_all and not IDS.isdisjoint(conditions),
    )


def _batch_jobs(user: User, asked: LookUpQuery) -> Found:
    """Return batch jobs by the id that was sent; the tasks of an array by their own ids.

    An id is a batch id as accounting or as PanDA writes it. Ids repeat: the latest job counts.
    """
    visible = Job.objects.visible_to(user)
    reported = dict(
        WorkloadJob.objects.visible_to(user)
        .filter(reported_batch_id__in=asked.batch_ids, batch_job__isnull=False)
        .order_by("pk")
        .values_list("reported_batch_id", "batch_job")
    )
    jobs = visible.filter(by_id(asked.batch_ids)).order_by("submitted_at", "pk")
    keys = {id_: key for id_, key in reported.items() if key is not None}
    known, repeated = set(keys), False
    for job in jobs.only("batch_id", "array_index"):
        known |= {job.batch_id, job.display_id}
        repeated |= keys.get(job.display_id, job.pk) != job.pk
        keys[job.display_id] = job.pk
    chosen = dict(list(keys.items())[: asked.limit])
    by_key = dict(records.of_batch_jobs(Viewer.of(user), list(chosen.values())))
    found = {id_: by_key[key] for id_, key in chosen.items() if key in by_key}
    unknown = {"batchid": [id_ for id_ in asked.batch_ids if id_ not in known]}
    warnings = ["Several jobs have the same batch id: only the latest is sent."] if repeated else []
    return Found(found, unknown, warnings, is_truncated=len(keys) > asked.limit)
