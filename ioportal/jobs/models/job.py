"""Batch jobs as their scheduler accounted for them, and where they ran."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Self

from django.contrib.postgres.indexes import GinIndex, GistIndex, OpClass
from django.db import models
from django.db.models import F, Q, prefetch_related_objects
from django.db.models.functions import Upper

from ioportal.site.models.infrastructure import Cluster, Node

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AnonymousUser, User


def _concerns(user: User | AnonymousUser) -> Q:
    if user.is_authenticated:
        prefetch_related_objects([user], "groups")  # once: indexes find names, but no subquery
    of_projects = Q(project__in=[group.name for group in user.groups.all()])
    return (Q(owner=user.get_username()) | of_projects) & ~Q(owner="")


class JobQuerySet(models.QuerySet["Job"]):
    """Questions about jobs."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Jobs `user` may see: staff see all, others their own and their projects'."""
        return self if user.is_staff else self.filter(_concerns(user))

    def hidden_from(self, user: User | AnonymousUser) -> Self:
        """All other jobs: only what stands for many of them may be told to `user`."""
        return self.none() if user.is_staff else self.exclude(_concerns(user))

    def overlapping(self, start: datetime, end: datetime) -> Self:
        """Jobs that ran at any moment of [start, end); still-running jobs count."""
        return self.filter(started_at__lt=end).filter(Q(ended_at=None) | Q(ended_at__gt=start))


class Job(models.Model):
    """A batch job; of several accounting records the one that knows most stands here."""

    class State(models.TextChoices):
        """How far it came; the words of `collectors.batch.states`."""

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

    # Found by the indexes below.
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
    node_count = models.IntegerField(default=0)
    core_count = models.IntegerField(default=0)
    cpu_s = models.FloatField(null=True, blank=True)
    time_limit_s = models.BigIntegerField(null=True, blank=True)
    nodes = models.TextField(blank=True)  # folded host list, as the scheduler gave it
    # Records of one job are ordered by what they know, so that any order of loading ends alike.
    precedence = models.CharField(max_length=128)
    # Of its statistics, written with them: lists filter and count by it. Null: not computed yet.
    quality = models.CharField(max_length=8, null=True, editable=False)  # noqa: DJ001  (unknown is no text)

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
            # Attribution: the jobs that ran in an interval.
            GistIndex(
                models.Func("started_at", "ended_at", function="tstzrange"), name="job_during"
            ),
            # Attribution: a source's job id to the job of that time.
            models.Index(name="job_batch_id", fields=["batch_id", "cluster"]),
            # The job list: newest first; by each fact, and the newest of those that share it.
            models.Index(
                name="job_recent",
                fields=["-started_at", "-id"],
                # What filters ask for and facets count: without a look at the jobs themselves.
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
            models.Index(name="job_name_recent", fields=["name", "-started_at"]),
            models.Index(name="job_owner_recent", fields=["owner", "-started_at"]),
            models.Index(name="job_project_recent", fields=["project", "-started_at"]),
            models.Index(name="job_queue_recent", fields=["queue", "-started_at"]),
            models.Index(name="job_state_recent", fields=["state", "-started_at"]),
            # Likewise by what sorts downwards first; what ran in a time.
            models.Index(name="job_node_count", fields=["node_count", "started_at"]),
            models.Index(name="job_submitted", fields=["submitted_at", "started_at"]),
            models.Index(name="job_ended", fields=["ended_at", "started_at"]),
            models.Index(name="job_quality", fields=["quality", "started_at"]),
            # Those of no duration, which no range overlaps.
            models.Index(
                name="job_instant", fields=["started_at"], condition=Q(ended_at=F("started_at"))
            ),
            # The job list: by a part of the name.
            GinIndex(OpClass(Upper("name"), "gin_trgm_ops"), name="job_name_part"),
        ]

    def __str__(self) -> str:
        return self.display_id

    @property
    def known_until(self) -> datetime | None:
        """Its end; while it runs, up to when its statistics know it. None: it did not start."""
        if self.ended_at or not self.started_at:
            return self.ended_at
        statistics = getattr(self, "statistics", None)
        duration_s = statistics.duration_s if statistics else None
        return self.started_at + timedelta(seconds=duration_s or 0)

    @property
    def display_id(self) -> str:
        """The id as people write it: '3567126' or '3567126[4]'."""
        return f"{self.batch_id}[{self.array_index}]" if self.array_index else self.batch_id


class Allocation(models.Model):
    """A node held by a job for the time that the job ran."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="allocations")
    node = models.ForeignKey(Node, models.CASCADE, related_name="allocations")

    class Meta:
        constraints = [models.UniqueConstraint(name="allocation_identity", fields=["job", "node"])]

    def __str__(self) -> str:
        return f"{self.node} for {self.job}"


class Launch(models.Model):
    """An application start inside a job: an ALPS apid or a Slurm step."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="launches")
    name = models.CharField(max_length=64)  # the apid; a Slurm step as '123.0'
    batch_id = models.CharField(max_length=64, blank=True)
    array_index = models.CharField(max_length=64, blank=True)
    started_at = models.DateTimeField(null=True)  # null: only its end was seen
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
            # apids and steps do not repeat while a cluster lives; its batch id sets repeats apart.
            models.UniqueConstraint(
                name="launch_identity", fields=["cluster", "name", "batch_id", "array_index"]
            )
        ]

    def __str__(self) -> str:
        return self.name
