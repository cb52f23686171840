"""Statistics of jobs, and pending work of their stages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection, models
from django.db.models.functions import Now

from collectors.tables import METADATA_OPERATIONS
from ioportal.jobs.models.job import Job
from ioportal.metrics import METRICS
from ioportal.telemetry.models import Pending, PendingQuerySet

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

_INDEX_NAME_CHARACTERS = 30  # Django's limit
_SORTED = (
    *(
        metric.name for metric in METRICS if metric.name != "node_count"
    ),  # the job list sorts by `Job.node_count`
    *(f"count_{kind}" for kind in METADATA_OPERATIONS if kind not in {"open", "close"}),
)


class JobStatistics(models.Model):
    """A job's metrics (docs/metrics.md); null: unknown."""

    class Quality(models.TextChoices):
        """Grades of data quality."""

        GOOD = "good", "good"
        PARTIAL = "partial", "partial"
        POOR = "poor", "poor"

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="statistics")
    computed_at = models.DateTimeField()

    duration_s = models.FloatField(null=True)
    node_count = models.IntegerField(null=True)
    cpu_efficiency = models.FloatField(null=True)
    read_bytes = models.BigIntegerField(null=True)
    write_bytes = models.BigIntegerField(null=True)
    read_bytes_per_node = models.FloatField(null=True)
    write_bytes_per_node = models.FloatField(null=True)
    mean_read_bytes = models.FloatField(null=True)
    mean_write_bytes = models.FloatField(null=True)
    metadata_operations = models.BigIntegerField(null=True)
    opens = models.BigIntegerField(null=True)
    closes = models.BigIntegerField(null=True)
    open_close_ratio = models.FloatField(null=True)
    metadata_operations_per_node = models.FloatField(null=True)
    metadata_rate = models.FloatField(null=True)
    mean_operation_us = models.FloatField(null=True)
    peak_metadata_rate = models.FloatField(null=True)
    peak_resolution_s = models.FloatField(null=True)  # the longest interval in the peak
    peak_is_capped = models.BooleanField(default=False)  # by the RPCs of a trace
    startup_share = models.FloatField(null=True)
    largest_target_share = models.FloatField(null=True)
    metadata_rpcs = models.BigIntegerField(null=True)
    lock_enqueues = models.BigIntegerField(null=True)
    counted_enqueues = models.BigIntegerField(null=True)  # before the latest read of the counters
    metadata_rpc_rate = models.FloatField(null=True)
    mean_service_us = models.FloatField(null=True)
    max_service_us = models.BigIntegerField(null=True)
    mean_queue_us = models.FloatField(null=True)

    quality = models.CharField(max_length=8, choices=Quality)
    quality_reasons = models.JSONField(default=list)  # sentences; empty if quality is good
    # Quality of bytes and request sizes. Null: unknown, for these reasons.
    bytes_quality = models.CharField(max_length=8, choices=Quality, null=True)  # noqa: DJ001
    bytes_reasons = models.JSONField(default=list)
    covered_share = models.FloatField(default=0)  # of the run, by reads of the MDTs
    ambiguous_share = models.FloatField(default=0)
    contradicted_share = models.FloatField(default=0)
    resets = models.IntegerField(default=0)

    class Meta:
        indexes = [
            # Job list by any metric, in both orders.
            models.Index(
                fields=[column, "job"],
                condition=models.Q(**{f"{column}__isnull": False}),
                name=f"statistics_{column}"[-_INDEX_NAME_CHARACTERS:],
            )
            for column in _SORTED
        ]
        # Cache validation: changes since a time.
        indexes += [models.Index(fields=["computed_at"], name="statistics_computed_at")]

    def __str__(self) -> str:
        return f"statistics of job {self.job_id}"


# Operations by kind and their mean times: `count_open`, `mean_open_us`, ...
for _kind in METADATA_OPERATIONS:
    JobStatistics.add_to_class(f"count_{_kind}", models.BigIntegerField(null=True))
    JobStatistics.add_to_class(f"mean_{_kind}_us", models.FloatField(null=True))


# A job with a pending row gets no second one, except for earlier windows. That row is locked until
# commit, so that the stage that claims it sees the change. Rows that are being claimed are locked
# already and do not count. (PostgreSQL hashes only an array of the column's type: 20 times as fast
# for 50,000 jobs.)
_MARK = """
WITH pending AS MATERIALIZED (
    SELECT job_id FROM {table} WHERE job_id = ANY(%(jobs)s::bigint[]) {covers}
    FOR KEY SHARE SKIP LOCKED
)
INSERT INTO {table} (job_id, until {since})
SELECT id, coalesce(job.ended_at, now()) {value}
FROM unnest(%(jobs)s::bigint[]) AS dirty (id) LEFT JOIN jobs_job job USING (id)
WHERE id NOT IN (SELECT job_id FROM pending)
"""
_MARK_STATISTICS = _MARK.format(table="jobs_dirtystatistics", covers="", since="", value="")
_MARK_EVIDENCE = _MARK.format(
    table="jobs_dirtyevidence",
    covers="AND (%(since)s::timestamptz IS NULL OR since <= %(since)s)",
    since=", since",
    value=", %(since)s",
)


class DirtyStatisticsQuerySet(PendingQuerySet):
    """Pending work of the statistics stage."""

    def mark(self, job_ids: Iterable[int]) -> None:
        """Request new statistics of jobs, in one statement: a read may concern 100,000 jobs."""
        jobs = sorted(job_ids)
        if jobs:
            with connection.cursor() as cursor:
                cursor.execute(_MARK_STATISTICS, {"jobs": jobs})


class _DirtyJob(Pending):
    """A job whose figures are outdated."""

    ends = "until"

    job_id = models.BigIntegerField()  # no foreign key: the job may be deleted before the claim
    until = models.DateTimeField(db_default=Now())  # end of the job; of a running one, now

    class Meta:
        abstract = True
        indexes = (models.Index(fields=["-until", "-id"], name="%(class)s_latest"),)

    def __str__(self) -> str:
        return f"job {self.job_id}"


class DirtyStatistics(_DirtyJob):
    """A job whose statistics are outdated: its windows or record changed."""

    objects = DirtyStatisticsQuerySet.as_manager()  # type: ignore[misc]  # (overrides the abstract manager)


class DirtyEvidenceQuerySet(PendingQuerySet):
    """Pending work of evaluation."""

    def mark(self, job_ids: Iterable[int], since: datetime | None = None) -> None:
        """Request a new evaluation of jobs; `since`: start of the first changed window."""
        with connection.cursor() as cursor:
            cursor.execute(_MARK_EVIDENCE, {"jobs": sorted(job_ids), "since": since})


class DirtyEvidence(_DirtyJob):
    """A job whose evaluation is outdated: its windows or statistics changed."""

    since = models.DateTimeField(null=True)  # null: no window changed

    objects = DirtyEvidenceQuerySet.as_manager()  # type: ignore[misc]  # (overrides the abstract manager)
