"""Experiments: planned tests with arms, runs, measurements of each run, and uploaded files."""

from __future__ import annotations

from secrets import token_urlsafe
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.text import slugify

from ioportal.jobs.models import Job

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


_SHARE_KEY_BYTES = 18
_SLUG_CHARACTERS = 80


def share_key() -> str:
    """Return a new secret for the link that shares an experiment."""
    return token_urlsafe(_SHARE_KEY_BYTES)


class ExperimentQuerySet(models.QuerySet["Experiment"]):
    """Queries of experiments."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Experiments `user` may see: staff see all, others their own, shared ones, projects'."""
        if user.is_staff:
            return self
        projects = [group.name for group in user.groups.all()]
        read = Experiment.readers.through.objects.filter(user_id=user.pk or 0).values(
            "experiment_id"
        )
        return self.filter(
            Q(owner=user.pk) | Q(is_public=True) | Q(project__in=projects) | Q(pk__in=read)
        )

    def editable_by(self, user: User | AnonymousUser) -> Self:
        """Experiments `user` may change: staff all, others their own."""
        return self if user.is_staff else self.filter(owner=user.pk)


class Experiment(models.Model):
    """A planned test. Its owner and staff change it; see `ExperimentQuerySet.visible_to`."""

    RESERVED_SLUGS = frozenset({"upload", "uploads", "new", "shared"})  # addresses of other pages

    name = models.CharField(max_length=120)
    slug = models.SlugField(max_length=90, unique=True, editable=False)
    description = models.TextField(blank=True)
    # None: loaded by a command, or the owner's account was deleted; staff may change it.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="experiments"
    )
    project = models.CharField(max_length=128, blank=True)  # its members may see it
    is_public = models.BooleanField("visible to all users", default=False)
    share_key = models.CharField(max_length=32, unique=True, default=share_key, editable=False)
    readers = models.ManyToManyField(  # users who opened the link
        settings.AUTH_USER_MODEL, related_name="+", blank=True
    )
    settings = models.JSONField(default=dict)  # of its sections, such as storage areas
    simulated = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ExperimentQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_shared_by_link(self) -> bool:
        """Whether users opened the link."""
        return self.readers.exists()

    def choose_slug(self) -> None:
        """Set the slug from the name; a number is added if it is taken."""
        base = slugify(self.name)[:_SLUG_CHARACTERS] or "experiment"
        taken = set(Experiment.objects.filter(slug__startswith=base).values_list("slug", flat=True))
        taken |= self.RESERVED_SLUGS
        number = 1
        self.slug = base
        while self.slug in taken:
            number += 1
            self.slug = f"{base}-{number}"


class Arm(models.Model):
    """One side of an experiment: runs with the same set-up."""

    experiment = models.ForeignKey(Experiment, models.CASCADE, related_name="arms")
    name = models.CharField(max_length=80)
    position = models.IntegerField(default=0)  # the first arm is the reference

    class Meta:
        ordering = ["position", "pk"]  # of the same position: in order of their first run
        constraints = [
            models.UniqueConstraint(name="arm_identity", fields=["experiment", "name"]),
        ]

    def __str__(self) -> str:
        return self.name


class Run(models.Model):
    """One execution. Metrics have their units in their names: ``wall_s``, ``read_bytes``."""

    class State(models.TextChoices):
        FINISHED = "finished", "finished"
        FAILED = "failed", "failed"
        HUNG = "hung", "hung"

    experiment = models.ForeignKey(Experiment, models.CASCADE, related_name="runs")
    arm = models.ForeignKey(Arm, models.CASCADE, related_name="runs")
    name = models.CharField(max_length=120)
    state = models.CharField(max_length=8, choices=State, blank=True)  # "": unknown
    started_at = models.DateTimeField(null=True, blank=True)
    scale = models.FloatField(null=True, blank=True)  # nodes, in scaling tests
    events = models.BigIntegerField(null=True, blank=True)  # processed
    labels = models.JSONField(default=dict, blank=True)  # name to text
    metrics = models.JSONField(default=dict, blank=True)  # name to number
    steps = models.JSONField(default=list, blank=True)  # {"name", "seconds"}
    counters = models.JSONField(default=list, blank=True)  # storage timing: tables.RUNS
    markers = models.JSONField(default=list, blank=True)  # lines of its output
    recipe = models.JSONField(default=dict, blank=True)  # release, patches, configuration, command
    notes = models.TextField(blank=True)
    job = models.ForeignKey(Job, models.SET_NULL, null=True, blank=True, related_name="runs")
    panda_id = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["arm", "scale", "pk"]
        constraints = [
            models.UniqueConstraint(name="run_identity", fields=["experiment", "name"]),
        ]

    def __str__(self) -> str:
        return self.name


