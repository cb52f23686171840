"""Batch jobs, PanDA jobs, and their links."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Self

from django.contrib.postgres.indexes import GinIndex, GistIndex, OpClass
from django.db import models
from django.db.models import Case, Exists, F, OuterRef, Q, Value, When
from django.db.models.functions import Concat, Now, Upper

from ioportal.jobs.visibility import may_see
from ioportal.site.models.infrastructure import Cluster, Node
from ioportal.site.models.source import Source

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from django.contrib.auth.models import AnonymousUser, User


# As `Job.display_id`.
DISPLAY_ID = Case(
    When(array_index="", then=F("batch_id")),
    default=Concat(F("batch_id"), Value("["), F("array_index"), Value("]")),
)


class JobQuerySet(models.QuerySet["Job"]):
    """Queries of jobs."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Jobs `user` may see: for staff all jobs, otherwise by account and projects."""
        return self.filter(may_see(user))

    def hidden_from(self, user: User | AnonymousUser) -> Self:
        """All other jobs; `user` may see aggregates of many only."""
        return self.none() if user.is_staff else self.exclude(may_see(user))

    def overlapping(self, start: datetime, end: datetime) -> Self:
        """Jobs that ran at any time in [start, end), including running jobs."""
        return self.filter(started_at__lt=end).filter(Q(ended_at=None) | Q(ended_at__gt=start))


class Job(models.Model):
    """A batch job; of several accounting records, the one with the highest precedence."""

    class State(models.TextChoices):
        """States as in `collectors.batch.states`."""

        PENDING = "pending", "pending"
        RUNNING = "running", "running"
        SUSPENDED = "suspended", "suspended"
        REQUEUED = "requeued", "requeued"
        COMPLETED = "completed", "completed"
        FAILED = "failed", "failed"
        CANCELLED = "cancelled", "cancelled"
        TIMEOUT = "timeout", "timed out"
        NODE_FAIL = "node_fail", "node failed"
        PREEMPTED = "preempted", "preempted"
        OUT_OF_MEMORY = "out_of_memory", "out of memory"
        UNKNOWN = "unknown", "unknown"

    # Indexed below, together with other columns.
    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="jobs", db_index=False)
    batch_id = models.CharField(max_length=64)  # not unique: ids repeat, jobs are requeued
    array_index = models.CharField(max_length=64, blank=True)
    submitted_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)  # null: still pending
    ended_at = models.DateTimeField(null=True, blank=True)  # null: not ended
    name = models.CharField(max_length=255, blank=True)
    owner = models.CharField(max_length=64, blank=True)
    project = models.CharField(max_length=128, blank=True)
    queue = models.CharField(max_length=128, blank=True)
    state = models.CharField(max_length=16, choices=State)
    exit_status = models.IntegerField(null=True, blank=True)
    exit_signal = models.IntegerField(null=True, blank=True)
    recorded_node_count = models.IntegerField(default=0, editable=False)  # 0: unknown
    node_count = models.IntegerField(default=0)  # with nodes that only launches name
    core_count = models.IntegerField(default=0)
    cpu_s = models.FloatField(null=True, blank=True)
    time_limit_s = models.BigIntegerField(null=True, blank=True)
    nodes = models.TextField(blank=True)  # folded host list, as the scheduler gave it
    # Of the stored record; null: a file.
    source = models.ForeignKey(
        Source, models.SET_NULL, null=True, blank=True, editable=False, db_index=False,
        related_name="+",
    )  # fmt: skip
    # Sort key of accounting records (`ioportal.jobs.precedence`).
    precedence = models.CharField(max_length=128)
    # A copy from its statistics, for filters and facet counts. Null: not computed.
    quality = models.CharField(max_length=8, null=True, editable=False)  # noqa: DJ001  (null: not computed)

    objects = JobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="job_identity",
                fields=["cluster", "batch_id", "array_index", "submitted_at"],
            ),
            models.CheckConstraint(
                name="job_ends_after_start",
                condition=Q(ended_at=None) | Q(ended_at__gte=F("started_at")),
            ),
        ]
        indexes = [
            # Attribution: jobs that ran in an interval.
            GistIndex(
                models.Func("started_at", "ended_at", function="tstzrange"), name="job_during"
            ),
            # Attribution: jobs by batch id.
            models.Index(name="job_batch_id", fields=["batch_id", "cluster"]),
            # Job list: newest first, also per value of each filter.
            models.Index(
                name="job_recent",
                fields=["-started_at", "-id"],
                # Columns of filters and facet counts, for index-only scans.
                include=[
                    "cluster",
                    "name",
                    "owner",
                    "project",
                    "queue",
                    "state",
                    "quality",
                    "ended_at",
                    "node_count",
                ],
            ),
            models.Index(name="job_cluster_recent", fields=["cluster", "-started_at"]),
            # Attribution: the latest records of a cluster.
            models.Index(name="job_cluster_ended", fields=["cluster", "-ended_at"]),
            models.Index(name="job_name_recent", fields=["name", "-started_at"]),
            models.Index(name="job_owner_recent", fields=["owner", "-started_at"]),
            models.Index(name="job_project_recent", fields=["project", "-started_at"]),
            models.Index(name="job_queue_recent", fields=["queue", "-started_at"]),
            models.Index(name="job_state_recent", fields=["state", "-started_at"]),
            # Job list in other orders; jobs by time.
            models.Index(name="job_node_count", fields=["node_count", "started_at"]),
            models.Index(name="job_submitted", fields=["submitted_at", "started_at"]),
            models.Index(name="job_ended", fields=["ended_at", "started_at"]),
            models.Index(name="job_quality", fields=["quality", "started_at"]),
            # Jobs of zero duration, which overlap no range.
            models.Index(
                name="job_instant", fields=["started_at"], condition=Q(ended_at=F("started_at"))
            ),
            # Job list: search in names.
            GinIndex(OpClass(Upper("name"), "gin_trgm_ops"), name="job_name_part"),
        ]

    def __str__(self) -> str:
        return self.display_id

    @property
    def known_until(self) -> datetime | None:
        """The end of the job, or of its statistics while it runs. None: not started."""
        if self.ended_at or not self.started_at:
            return self.ended_at
        statistics = getattr(self, "statistics", None)
        duration_s = statistics.duration_s if statistics else None
        return self.started_at + timedelta(seconds=duration_s or 0)

    @property
    def display_id(self) -> str:
        """The id with its array index: '3567126' or '3567126[4]'."""
        return f"{self.batch_id}[{self.array_index}]" if self.array_index else self.batch_id


