"""Streams of batches, and the agent that sends the batches of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from ioportal.ingest.models.segment import Segment
from ioportal.site.models import Source
from ioportal.telemetry.models import Coverage

if TYPE_CHECKING:
    from ioportal.ingest.manifest import Manifest


class Stream(models.Model):
    """The batches that one agent sent from one state folder."""

    source = models.ForeignKey(Source, models.CASCADE, related_name="streams")
    stream = models.UUIDField()
    instance = models.UUIDField(null=True)  # of the agent; null: it sends none
    host = models.CharField(max_length=255)
    started_at = models.DateTimeField()  # arrival of its first batch
    latest_at = models.DateTimeField()  # its latest delivery, stored or refused
    # A discarded stream has no data any more, and its batches are refused.
    discarded_at = models.DateTimeField(null=True)
    discarded_by = models.CharField(max_length=150, blank=True)
    discard_reason = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["-latest_at"]
        constraints = [models.UniqueConstraint(name="stream_identity", fields=["source", "stream"])]

    def __str__(self) -> str:
        return f"{self.source} {self.stream}"

    def is_of(self, manifest: Manifest) -> bool:
        """Return whether the agent of this stream sent a batch.

        Agents before version 1.1 send no instance: two of them cannot be told apart.
        """
        if self.instance and manifest.agent.instance:
            return self.instance == manifest.agent.instance
        return self.stream == manifest.stream or not (self.instance or manifest.agent.instance)


class Sender(models.Model):
    """The agent that sends the batches of a source, a second one, and refused deliveries."""

    source = models.OneToOneField(Source, models.CASCADE, related_name="sender")
    stream = models.ForeignKey(Stream, models.SET_NULL, null=True)  # the latest accepted one

    # A second agent, whose batches wait.
    rival = models.UUIDField(null=True)  # its instance, otherwise its stream
    rival_host = models.CharField(max_length=255, blank=True)
    rival_since = models.DateTimeField(null=True)
    rival_at = models.DateTimeField(null=True)  # its latest attempt
    released = models.UUIDField(null=True)  # identity of the agent that staff let take over
    released_at = models.DateTimeField(null=True)

    refusals = models.BigIntegerField(default=0)  # of deliveries, all times
    refused_at = models.DateTimeField(null=True)
    refused_stream = models.UUIDField(null=True)
    refusal = models.TextField(blank=True)  # the latest reason

    def __str__(self) -> str:
        return f"{self.source} {self.stream}"


class DisplacedClaim(models.Model):
    """Coverage that a stream without rows in it lost to the rows of another stream.

    It returns if the other stream is discarded.
    """

    kind = models.CharField(max_length=16, choices=Coverage.Source)
    source_id = models.IntegerField()  # a server or a target
    start = models.DateTimeField()
    end = models.DateTimeField()
    segment = models.ForeignKey(Segment, models.CASCADE, related_name="+")
    taken_by = models.ForeignKey(Segment, models.CASCADE, related_name="displaced")

    def __str__(self) -> str:
        return f"{self.kind} {self.start} to {self.end}"
