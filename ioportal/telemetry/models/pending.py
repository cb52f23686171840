"""Coverage of sources, pending work of the stages, and their failed runs."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GistIndex
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

_ERROR_CHARACTERS = 4_000


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
    """Records failures."""

    def record(self, stage: str, error: Exception) -> None:
        """Store a failed run of a stage; consecutive failures are counted."""
        cause: BaseException | None = error
        while cause and not (sqlstate := getattr(cause, "sqlstate", None)):
            cause = cause.__cause__
        latest = {
            "failed_at": timezone.now(),
            "error": f"{type(error).__name__}: {str(error).strip()}"[:_ERROR_CHARACTERS],
            "sqlstate": sqlstate or "",
        }
        failure, is_first = self.get_or_create(stage=stage, defaults=latest)
        if not is_first:
            self.filter(pk=failure.pk).update(runs=models.F("runs") + 1, **latest)


class StageFailure(models.Model):
    """A stage whose latest runs failed; removed when a run succeeds."""

    stage = models.CharField(max_length=63, unique=True)
    since = models.DateTimeField(auto_now_add=True)
    failed_at = models.DateTimeField()  # the latest failure
    runs = models.IntegerField(default=1)  # consecutive failures
    error = models.TextField()
    sqlstate = models.CharField(max_length=5, blank=True)  # "": no database error

    objects = StageFailureManager()

    def __str__(self) -> str:
        return f"{self.stage}: {self.error}"

    @property
    def remedy(self) -> str:
        """Advice for an administrator."""
        return _REMEDIES.get(self.sqlstate, _DEFAULT_REMEDY)


class StageRunManager(models.Manager["StageRun"]):
    """Notes runs."""

    def note(self, stage: str) -> None:
        """Store that a run of a stage has just succeeded."""
        self.bulk_create(
            [StageRun(stage=stage, finished_at=timezone.now())],
            update_conflicts=True,
            unique_fields=["stage"],
            update_fields=["finished_at"],
        )


class StageRun(models.Model):
    """The latest successful run of a stage or of another periodic task."""

    stage = models.CharField(max_length=63, unique=True)
    finished_at = models.DateTimeField()

    objects = StageRunManager()

    def __str__(self) -> str:
        return f"{self.stage}: {self.finished_at}"


class Coverage(models.Model):
    """An observed interval of a source; outside them data is missing."""

    class Source(models.TextChoices):
        """The kind of observation."""

        RPC_TRACE = "rpctrace", "RPC trace of a server"
        JOB_STATS = "job_stats", "job_stats of a target"
        MD_STATS = "md_stats", "md_stats of a target"
        EXPORTS = "exports", "export statistics of a target"
        MDS_STATS = "mds_stats", "statistics of a server's services"
        REQ_HISTORY = "req_history", "request history of a server"

    id: ClassVar[int]
    source = models.CharField(max_length=16, choices=Source)
    source_id = models.IntegerField()  # a server or a target
    start = models.DateTimeField()
    # For a read of counters, end == start. Intervals from agents are longer.
    end = models.DateTimeField()
    segment_id = models.BigIntegerField()

    class Meta:
        indexes = [
            models.Index(name="coverage_source", fields=["source", "source_id", "start"]),
            # Coverage of a range, independent of the length of the history.
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


class RetentionLog(models.Model):
    """An interval in which retention dropped the rows of a table."""

    table = models.CharField(max_length=63)
    start = models.DateTimeField()
    end = models.DateTimeField()

    class Meta:
        indexes = [models.Index(name="retentionlog_table", fields=["table", "start"])]

    def __str__(self) -> str:
        return f"{self.table} {self.start} to {self.end}"


class TableSize(models.Model):
    """The size of a table without chunks at the beginning of a day, for forecasts."""

    table = models.CharField(max_length=63)
    day = models.DateField()  # in UTC
    bytes = models.BigIntegerField()  # with indexes

    class Meta:
        constraints = [models.UniqueConstraint(name="tablesize", fields=["table", "day"])]

    def __str__(self) -> str:
        return f"{self.table} {self.day}"


class BaselinePeriod(models.Model):
    """A period whose baseline of service times was computed; deleted if late data changes it."""

    server_id = models.IntegerField()
    start = models.DateTimeField()
    end = models.DateTimeField()
    traced = models.DurationField()  # how much of it the server was traced
    computed_at = models.DateTimeField(null=True)  # null: in progress

    class Meta:
        constraints = [
            models.UniqueConstraint(name="baselineperiod", fields=["server_id", "end"]),
        ]

    def __str__(self) -> str:
        return f"{self.start} to {self.end}"


_OLDEST_PART = 4  # one in so many claimed rows is among the oldest


class PendingQuerySet(models.QuerySet[Any]):
    """Pending work of a stage."""

    def next(self, limit: int) -> list[Any]:
        """Return up to `limit` rows to process next, in the order of their insertion.

        Most of them concern the latest data, so that loading old data does not delay live data. A
        fixed share were inserted first, so that live data cannot starve the others.
        """
        of_oldest = limit // _OLDEST_PART
        order = (*self.model.derived_later, f"-{self.model.ends}", "-pk")
        newest = list(self.order_by(*order)[: limit - of_oldest])
        has_more = len(newest) == limit - of_oldest
        oldest = self.order_by("pk")[:of_oldest] if has_more else ()
        rows = {row.pk: row for row in (*oldest, *newest)}
        return [rows[key] for key in sorted(rows)]

    def claim(self, limit: int) -> list[Any]:
        """Delete and return the rows to process next; a rollback restores them."""
        rows = self.next(limit)
        if rows:
            self.filter(pk__in=[row.pk for row in rows]).delete()
        return rows


class Pending(models.Model):
    """A row of pending work; the stage that claims it deletes it."""

    ends: ClassVar = "end"  # name of the field with the end of its data
    # Name of the field that is true where rows are only derived again, if there is one.
    derived_later: ClassVar[tuple[str, ...]] = ()

    created_at = models.DateTimeField(
        db_default=Now()
    )  # by the database, because SQL statements insert rows

    objects = PendingQuerySet.as_manager()

    class Meta:
        abstract = True


class _Dirty(Pending):
    """An interval in which a roll-up is outdated."""

    start = models.DateTimeField()
    end = models.DateTimeField()

    class Meta:
        abstract = True
        indexes = (models.Index(fields=["-end", "-id"], name="%(class)s_latest"),)


class DirtyRpcs(_Dirty):
    """Attributed RPCs changed: of a server, or of some principals on any server."""

    class Level(models.IntegerChoices):
        """The roll-up to compute again."""

        TEN_SECONDS = 0, "by 10 s"
        MINUTE = 1, "by minute"
        TEN_MINUTES = 2, "by ten minutes"

    level = models.SmallIntegerField(choices=Level)
    server_id = models.IntegerField(null=True)
    job_ids = ArrayField(models.BigIntegerField(), default=list)
    nid_ids = ArrayField(models.IntegerField(), default=list)
    source_job_ids = ArrayField(models.IntegerField(), default=list)

    def __str__(self) -> str:
        return f"{self.start} to {self.end} {self.get_level_display()}"


class DirtyImpact(_Dirty):
    """RPCs by 10 s or counters changed on a server, or on any: impact may change."""

    server_id = models.IntegerField(null=True)

    def __str__(self) -> str:
        return f"{self.start} to {self.end}"


class DirtyIo(_Dirty):
    """I/O windows changed: of a target in an interval, or of some source job ids."""

    filesystem_id = models.IntegerField(null=True)
    target_id = models.IntegerField(null=True)
    source_job_ids = ArrayField(models.IntegerField(), default=list)  # without a target: all times

    def __str__(self) -> str:
        return f"{self.start} to {self.end}"
