"""Coverage of sources, dropped intervals, and periods of baselines."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.indexes import GistIndex
from django.db import models


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


class BaselinePeriod(models.Model):
    """A period whose baseline of service times was computed; deleted if late data changes it."""

    server_id = models.IntegerField()
    start = models.DateTimeField()
    end = models.DateTimeField()
    traced_from = models.DateTimeField()  # first trace of the server in the period
    computed_at = models.DateTimeField(null=True)  # null: in progress

    class Meta:
        constraints = [
            models.UniqueConstraint(name="baselineperiod", fields=["server_id", "end"]),
        ]

    def __str__(self) -> str:
        return f"{self.start} to {self.end}"
