"""Windows and counters over time. Samples carry no foreign key to jobs: jobs come and go.

The tables are hypertables that `migrations/` creates with SQL; Django reads them and never alters
them. None has a unique key: a raw row belongs to its segment, and a segment is loaded once.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GistIndex
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from collectors.tables import COUNTERS

if TYPE_CHECKING:
    from datetime import datetime


LARGEST_BIGINT = 2**63 - 1
_WINDOW_S = 10
_ERROR_CHARACTERS = 4_000
_OLDEST_PART = 4  # of pending rows that a stage takes, one in so many is among the oldest


def floor_to_window(moment: datetime) -> datetime:
    """Return the start of the RPC window that holds a moment."""
    return moment.replace(second=moment.second // _WINDOW_S * _WINDOW_S, microsecond=0)


def ceil_to_window(moment: datetime) -> datetime:
    """Return the end of the RPC window that ends at a moment, or holds it."""
    return floor_to_window(moment + timedelta(seconds=_WINDOW_S, microseconds=-1))


class Principal(models.IntegerChoices):
    """What an operation is charged to, or why it is not."""

    JOB = 1, "job"
    PROCESS = 2, "process"
    HOST = 3, "host"
    PENDING = 4, "pending"
    AMBIGUOUS = 5, "ambiguous"
    UNATTRIBUTED = 6, "unattributed"


class Method(models.IntegerChoices):
    """How a job was found."""

    JOB_ID = 1, "the job id that the source carried"
    NODE = 2, "the only job on the node"
    NODE_PROCESS = 3, "the only job on the node of that process"
    NONE = 0, "no job"


class WindowQuerySet(models.QuerySet[models.Model]):
    """Questions about windows."""

    def between(self, start: datetime, end: datetime) -> Self:
        """Windows that begin in [start, end)."""
        return self.filter(start__gte=start, start__lt=end)

    def for_job(self, job_id: int) -> Self:
        """Windows charged to a job."""
        return self.filter(kind=Principal.JOB, job_id=job_id)


class _RpcTimes(models.Model):
    """Counts and times of a group of RPCs; times in microseconds over the `timed` ones."""

    count = models.BigIntegerField()
    timed = models.BigIntegerField()
    service_us_sum = models.BigIntegerField()
    service_us_min = models.BigIntegerField()  # 0 where timed is 0, like the three below
    service_us_max = models.BigIntegerField()
    queue_us_min = models.BigIntegerField()
    queue_us_max = models.BigIntegerField()
    total_us_sum = models.BigIntegerField()

    class Meta:
        abstract = True


class RpcWindow(_RpcTimes):
    """Raw and immutable: 10 s x server x NID x job id x service x opcode of one segment."""

    pk = models.CompositePrimaryKey("segment_id", "start", "nid_id", "opcode")  # for Django only
    start = models.DateTimeField()
    segment_id = models.BigIntegerField()
    server_id = models.IntegerField()
    nid_id = models.IntegerField()
    source_job_id = models.IntegerField()  # 0: the request carried none
    service_id = models.IntegerField()
    opcode = models.SmallIntegerField()
    first = models.DateTimeField()
    last = models.DateTimeField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class _OfPrincipal(models.Model):
    """What one principal did on a server in an interval that begins at `start`.

    `nid_id` is 0 where the principal is found by job id, and for jobs, whose nodes are folded.
    """

    pk = models.CompositePrimaryKey("start", "server_id", "kind", "job_id")  # for Django only
    start = models.DateTimeField()
    server_id = models.IntegerField()
    kind = models.SmallIntegerField(choices=Principal)
    job_id = models.BigIntegerField()
    source_job_id = models.IntegerField()
    nid_id = models.IntegerField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        abstract = True


class _ChargedTimes(_OfPrincipal, _RpcTimes):
    """RPCs of one principal by service and opcode."""

    service_id = models.IntegerField()
    opcode = models.SmallIntegerField()

    class Meta:
        abstract = True


class RequestWindow(models.Model):
    """Raw and immutable: requests that a server kept, by 10 s x NID x service x opcode.

    A history holds an unknown part of all requests: it is added to nothing that traces tell.
    """

    pk = models.CompositePrimaryKey("segment_id", "start", "nid_id", "opcode")  # for Django only
    start = models.DateTimeField()
    segment_id = models.BigIntegerField()
    server_id = models.IntegerField()
    nid_id = models.IntegerField()
    service_id = models.IntegerField()
    opcode = models.SmallIntegerField()
    count = models.BigIntegerField()
    first = models.DateTimeField()
    last = models.DateTimeField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class ChargedRpc(_ChargedTimes):
    """Derived from raw windows: 10 s x server x service x opcode of one principal."""

    method = models.SmallIntegerField(choices=Method)
    segment_id = models.BigIntegerField()  # so that each segment's account can be re-added

    class Meta:
        managed = False


class RpcMinute(_ChargedTimes):
    """Rolled up from `ChargedRpc`: by the minute, whatever the segment and the method."""

    class Meta:
        managed = False


class RpcTenMinutes(_ChargedTimes):
    """Rolled up from `RpcMinute`."""

    class Meta:
        managed = False


class _Load(_OfPrincipal):
    """All RPCs of one principal on a server: what an overview adds up."""

    count = models.BigIntegerField()
    timed = models.BigIntegerField()
    service_us_sum = models.BigIntegerField()
    total_us_sum = models.BigIntegerField()

    class Meta:
        abstract = True


class LoadWindow(_Load):
    """Added up from `ChargedRpc`, by 10 s like it."""

    class Meta:
        managed = False


class LoadMinute(_Load):
    """Rolled up from `LoadWindow`."""

    class Meta:
        managed = False


class LoadTenMinutes(_Load):
    """Rolled up from `LoadMinute`."""

    class Meta:
        managed = False


class _Total(_RpcTimes):
    """All RPCs of a kind on a server in an interval that begins at `start`, whoever sent them."""

    pk = models.CompositePrimaryKey("start", "server_id", "service_id", "opcode")  # for Django only
    start = models.DateTimeField()
    server_id = models.IntegerField()
    service_id = models.IntegerField()
    opcode = models.SmallIntegerField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        abstract = True


class Total(_Total):
    """Added up from `ChargedRpc`, by 10 s like it."""

    class Meta:
        managed = False


class TotalMinute(_Total):
    """Rolled up from `Total`."""

    class Meta:
        managed = False


class TotalTenMinutes(_Total):
    """Rolled up from `TotalMinute`."""

    class Meta:
        managed = False


class ImpactWindow(models.Model):
    """Derived: how long others waited because of a principal, in 10 s on a server that was slow.

    `who` is a job, a source job id or a NID, by the kind; of all other kinds 0. Who cost others
    less than the hundredth of a second has no row.
    """

    pk = models.CompositePrimaryKey("start", "server_id", "kind", "who")  # for Django only
    start = models.DateTimeField()
    server_id = models.IntegerField()
    kind = models.SmallIntegerField(choices=Principal)
    who = models.BigIntegerField()
    impact_us = models.BigIntegerField()
    service_us = models.BigIntegerField()  # its own RPCs'
    work_us = models.BigIntegerField()  # the service time of all RPCs
    others_us = models.BigIntegerField()  # how long others' RPCs took, queue included
    others_usual_us = models.BigIntegerField()  # and how long they usually do

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class JobSnapshot(models.Model):
    """Raw and immutable: one job_stats entry as one read of its target showed it (totals)."""

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
    """Raw and immutable: md_stats of a whole MDT as one read showed it (totals)."""

    pk = models.CompositePrimaryKey("segment_id", "taken_at", "target_id")
    taken_at = models.DateTimeField()
    segment_id = models.BigIntegerField()
    target_id = models.IntegerField()
    snapshot_at = models.DateTimeField(null=True)

    class Meta:
        managed = False


class JobDelta(models.Model):
    """Raw and immutable: what a job id added on an MDT, or a host's OSTs, between two polls."""

    pk = models.CompositePrimaryKey("segment_id", "end", "target_id", "source_job_id")
    start = models.DateTimeField()  # of a total: its only poll
    end = models.DateTimeField()
    segment_id = models.BigIntegerField()
    filesystem_id = models.IntegerField()
    target_id = models.IntegerField()  # 0: OSTs, folded
    source_job_id = models.IntegerField()
    basis = models.SmallIntegerField()

    class Meta:
        managed = False


