"""Segments, and the batches of agents among them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Self

from django.db import models

from collectors.formats import BY_NAME
from ioportal.site.models import Cluster, Server, Source, Target

if TYPE_CHECKING:
    from uuid import UUID

    from django.contrib.auth.models import AnonymousUser, User

    from collectors.tables import Table


class SegmentQuerySet(models.QuerySet["Segment"]):
    """Questions about segments."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Segments `user` may see: staff only, because raw logs contain the jobs of all users."""
        return self if user.is_staff else self.none()

    def loaded(self) -> Self:
        """Complete segments only."""
        return self.exclude(digest__startswith=Segment.LOADING)


class Segment(models.Model):
    """A file or batch that was loaded."""

    LOADING = "loading "  # prefix of the digest of an incomplete segment

    format = models.CharField(max_length=16)  # one of `collectors.formats`
    # SHA-256 of the origin and the content: a file that is given twice is one segment.
    digest = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=1024)  # of the file
    cluster = models.ForeignKey(Cluster, models.CASCADE, null=True, blank=True)
    server = models.ForeignKey(Server, models.CASCADE, null=True, blank=True)
    targets = models.ManyToManyField(Target, blank=True)
    experiment = models.ForeignKey(
        "experiments.Experiment", models.CASCADE, null=True, blank=True, related_name="segments"
    )
    runs = models.ManyToManyField("experiments.Run", blank=True, related_name="segments")
    start = models.DateTimeField(null=True)  # first record; for counters, the time of the read
    end = models.DateTimeField(null=True)  # last record
    loaded_at = models.DateTimeField(auto_now_add=True)

    lines = models.BigIntegerField(default=0)
    accepted = models.BigIntegerField(default=0)
    rejected = models.BigIntegerField(default=0)
    irrelevant = models.BigIntegerField(default=0)
    rejected_by_reason = models.JSONField(default=dict)  # reason -> lines
    records = models.BigIntegerField(default=0)  # rows stored, before any derivation
    operations = models.BigIntegerField(default=0)  # RPCs; for counters, the sum of the totals

    objects = SegmentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="segment_accounts_for_every_line",
                condition=models.Q(
                    lines=models.F("accepted") + models.F("rejected") + models.F("irrelevant")
                ),
            )
        ]
        indexes = [
            # The ingest page; extents of a server.
            models.Index(name="segment_recent", fields=["-loaded_at"]),
            models.Index(name="segment_extent", fields=["format", "server", "start"]),
            # Recent segments with rejects.
            models.Index(
                name="segment_rejected", fields=["-loaded_at"], condition=models.Q(rejected__gt=0)
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def table(self) -> Table:
        """The table of a file of its format: it determines how rows are stored."""
        return BY_NAME[self.format].table

    @property
    def format_label(self) -> str:
        """Its format in words."""
        return BY_NAME[self.format].label

    @property
    def is_batch(self) -> bool:
        """Whether an agent sent it; use `select_related` to avoid a query per object."""
        return hasattr(self, "batch")


class Batch(models.Model):
    """The stream and sequence number of a segment that an agent sent.

    A stream starts when the state of an agent is created; its sequence numbers increase by one.
    """

    segment = models.OneToOneField(Segment, models.CASCADE, related_name="batch")
    source = models.ForeignKey(Source, models.CASCADE, related_name="batches")
    stream = models.UUIDField()
    sequence = models.BigIntegerField()
    content = models.CharField(max_length=64)  # SHA-256; equal in every delivery

    class Meta:
        constraints = [
            models.UniqueConstraint(name="batch_identity", fields=["source", "stream", "sequence"])
        ]
        indexes = [models.Index(name="batch_newest", fields=["source", "-id"])]

    def __str__(self) -> str:
        return f"{self.source} {self.stream}/{self.sequence}"

    @staticmethod
    def digest(source: Source, stream: UUID, sequence: int) -> str:
        """Return the digest of the segment of a batch."""
        return hashlib.sha256(f"batch\n{source.pk}\n{stream}\n{sequence}".encode()).hexdigest()