class SystemCall(models.Model):
    """System calls of a run with one path and result."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="system_calls")
    call = models.CharField(max_length=32)
    path = models.TextField(null=True)  # noqa: DJ001  (null: the call has none)
    error = models.CharField(max_length=32, blank=True)  # "": succeeded; "?": failed
    count = models.BigIntegerField()
    timed = models.BigIntegerField()  # of `count`, those with a duration
    duration_s = models.FloatField()
    first_line = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.call} {self.path}"


class SystemCallWindow(models.Model):
    """System calls of a run in 10 s."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="system_call_windows")
    second = models.BigIntegerField()  # of the log's clock (`tables.SYSTEM_CALLS`)
    call = models.CharField(max_length=32)
    failed = models.BooleanField()
    count = models.BigIntegerField()
    duration_s = models.FloatField()

    def __str__(self) -> str:
        return f"{self.call} at {self.second} s"


class ProcessSample(models.Model):
    """A sample of a run's processes, with the columns of `tables.PROCESS_SAMPLES`."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="process_samples")
    at = models.DateTimeField()
    elapsed_s = models.FloatField()
    pss_bytes = models.FloatField(null=True)
    rss_bytes = models.FloatField(null=True)
    swap_bytes = models.FloatField(null=True)
    vmem_bytes = models.FloatField(null=True)
    nprocs = models.FloatField(null=True)
    nthreads = models.FloatField(null=True)
    utime_s = models.FloatField(null=True)
    stime_s = models.FloatField(null=True)
    rchar_bytes = models.FloatField(null=True)
    wchar_bytes = models.FloatField(null=True)
    read_bytes = models.FloatField(null=True)
    write_bytes = models.FloatField(null=True)
    rx_bytes = models.FloatField(null=True)
    tx_bytes = models.FloatField(null=True)

    def __str__(self) -> str:
        return f"{self.elapsed_s} s"


class PairTransfer(models.Model):
    """A transfer of one client to or from one storage target."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="pair_transfers")
    start_s = models.FloatField()
    client = models.CharField(max_length=64)
    target = models.CharField(max_length=64)
    bytes = models.BigIntegerField()
    duration_s = models.FloatField()
    x = models.FloatField(null=True)  # position of the client's node in the interconnect
    y = models.FloatField(null=True)
    z = models.FloatField(null=True)

    def __str__(self) -> str:
        return f"{self.client} to {self.target}"


class Attachment(models.Model):
    """A file that belongs to a run, stored unread."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="attachments")
    name = models.CharField(max_length=200)
    content = models.BinaryField()
    size_bytes = models.BigIntegerField()
    added_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name


class UploadQuerySet(models.QuerySet["Upload"]):
    """Queries of uploads."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Uploads `user` may see: staff see all, others their own."""
        return self if user.is_staff else self.filter(owner=user.pk)

    def unfinished(self) -> Self:
        """Uploads that are neither loaded nor failed."""
        return self.exclude(state__in=Upload.FINISHED)

    def waiting(self) -> Self:
        """Complete uploads that are not loaded yet."""
        return self.unfinished().exclude(state=Upload.State.RECEIVING)


class Upload(models.Model):
    """The files of one run, or one file of many runs, on their way into an experiment."""

    class State(models.TextChoices):
        RECEIVING = "receiving", "receiving"
        PENDING = "pending", "waiting for a worker"
        LOADING = "loading", "loading"
        LOADED = "loaded", "loaded"
        FAILED = "failed", "failed"

    FINISHED = frozenset({State.LOADED, State.FAILED})

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="uploads")
    experiment = models.ForeignKey(Experiment, models.CASCADE, related_name="uploads")
    format = models.CharField(max_length=16, blank=True)  # "": recognised by its content
    arm = models.CharField(max_length=80, blank=True)
    run = models.CharField(max_length=120, blank=True)
    replace = models.BooleanField(default=False)
    state = models.CharField(max_length=10, choices=State, default=State.RECEIVING)
    message = models.TextField(blank=True)  # result, or the reason of the failure
    lines = models.BigIntegerField(default=0)  # parsed so far
    attempts = models.IntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    objects = UploadQuerySet.as_manager()

    class Meta:
        indexes = [
            # The next to load; uploads of a page.
            models.Index(name="upload_state", fields=["state", "created_at"]),
        ]

    def __str__(self) -> str:
        return f"upload {self.pk}"

    @property
    def is_finished(self) -> bool:
        """Whether nothing more happens."""
        return self.state in self.FINISHED


class UploadFile(models.Model):
    """A file of an upload."""

    upload = models.ForeignKey(Upload, models.CASCADE, related_name="files")
    name = models.CharField(max_length=255)
    size_bytes = models.BigIntegerField()  # as the browser states it

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name


class UploadPart(models.Model):
    """Bytes of a file; deleted when the upload is loaded."""

    file = models.ForeignKey(UploadFile, models.CASCADE, related_name="parts")
    number = models.IntegerField()  # from 0, without gaps
    content = models.BinaryField()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(name="upload_part_identity", fields=["file", "number"])
        ]

    def __str__(self) -> str:
        return f"{self.file} part {self.number}"
