"""Segments, streams, lines, dirty intervals that await attribution, and late rows."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, ClassVar, Self

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models

from collectors.formats import BY_NAME
from ioportal.jobs.models import Job, WorkloadJob
from ioportal.site.models import Cluster, Filesystem, Server, Source, Target
from ioportal.telemetry.models import Coverage, Pending

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from django.contrib.auth.models import AnonymousUser, User

    from collectors.tables import Table
    from ioportal.ingest.manifest import Manifest


_NEW_KEYS = "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)"


class SegmentQuerySet(models.QuerySet["Segment"]):
    """Questions about segments."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Segments `user` may see: staff only, because raw logs contain the jobs of all users."""
        return self if user.is_staff else self.none()

    def new_keys(self, number: int) -> list[int]:
        """Return unused primary keys: rows may name a segment before it is stored."""
        with connection.cursor() as cursor:
            cursor.execute(_NEW_KEYS, [self.model._meta.db_table, number])  # noqa: SLF001  (Django's documented meta API)
            return [key for (key,) in cursor.fetchall()]


class Segment(models.Model):
    """A file or batch that was loaded."""

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


class SegmentPart(models.Model):
    """The former segment of a batch that was joined with others: rows still name its key."""

    id = models.BigIntegerField(primary_key=True)
    segment = models.ForeignKey(Segment, models.CASCADE, related_name="parts")

    def __str__(self) -> str:
        return f"{self.pk} of {self.segment}"

    @classmethod
    def keys_of(cls, segments: Iterable[int]) -> dict[int, int]:
        """Return segments by the keys that rows name: their own, and those of their parts."""
        own = {key: key for key in segments}
        parts = cls.objects.filter(segment__in=list(own)).values_list("pk", "segment_id")
        return own | dict(parts)


class Batch(models.Model):
    """The stream and sequence number of a segment that an agent sent.

    A stream starts when the state of an agent is created; its sequence numbers increase by one.
    Old batches are joined (`ioportal.ingest.joined_batches`).
    """

    segment = models.OneToOneField(Segment, models.CASCADE, related_name="batch")
    source = models.ForeignKey(Source, models.CASCADE, related_name="batches")
    stream = models.UUIDField()
    first_sequence = models.BigIntegerField()
    sequence = models.BigIntegerField()  # the last one; equal to the first, unless joined
    content = models.CharField(max_length=64)  # SHA-256; equal in every delivery; "" if joined

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

        Agents before version 1.1 send no instance: two agents cannot be distinguished.
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


class Reject(models.Model):
    """A data line that cannot be parsed; the first lines of each reason are stored."""

    segment = models.ForeignKey(Segment, models.CASCADE, related_name="rejects")
    line = models.BigIntegerField()
    text = models.TextField()
    reason = models.TextField()

    class Meta:
        indexes = [models.Index(name="reject_line", fields=["segment", "line"])]

    def __str__(self) -> str:
        return f"{self.segment} line {self.line}: {self.reason}"


class AccountingRecord(models.Model):
    """The line of a segment that contains a record of a job, launch or PanDA job."""

    segment = models.ForeignKey(Segment, models.CASCADE, related_name="accounting_records")
    line = models.BigIntegerField()
    job = models.ForeignKey(Job, models.CASCADE, null=True, related_name="records")
    workload_job = models.ForeignKey(WorkloadJob, models.CASCADE, null=True, related_name="records")

    def __str__(self) -> str:
        return f"{self.segment} line {self.line}"


class OwnerConflict(models.Model):
    """A record that is not applied: of another owner, or of another source for an ended job.

    The latest per job and source. An explicit correction resolves it.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="owner_conflicts")
    source = models.ForeignKey(Source, models.CASCADE, null=True, related_name="+")  # null: a file
    reported_owner = models.CharField(max_length=64)
    segment = models.ForeignKey(Segment, models.CASCADE, related_name="owner_conflicts")
    line = models.BigIntegerField()
    differences = models.CharField(max_length=255, default="owner")  # facts that it would change

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="owner_conflict", fields=["job", "source"], nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return f"{self.segment} line {self.line}: {self.job} of {self.reported_owner}"


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
    filesystem = models.ForeignKey(Filesystem, models.CASCADE)

    def __str__(self) -> str:
        return f"{self.segment} {self.start} to {self.end}"


class DirtyJob(_Dirty):
    """The time range or the nodes of a job changed."""

    job = models.ForeignKey(Job, models.CASCADE)
    node_ids = ArrayField(models.BigIntegerField())  # former nodes

    def __str__(self) -> str:
        return f"{self.job} {self.start} to {self.end}"


class AwaitedRecords(models.Model):
    """A traced interval in which RPCs may be of jobs of a cluster whose records are late."""

    server = models.ForeignKey(Server, models.CASCADE)
    cluster = models.ForeignKey(Cluster, models.CASCADE)
    start = models.DateTimeField()
    end = models.DateTimeField()
    noted_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.server} {self.start} to {self.end}, {self.cluster}"


class LateRows(models.Model):
    """Data that arrived after retention dropped the rows needed to attribute it.

    It is stored but not attributed: see `ioportal.ingest.attribution_stage`. The storage page lists
    it.
    """

    server = models.ForeignKey(Server, models.CASCADE, null=True)  # of a trace
    target = models.ForeignKey(Target, models.CASCADE, null=True)  # of a read
    job = models.ForeignKey(Job, models.CASCADE, null=True)  # of a record
    segment = models.ForeignKey(Segment, models.CASCADE, null=True)  # of differences
    start = models.DateTimeField()
    end = models.DateTimeField()
    noticed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(name="laterows_recent", fields=["-noticed_at"])]

    def __str__(self) -> str:
        return (
            f"{self.server or self.target or self.job or self.segment} {self.start} to {self.end}"
        )