class Allocation(models.Model):
    """A node allocated to a job."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="allocations")
    node = models.ForeignKey(Node, models.CASCADE, related_name="allocations")

    class Meta:
        constraints = [models.UniqueConstraint(name="allocation_identity", fields=["job", "node"])]

    def __str__(self) -> str:
        return f"{self.node} for {self.job}"


class Launch(models.Model):
    """An application launch in a job: an ALPS apid or a Slurm step."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="launches")
    name = models.CharField(max_length=64)  # the apid; a Slurm step as '123.0'
    batch_id = models.CharField(max_length=64, blank=True)
    array_index = models.CharField(max_length=64, blank=True)
    started_at = models.DateTimeField(null=True)  # null: only the end is recorded
    ended_at = models.DateTimeField(null=True)
    node_count = models.IntegerField(default=0)
    nodes = models.TextField(blank=True)  # folded host list
    command = models.TextField(blank=True)
    exit_status = models.IntegerField(null=True)
    exit_signal = models.IntegerField(null=True)
    job = models.ForeignKey(Job, models.SET_NULL, null=True, related_name="launches")

    class Meta:
        indexes = [
            models.Index(name="launch_name", fields=["name"]),
            models.Index(name="launch_batch", fields=["cluster", "batch_id", "array_index"]),
        ]
        constraints = [
            # Launch names are unique per cluster; the batch id separates exceptions.
            models.UniqueConstraint(
                name="launch_identity", fields=["cluster", "name", "batch_id", "array_index"]
            )
        ]

    def __str__(self) -> str:
        return self.name


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
