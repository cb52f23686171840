"""Jobs of a workload manager, and the batch jobs that they ran inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from ioportal.jobs.models.job import Job
from ioportal.site.models.infrastructure import Cluster

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.contrib.auth.models import AnonymousUser, User


class WorkloadJobQuerySet(models.QuerySet["WorkloadJob"]):
    """Questions about workload jobs."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Those that `user` may see: staff see all, others what ran inside jobs that they see."""
        if user.is_staff:
            return self
        return self.filter(
            Exists(Job.objects.visible_to(user).filter(workload_jobs=OuterRef("pk")))
        )

    def hidden_from(self, user: User | AnonymousUser) -> Self:
        """All others: only what stands for many of them may be told to `user`."""
        if user.is_staff:
            return self.none()
        return self.exclude(
            Exists(Job.objects.visible_to(user).filter(workload_jobs=OuterRef("pk")))
        )

    def known_as(
        self,
        *,
        panda_ids: Collection[int] = (),
        task_ids: Collection[int] = (),
        batch_ids: Collection[str] = (),
    ) -> Self:
        """Those with one of these PanDA ids, task ids, or batch ids as PanDA or we write them."""
        return self.filter(
            Q(panda_id__in=panda_ids)
            | Q(task_id__in=task_ids)
            | Q(reported_batch_id__in=batch_ids)
            | Q(batch_id__in=batch_ids)
        )


class WorkloadJob(models.Model):
    """A PanDA job; of several records of it the one that was modified last stands here."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="workload_jobs")
    panda_id = models.BigIntegerField()
    task_id = models.BigIntegerField(null=True)  # null: of no task
    attempt = models.IntegerField(null=True)
    reported_batch_id = models.CharField(max_length=240)  # as PanDA has it
    batch_id = models.CharField(max_length=64)  # what jobs are linked by; "": by none
    array_index = models.CharField(max_length=64)
    site = models.CharField(max_length=128)  # PanDA's queue
    host = models.CharField(max_length=255)
    state = models.CharField(max_length=32)  # PanDA's own word
    error = models.CharField(max_length=255)
    user = models.CharField(max_length=128)
    transformation = models.CharField(max_length=255)
    created_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)  # null: it did not start
    ended_at = models.DateTimeField(null=True)  # null: it has not ended
    modified_at = models.DateTimeField(null=True)
    core_count = models.IntegerField(null=True)
    cpu_s = models.FloatField(null=True)
    setup_s = models.FloatField(null=True)
    precedence = models.CharField(max_length=128)  # as a job's: any order of loading ends alike

    # Many-to-many: a batch job holds hundreds, and the tasks of an array may share one.
    jobs = models.ManyToManyField(Job, related_name="workload_jobs")
    # The only one of them, whose figures are then its own batch job's. Null: none is known, or it
    # ran in one of several tasks and is not known in which.
    batch_job = models.ForeignKey(Job, models.SET_NULL, null=True, related_name="+")
    changed_at = models.DateTimeField(db_default=Now())  # its record, or its links

    objects = WorkloadJobQuerySet.as_manager()

    class Meta:
        constraints = [
            # PanDA's ids do not repeat, but there is more than one PanDA.
            models.UniqueConstraint(name="workload_job_identity", fields=["panda_id", "cluster"]),
            models.CheckConstraint(
                name="workload_job_ends_after_start",
                condition=Q(ended_at=None) | Q(started_at=None) | Q(ended_at__gte=F("started_at")),
            ),
        ]
        indexes = [
            # Late binding: whose batch job has just arrived.
            models.Index(name="workload_job_batch", fields=["batch_id", "cluster"]),
            # Look-ups.
            models.Index(name="workload_job_task", fields=["task_id"]),
            models.Index(name="workload_job_reported_batch", fields=["reported_batch_id"]),
            # Whether anything changed since figures of many were cached.
            models.Index(name="workload_job_changed", fields=["changed_at"]),
        ]

    def __str__(self) -> str:
        return str(self.panda_id)