class TargetDelta(models.Model):
    """Raw and immutable: what all clients added on an MDT between two polls."""

    pk = models.CompositePrimaryKey("segment_id", "end", "target_id")
    start = models.DateTimeField()
    end = models.DateTimeField()
    segment_id = models.BigIntegerField()
    target_id = models.IntegerField()
    basis = models.SmallIntegerField()

    class Meta:
        managed = False


class IoWindow(models.Model):
    """Derived: what one job id did on an MDT, or on all OSTs, between two reads or polls."""

    class Basis(models.IntegerChoices):
        """What the counts rest on."""

        DIFFERENCE = 1, "difference of two reads"
        NEW_ENTRY = 2, "an entry that began between two reads"
        RESTARTED = 3, "an entry that idled, was dropped and began again"
        RESET = 4, "counters fell without a reason: operations may be missing"
        TOTAL = 5, "first read of the target: a total of unknown duration"

    pk = models.CompositePrimaryKey("start", "target_id", "source_job_id")  # for Django only
    start = models.DateTimeField()
    end = models.DateTimeField()
    segment_id = models.BigIntegerField()  # of the read that ends it
    filesystem_id = models.IntegerField()
    target_id = models.IntegerField()  # 0: the filesystem's OSTs folded
    source_job_id = models.IntegerField()
    kind = models.SmallIntegerField(choices=Principal)
    job_id = models.BigIntegerField()
    basis = models.SmallIntegerField(choices=Basis)

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class IoTenMinutes(models.Model):
    """Rolled up from `IoWindow`: sums of whole poll intervals that begin in ten minutes.

    Nothing is cut or spread: `start` is the begin of the first interval in which the principal did
    something and `end` the end of the last one, which may lie beyond the bucket. Intervals longer
    than `settings.POLL_GAP` stay alone.
    """

    pk = models.CompositePrimaryKey("bucket", "target_id", "source_job_id")  # for Django only
    bucket = models.DateTimeField()  # when the ten minutes begin
    start = models.DateTimeField()
    end = models.DateTimeField()
    filesystem_id = models.IntegerField()
    target_id = models.IntegerField()  # 0: the filesystem's OSTs folded
    source_job_id = models.IntegerField()
    kind = models.SmallIntegerField(choices=Principal)
    job_id = models.BigIntegerField()
    basis = models.SmallIntegerField(choices=IoWindow.Basis)  # RESET where one of them is
    metadata_operations = models.BigIntegerField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class IoTotal(models.Model):
    """Added up from `IoWindow`: metadata operations of all between two reads or polls."""

    pk = models.CompositePrimaryKey("start", "target_id", "end", "basis")  # for Django only
    start = models.DateTimeField()
    end = models.DateTimeField()
    filesystem_id = models.IntegerField()
    target_id = models.IntegerField()  # 0: the filesystem's OSTs folded
    basis = models.SmallIntegerField(choices=IoWindow.Basis)
    metadata_operations = models.BigIntegerField()

    objects = WindowQuerySet.as_manager()

    class Meta:
        managed = False


