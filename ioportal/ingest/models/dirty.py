"""Dirty intervals that await attribution."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from ioportal.ingest.models.segment import Segment
from ioportal.jobs.models import Job
from ioportal.site.models import Filesystem, Server, Target
from ioportal.telemetry.models import Pending


class _Dirty(Pending):
    """An interval whose derived rows are missing or outdated."""

    start = models.DateTimeField()
    end = models.DateTimeField()
    # Whether derived rows exist; pages show them until they are replaced.
    has_rows = models.BooleanField(default=False)

    derived_later: ClassVar = ("has_rows",)  # after new data

    class Meta:
        abstract = True
        indexes = (models.Index(fields=["-end", "-id"], name="%(class)s_latest"),)


class DirtyTrace(_Dirty):
    """Raw RPC windows of a server changed."""

    server = models.ForeignKey(Server, models.CASCADE)

    def __str__(self) -> str:
        return f"{self.server} {self.start} to {self.end}"


class DirtyReads(_Dirty):
    """Snapshots of a target changed."""

    target = models.ForeignKey(Target, models.CASCADE)

    def __str__(self) -> str:
        return f"{self.target} {self.start} to {self.end}"


class DirtyDeltas(_Dirty):
    """Differences from an agent arrived."""

    segment = models.ForeignKey(Segment, models.CASCADE)
    filesystem = models.ForeignKey(Filesystem, models.CASCADE)

    def __str__(self) -> str:
        return f"{self.segment} {self.start} to {self.end}"


class DirtyExports(_Dirty):
    """Differences by client from an agent arrived."""

    segment = models.ForeignKey(Segment, models.CASCADE)

    def __str__(self) -> str:
        return f"{self.segment} {self.start} to {self.end}"


class DirtyJob(_Dirty):
    """The time range or the nodes of a job changed."""

    job = models.ForeignKey(Job, models.CASCADE)
    node_ids = ArrayField(models.BigIntegerField())  # former nodes

    def __str__(self) -> str:
        return f"{self.job} {self.start} to {self.end}"
