"""Counters: raw snapshots and differences, I/O windows and their roll-ups.

These tables are hypertables without unique keys, created by SQL in `migrations/`: a raw row belongs
to its segment, and each segment is loaded once.
"""

from __future__ import annotations

from django.db import models

from collectors.tables import COUNTERS
from ioportal.telemetry.models.windows import Principal, WindowQuerySet


class JobSnapshot(models.Model):
    """Raw and immutable: one job_stats entry in one read of its target (totals)."""

    pk = models.CompositePrimaryKey("segment_id", "taken_at", "target_id", "source_job_id")
    taken_at = models.DateTimeField()
    segment_id = models.BigIntegerField()
    target_id = models.IntegerField()
    source_job_id = models.IntegerField()  # 0: an empty job id
    snapshot_at = models.DateTimeField(null=True)
    entry_started_at = models.DateTimeField(null=True)

    class Meta:
        managed = False


class TargetSnapshot(models.Model):
    """Raw and immutable: md_stats of an MDT in one read (totals)."""

    pk = models.CompositePrimaryKey("segment_id", "taken_at", "target_id")
    taken_at = models.DateTimeField()
    segment_id = models.BigIntegerField()
    target_id = models.IntegerField()
    snapshot_at = models.DateTimeField(null=True)

    class Meta:
        managed = False


class JobDelta(models.Model):
    """Raw and immutable: operations of a job id between two polls of an MDT or a host's OSTs."""

    pk = models.CompositePrimaryKey("segment_id", "end", "target_id", "source_job_id")
    start = models.DateTimeField()  # for a total, its only poll
    end = models.DateTimeField()
    segment_id = models.BigIntegerField()
    filesystem_id = models.IntegerField()
    target_id = models.IntegerField()  # 0: folded OSTs
    source_job_id = models.IntegerField()
    basis = models.SmallIntegerField()

    class Meta:
        managed = False


class TargetDelta(models.Model):
    """Raw and immutable: operations of all clients on an MDT between two polls."""

    pk = models.CompositePrimaryKey("segment_id", "end", "target_id")
    start = models.DateTimeField()
    end = models.DateTimeField()
    segment_id = models.BigIntegerField()
    target_id = models.IntegerField()
    basis = models.SmallIntegerField()

    class Meta:
        managed = False


class IoWindow(models.Model):
    """Derived: operations of one job id on an MDT or all OSTs, between two reads or polls."""

    class Basis(models.IntegerChoices):
        """How the counts were computed."""

        DIFFERENCE = 1, "difference of two reads"
        NEW_ENTRY = 2, "entry created between two reads"
        RESTARTED = 3, "entry dropped while idle and created again"
        RESET = 4, "unexplained decrease of counters: operations may be missing"
        TOTAL = 5, "first read of the target: total of unknown duration"

    pk = models.CompositePrimaryKey("start", "target_id", "source_job_id")  # for Django only
    start = models.DateTimeField()
    end = models.DateTimeField()
    segment_id = models.BigIntegerField()  # of the read at its end
    filesystem_id = models.IntegerField()
    target_id = models.IntegerField()  # 0: folded OSTs of the filesystem
    source_job_id = models.IntegerField()
    kind = models.SmallIntegerField(choices=Principal)
    job_id = models.BigIntegerField()
    basis = models.SmallIntegerField(choices=Basis)

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class IoTenMinutes(models.Model):
    """Rolled up from `IoWindow`: sums of the whole poll intervals that start in ten minutes.

    Intervals are never divided: `start` is the start of the first interval with operations and
    `end` the end of the last interval, which may be after the bucket. Intervals longer than
    `settings.POLL_GAP` have their own rows.
    """

    pk = models.CompositePrimaryKey("bucket", "target_id", "source_job_id")  # for Django only
    bucket = models.DateTimeField()  # start of the ten minutes
    start = models.DateTimeField()
    end = models.DateTimeField()
    filesystem_id = models.IntegerField()
    target_id = models.IntegerField()  # 0: folded OSTs of the filesystem
    source_job_id = models.IntegerField()
    kind = models.SmallIntegerField(choices=Principal)
    job_id = models.BigIntegerField()
    basis = models.SmallIntegerField(choices=IoWindow.Basis)  # RESET if any interval has this basis
    metadata_operations = models.BigIntegerField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class IoTotal(models.Model):
    """Added up from `IoWindow`: metadata operations of all principals between two polls."""

    pk = models.CompositePrimaryKey("start", "target_id", "end", "basis")  # for Django only
    start = models.DateTimeField()
    end = models.DateTimeField()
    filesystem_id = models.IntegerField()
    target_id = models.IntegerField()  # 0: folded OSTs of the filesystem
    basis = models.SmallIntegerField(choices=IoWindow.Basis)
    metadata_operations = models.BigIntegerField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class HostWindow(models.Model):
    """Raw: metadata operations of a host outside jobs on an MDT, between two polls of its exports.

    The nodes of a job are folded into one row of NID 0, as evidence for its counters in `IoWindow`.
    So are all nodes with several jobs, and all clients whose NIDs have no registered node.
    """

    pk = models.CompositePrimaryKey("segment_id", "end", "target_id", "nid_id")  # for Django only
    start = models.DateTimeField()
    end = models.DateTimeField()
    segment_id = models.BigIntegerField()
    target_id = models.IntegerField()
    nid_id = models.IntegerField()  # 0: several clients
    kind = models.SmallIntegerField(choices=Principal)  # HOST, JOB or UNATTRIBUTED
    basis = models.SmallIntegerField(choices=IoWindow.Basis)
    metadata_operations = models.BigIntegerField()
    metadata_us = models.BigIntegerField(null=True)  # null: unknown
    job_id = models.BigIntegerField(default=0)  # 0: no job, or several

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class ServiceSnapshot(models.Model):
    """Raw and immutable: one counter of a service in one read (totals)."""

    class Unit(models.IntegerChoices):
        """Units of counters, as in `collectors.tables.SERVICE_UNITS`."""

        REQUESTS = 1, "reqs"
        MICROSECONDS = 2, "usec"
        SECONDS = 3, "sec"
        BUFFERS = 4, "bufs"
        BYTES = 5, "bytes"
        PAGES = 6, "pages"
        REGISTRATIONS = 7, "regs"

    pk = models.CompositePrimaryKey("segment_id", "taken_at", "service_id", "counter_id")
    taken_at = models.DateTimeField()
    segment_id = models.BigIntegerField()
    server_id = models.IntegerField()
    service_id = models.IntegerField()
    counter_id = models.IntegerField()
    unit = models.SmallIntegerField(choices=Unit)
    snapshot_at = models.DateTimeField(null=True)
    counted_since = models.DateTimeField(null=True)  # null: not printed by this server version
    samples = models.BigIntegerField()
    min = models.BigIntegerField()  # since `counted_since`, like all values
    max = models.BigIntegerField()
    sum = models.BigIntegerField()

    class Meta:
        managed = False


for _model in (JobSnapshot, TargetSnapshot, JobDelta, TargetDelta, IoWindow, IoTenMinutes):
    for _counter in COUNTERS:
        # Null: not counted by this server version or this kind of target.
        _model.add_to_class(_counter, models.BigIntegerField(null=True))