class ServiceSnapshot(models.Model):
    """Raw and immutable: one counter of a server's service as one read showed it (totals)."""

    class Unit(models.IntegerChoices):
        """What the values of a counter are; the words of `collectors.tables.SERVICE_UNITS`."""

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
    counted_since = models.DateTimeField(null=True)  # null: this version of the server does not say
    samples = models.BigIntegerField()
    min = models.BigIntegerField()  # since it is counted, like all values
    max = models.BigIntegerField()
    sum = models.BigIntegerField()

    class Meta:
        managed = False


for _model in (JobSnapshot, TargetSnapshot, JobDelta, TargetDelta, IoWindow, IoTenMinutes):
    for _counter in COUNTERS:
        # Null: this version of the server, or this kind of target, does not count it.
        _model.add_to_class(_counter, models.BigIntegerField(null=True))


class Coverage(models.Model):
    """An interval in which a source was observed; outside of them nothing is known."""

    class Source(models.TextChoices):
        """What was observed."""

        RPC_TRACE = "rpctrace", "RPC trace of a server"
        JOB_STATS = "job_stats", "job_stats of a target"
        MD_STATS = "md_stats", "md_stats of a target"
        MDS_STATS = "mds_stats", "statistics of a server's services"
        REQ_HISTORY = "req_history", "requests that a server kept"

    id: ClassVar[int]
    source = models.CharField(max_length=16, choices=Source)
    source_id = models.IntegerField()  # a server or a target
    start = models.DateTimeField()
    # A read of counters is an instant: end == start. What agents observed is longer.
    end = models.DateTimeField()
    segment_id = models.BigIntegerField()

    class Meta:
        indexes = [
            models.Index(name="coverage_source", fields=["source", "source_id", "start"]),
            # What was observed in an interval, however long the history before it.
            GistIndex(
                "source_id",
                models.Func("start", "end", models.Value("[]"), function="tstzrange"),
                name="coverage_during",
            ),
            models.Index(name="coverage_segment", fields=["segment_id"]),
        ]
        constraints = [
            models.CheckConstraint(
                name="coverage_ends_after_start",
                condition=models.Q(end__gte=models.F("start")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.start} to {self.end}"


class PendingQuerySet(models.QuerySet[Any]):
    """Pending work of a stage."""

    def next(self, limit: int) -> list[Any]:
        """Return up to `limit` rows to process next, in the order of their insertion.

        Most are the newest, so that a backlog does not delay live data. A fixed share are the
        oldest, so that live data cannot starve the backlog.
        """
        oldest = self.order_by("pk")[: limit // _OLDEST_PART]
        newest = self.order_by("-pk")[: limit - limit // _OLDEST_PART]
        rows = {row.pk: row for row in (*oldest, *newest)}
        return [rows[key] for key in sorted(rows)]

    def claim(self, limit: int) -> list[Any]:
        """Delete and return the rows to process next; a rollback restores them."""
        rows = self.next(limit)
        self.filter(pk__in=[row.pk for row in rows]).delete()
        return rows


class Pending(models.Model):
    """A row that says what is to be done; the stage that did it deletes it."""

    asked_at = models.DateTimeField(db_default=Now())  # by the database: so much SQL inserts them

    objects = PendingQuerySet.as_manager()

    class Meta:
        abstract = True


class _Touched(Pending):
    """An interval in which a roll-up no longer follows from what it is made of."""

    start = models.DateTimeField()
    end = models.DateTimeField()

    class Meta:
        abstract = True


class TouchedRpcs(_Touched):
    """Charged RPCs changed: all of a server, or those of some principals on any."""

    class Level(models.IntegerChoices):
        """The roll-up that is to be made anew."""

        TEN_SECONDS = 0, "by 10 s"
        MINUTE = 1, "by the minute"
        TEN_MINUTES = 2, "by ten minutes"

    level = models.SmallIntegerField(choices=Level)
    server_id = models.IntegerField(null=True)
    job_ids = ArrayField(models.BigIntegerField(), default=list)
    nid_ids = ArrayField(models.IntegerField(), default=list)
    source_job_ids = ArrayField(models.IntegerField(), default=list)

    def __str__(self) -> str:
        return f"{self.start} to {self.end} {self.get_level_display()}"


class TouchedImpact(_Touched):
    """RPCs by 10 s changed on a server, or on any: so may who made others wait."""

    server_id = models.IntegerField(null=True)

    def __str__(self) -> str:
        return f"{self.start} to {self.end}"


class TouchedIo(_Touched):
    """I/O windows changed: those of a target that begin in an interval, or those of some ids."""

    filesystem_id = models.IntegerField(null=True)
    target_id = models.IntegerField(null=True)
    source_job_ids = ArrayField(models.IntegerField(), default=list)  # without a target: all times

    def __str__(self) -> str:
        return f"{self.start} to {self.end}"


class Dropped(models.Model):
    """An interval of which retention has dropped the rows of a table."""

    table = models.CharField(max_length=63)
    start = models.DateTimeField()
    end = models.DateTimeField()

    class Meta:
        indexes = [models.Index(name="dropped_table", fields=["table", "start"])]

    def __str__(self) -> str:
        return f"{self.table} {self.start} to {self.end}"


_DEFAULT_REMEDY = (
    "The stage retries automatically. If it continues to fail, find the traceback in the worker's "
    "log and report it."
)
_REMEDIES = {  # by SQLSTATE
    "53100": "Free space on the database's disk.",
    "53200": "Give the database server more memory, or lower its work_mem.",
    "53300": "Raise max_connections of the database, or run fewer workers and threads.",
    "42501": "Make the role of DATABASE_URL the owner of all tables of the database.",
    "42703": "Run “manage.py migrate” and restart the workers.",
    "42P01": "Run “manage.py migrate” and restart the workers.",
    "57014": "Raise statement_timeout for the role of DATABASE_URL.",
}


class StageFailureManager(models.Manager["StageFailure"]):
    """Writes failures."""

    def record(self, stage: str, error: Exception) -> None:
        """Store the failure of a stage's run; runs that failed before it stay counted."""
        cause: BaseException | None = error
        while cause and not (sqlstate := getattr(cause, "sqlstate", None)):
            cause = cause.__cause__
        newest = {
            "failed_at": timezone.now(),
            "error": f"{type(error).__name__}: {str(error).strip()}"[:_ERROR_CHARACTERS],
            "sqlstate": sqlstate or "",
        }
        failure, is_first = self.get_or_create(stage=stage, defaults=newest)
        if not is_first:
            self.filter(pk=failure.pk).update(runs=models.F("runs") + 1, **newest)


class StageFailure(models.Model):
    """A stage whose latest runs failed; removed when a run succeeds."""

    stage = models.CharField(max_length=63, unique=True)
    since = models.DateTimeField(auto_now_add=True)
    failed_at = models.DateTimeField()  # the latest failure
    runs = models.IntegerField(default=1)  # consecutive failures
    error = models.TextField()
    sqlstate = models.CharField(max_length=5, blank=True)  # "": not an error of the database

    objects = StageFailureManager()

    def __str__(self) -> str:
        return f"{self.stage}: {self.error}"

    @property
    def remedy(self) -> str:
        """What an administrator can do about it."""
        return _REMEDIES.get(self.sqlstate, _DEFAULT_REMEDY)


class BaselinePeriod(models.Model):
    """Up to when, and from how much, it was reckoned how long RPCs take where a server is calm.

    Gone where late data changed what it was reckoned from.
    """

    server_id = models.IntegerField()
    start = models.DateTimeField()
    end = models.DateTimeField()
    seen_from = models.DateTimeField()  # since when in it the server was traced
    reckoned_at = models.DateTimeField(null=True)  # null: under way

    class Meta:
        constraints = [
            models.UniqueConstraint(name="baselineperiod", fields=["server_id", "end"]),
        ]

    def __str__(self) -> str:
        return f"{self.start} to {self.end}"
