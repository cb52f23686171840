"""Files of experiments that people upload; a worker loads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self
from uuid import uuid4

from django.conf import settings
from django.db import models

from ioportal.experiments.models import Experiment

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


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
