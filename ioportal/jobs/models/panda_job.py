"""PanDA jobs, and their links to batch jobs."""

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
    """Queries of PanDA jobs."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """PanDA jobs `user` may see: staff see all, others those in visible batch jobs."""
        if user.is_staff:
            return self
        return self.filter(
            Exists(Job.objects.visible_to(user).filter(workload_jobs=OuterRef("pk")))
        )

    def hidden_from(self, user: User | AnonymousUser) -> Self:
        """All other PanDA jobs; `user` may see aggregates of many only."""
        if user.is_staff:
            return self.none()
        return self.exclude(
            Exists(Job.objects.visible_to(user).filter(workload_jobs=OuterRef("pk")))
        )

    def with_ids(
        self,
        *,
        panda_ids: Collection[int] = (),
        task_ids: Collection[int] = (),
        batch_ids: Collection[str] = (),
    ) -> Self:
        """PanDA jobs with one of the PanDA ids, task ids, or batch ids (reported or normalized)."""
        return self.filter(
            Q(panda_id__in=panda_ids)
            | Q(task_id__in=task_ids)
            | Q(reported_batch_id__in=batch_ids)
            | Q(batch_id__in=batch_ids)
        )


class WorkloadJob(models.Model):
    """A PanDA job; of several records, the one modified last."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="workload_jobs")
    panda_id = models.BigIntegerField()
    task_id = models.BigIntegerField(null=True)  # null: no task
    attempt = models.IntegerField(null=True)
    reported_batch_id = models.CharField(max_length=240)  # as PanDA reports it
    batch_id = models.CharField(max_length=64)  # normalized, for links to batch jobs; "": none
    array_index = models.CharField(max_length=64)
    site = models.CharField(max_length=128)  # PanDA's queue
    host = models.CharField(max_length=255)
    state = models.CharField(max_length=32)  # as PanDA reports it
    error = models.CharField(max_length=255)
    user = models.CharField(max_length=128)
    transformation = models.CharField(max_length=255)
    created_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)  # null: not started
    ended_at = models.DateTimeField(null=True)  # null: not ended
    modified_at = models.DateTimeField(null=True)
    core_count = models.IntegerField(null=True)
    cpu_s = models.FloatField(null=True)
    setup_s = models.FloatField(null=True)
    # Null in records that agents of earlier versions sent.
    get_job_s = models.FloatField(null=True)
    stage_in_s = models.FloatField(null=True)
    payload_s = models.FloatField(null=True)
    stage_out_s = models.FloatField(null=True)
    event_count = models.BigIntegerField(null=True)
    max_pss_bytes = models.BigIntegerField(null=True)
    max_swap_bytes = models.BigIntegerField(null=True)
    transfer_type = models.CharField(max_length=32, db_default="")  # "": unknown
    precedence = models.CharField(max_length=128)  # sort key of records, as `Job.precedence`

    # Many-to-many: a batch job may run many PanDA jobs; an array id may match several tasks.
    jobs = models.ManyToManyField(Job, related_name="workload_jobs")
    # The batch job if there is exactly one link. Null: no link, or several array tasks.
    batch_job = models.ForeignKey(Job, models.SET_NULL, null=True, related_name="+")
    changed_at = models.DateTimeField(db_default=Now())  # of the record or its links

    objects = WorkloadJobQuerySet.as_manager()

    class Meta:
        constraints = [
            # PanDA ids are unique within one PanDA instance.
            models.UniqueConstraint(name="workload_job_identity", fields=["panda_id", "cluster"]),
            models.CheckConstraint(
                name="workload_job_ends_after_start",
                condition=Q(ended_at=None) | Q(started_at=None) | Q(ended_at__gte=F("started_at")),
            ),
        ]
        indexes = [
            # PanDA jobs of new or changed batch jobs.
            models.Index(name="workload_job_batch", fields=["batch_id", "cluster"]),
            # Look-ups.
            models.Index(name="workload_job_task", fields=["task_id"]),
            models.Index(name="workload_job_reported_batch", fields=["reported_batch_id"]),
            # Look-ups by time, as PanDA's monitor selects jobs.
            models.Index(name="workload_job_modified", fields=["-modified_at"]),
            # Cache validation: changes since a time.
            models.Index(name="workload_job_changed", fields=["changed_at"]),
        ]

    def __str__(self) -> str:
        return str(self.panda_id)
