"""One row of figures per job, and the pending rows that ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection, models

from collectors.tables import METADATA_OPERATIONS
from ioportal.analysis.metrics import METRICS
from ioportal.jobs.models.job import Job
from ioportal.telemetry.models import Pending, PendingQuerySet

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

_INDEX_NAME_CHARACTERS = 30  # Django's limit
_SORTED = (
    *(metric.name for metric in METRICS if metric.name != "node_count"),  # sorted by the job's
    *(f"count_{kind}" for kind in METADATA_OPERATIONS if kind not in {"open", "close"}),
)


class JobStatistics(models.Model):
    """A job's metrics as docs/metrics.md defines them; null: not known."""

    class Quality(models.TextChoices):
        """How far the figures can be trusted."""

        GOOD = "good", "good"
        PARTIAL = "partial", "partial"
        POOR = "poor", "poor"

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="statistics")
    computed_at = models.DateTimeField()

    duration_s = models.FloatField(null=True)
    node_count = models.IntegerField(default=0)
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
    peak_metadata_rate = models.FloatField(null=True)
    peak_resolution_s = models.FloatField(null=True)  # the longest interval of that peak
    startup_share = models.FloatField(null=True)
    largest_target_share = models.FloatField(null=True)
    metadata_rpcs = models.BigIntegerField(null=True)
    lock_enqueues = models.BigIntegerField(null=True)
    counted_enqueues = models.BigIntegerField(null=True)  # those before the counters' newest read
    metadata_rpc_rate = models.FloatField(null=True)
    mean_service_us = models.FloatField(null=True)
    max_service_us = models.BigIntegerField(null=True)
    mean_queue_us = models.FloatField(null=True)

    quality = models.CharField(max_length=8, choices=Quality)
    quality_reasons = models.JSONField(default=list)  # sentences; empty where quality is good
    # Of bytes and sizes, by the OSTs; null: these are unknown, and the reasons say why.
    bytes_quality = models.CharField(max_length=8, choices=Quality, null=True)  # noqa: DJ001
    bytes_reasons = models.JSONField(default=list)
    covered_share = models.FloatField(default=0)  # of the run, by reads of all its MDTs
    ambiguous_share = models.FloatField(default=0)
    resets = models.IntegerField(default=0)

    class Meta:
        indexes = [
            # The job list by any figure, in both directions, known ones only.
            models.Index(
                fields=[column, "job"],
                condition=models.Q(**{f"{column}__isnull": False}),
                name=f"statistics_{column}"[-_INDEX_NAME_CHARACTERS:],
            )
            for column in _SORTED
        ]
        # Whether any figure changed since something was cached.
        indexes += [models.Index(fields=["computed_at"], name="statistics_computed_at")]

    def __str__(self) -> str:
        return f"statistics of {self.job_id}"


# Operations by kind, as in the seeds' tables: `count_open`, `count_mkdir`, ...
for _kind in METADATA_OPERATIONS:
    JobStatistics.add_to_class(f"count_{_kind}", models.BigIntegerField(null=True))


_ASK_FOR = """
WITH waiting AS MATERIALIZED (
    SELECT job_id FROM jobs_dirtystatistics WHERE job_id = ANY(%(jobs)s)
    FOR KEY SHARE SKIP LOCKED
)
INSERT INTO jobs_dirtystatistics (job_id)
SELECT id FROM unnest(%(jobs)s::bigint[]) AS wanted (id)
WHERE id NOT IN (SELECT job_id FROM waiting)
"""


class DirtyStatisticsQuerySet(PendingQuerySet):
    """Asks for statistics."""

    def mark(self, job_ids: Iterable[int]) -> None:
        """Ask for those of these jobs anew: in one statement, for a read may touch 100,000.

        A job that waits already is not asked for twice. Its pending row is held until this commits,
        so that whoever claims it then sees what changed; one that is being claimed does not count.
        """
        with connection.cursor() as cursor:
            cursor.execute(_ASK_FOR, {"jobs": sorted(job_ids)})


class DirtyStatistics(Pending):
    """A job whose windows or record changed since its statistics were computed."""

    job_id = models.BigIntegerField()  # no key: the job may be gone when it is claimed

    objects = DirtyStatisticsQuerySet.as_manager()  # type: ignore[misc]  # (the abstract one has another)

    def __str__(self) -> str:
        return f"job {self.job_id}"


_ASK_FOR_EVIDENCE = """
INSERT INTO jobs_dirtyevidence (job_id, since)
SELECT id, %(since)s FROM unnest(%(jobs)s::bigint[]) AS wanted (id)
"""


class DirtyEvidenceQuerySet(PendingQuerySet):
    """Asks for evidence."""

    def mark(self, job_ids: Iterable[int], since: datetime | None = None) -> None:
        """Ask for that of these jobs anew; `since`: windows that begin then or later changed."""
        with connection.cursor() as cursor:
            cursor.execute(_ASK_FOR_EVIDENCE, {"jobs": sorted(job_ids), "since": since})


class DirtyEvidence(Pending):
    """A job whose windows or statistics changed since it was judged."""

    job_id = models.BigIntegerField()  # no key: the job may be gone when it is claimed
    since = models.DateTimeField(null=True)  # null: its windows are as they were

    objects = DirtyEvidenceQuerySet.as_manager()  # type: ignore[misc]  # (the abstract one has another)

    def __str__(self) -> str:
        return f"job {self.job_id}"
