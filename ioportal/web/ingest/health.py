"""The health page: sources, stages, database, and evidence for job ids (`job_id_evidence`)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ioportal.ingest import backpressure, health
from ioportal.ingest.data_quality.job_id_evidence import JobIdEvidence, job_id_evidence
from ioportal.telemetry import retention, storage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from ioportal.ingest.health import Backlog, SourceHealth
    from ioportal.ingest.models import OwnerConflict
    from ioportal.telemetry.free_space import Overload
    from ioportal.telemetry.models import StageFailure

_CONFLICTS = 20  # shown

HEADER = [
    "source",
    "format",
    "of",
    "troubles",
    "poll_interval_s",
    "last_batch",
    "latest_change",
    "lag_s",
    "gaps",
    "gap_s",
    "rejected_lines",
    "refusals",
    "spool_batches",
    "spool_bytes",
    "clock_offset_s",
    "agent_version",
    "agent_host",
]


class Health:
    """The health of the portal's data at one time."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    @cached_property
    def sources(self) -> list[SourceHealth]:
        """Sources, those with problems first."""
        return sorted(health.sources(self.now), key=lambda source: not source.problems)

    @cached_property
    def waiting(self) -> list[Backlog]:
        """Pending work by stage."""
        return health.backlogs(self.now)

    @cached_property
    def behind(self) -> Overload | None:
        """The reason for backpressure; None without it."""
        return backpressure.overload()

    @property
    def in_trouble(self) -> int:
        """The number of sources with problems."""
        return sum(bool(source.problems) for source in self.sources)

    @property
    def pending(self) -> list[Backlog]:
        """Pending work, late or not."""
        return [waiting for waiting in self.waiting if waiting.rows]

    @property
    def late(self) -> list[Backlog]:
        """Pending work older than normal."""
        return [waiting for waiting in self.waiting if waiting.is_late]

    @cached_property
    def failing(self) -> list[StageFailure]:
        """Stages whose latest run failed."""
        return health.failing_stages()

    @cached_property
    def owner_conflict_count(self) -> int:
        """The number of unresolved conflicts with stored jobs."""
        return health.owner_conflicts().count()

    @cached_property
    def owner_conflicts(self) -> list[OwnerConflict]:
        """The latest conflicts with stored jobs."""
        return list(health.owner_conflicts()[:_CONFLICTS]) if self.owner_conflict_count else []

    @property
    def is_well(self) -> bool:
        """Whether nothing needs attention."""
        return not (
            self.in_trouble or self.late or self.failing or self.behind or self.owner_conflict_count
        )

    @cached_property
    def job_ids(self) -> list[JobIdEvidence]:
        """The evidence for the job ids in recent data."""
        return job_id_evidence(self.now)

    @cached_property
    def licence(self) -> str:
        """The licence of TimescaleDB."""
        return retention.licence()

    @cached_property
    def version(self) -> str:
        """The version of TimescaleDB."""
        return storage.version()

    @cached_property
    def database_bytes(self) -> int:
        """The size of the database."""
        return storage.database_bytes()

    @cached_property
    def database_free_bytes(self) -> int | None:
        """Free space on the database disk; None if not visible from this host."""
        return storage.free_bytes()

    def about(self) -> dict[str, Any]:
        """Return members of the JSON export other than sources."""
        return {
            "at": self.now,
            "is_well": self.is_well,
            "waiting": [
                {
                    "stage": waiting.stage,
                    "kind": waiting.kind,
                    "rows": waiting.rows,
                    "oldest": waiting.oldest,
                    "is_late": waiting.is_late,
                }
                for waiting in self.waiting
            ],
            "failing_stages": [
                {
                    "stage": failure.stage,
                    "since": failure.since,
                    "failed_at": failure.failed_at,
                    "runs": failure.runs,
                    "error": failure.error,
                    "remedy": failure.remedy,
                }
                for failure in self.failing
            ],
            "owner_conflicts": [
                {
                    "job": conflict.job.display_id,
                    "cluster": conflict.job.cluster.name,
                    "owner": conflict.job.owner,
                    "reported_owner": conflict.reported_owner,
                    "differences": conflict.differences,
                    "input": conflict.segment.name,
                    "line": conflict.line,
                }
                for conflict in self.owner_conflicts
            ],
            "owner_conflict_count": self.owner_conflict_count,
            "backpressure": self.behind and str(self.behind),
            "database_bytes": self.database_bytes,
            "database_free_bytes": self.database_free_bytes,
            "timescaledb": self.version,
            "licence": self.licence,
        }

    def export_rows(self) -> Iterator[tuple[object, ...]]:
        """Yield the rows of the export, one per source."""
        for row in self.sources:
            source = row.source
            yield (
                source.name,
                source.format,
                source.scope.name,
                "; ".join(row.problems),
                source.poll_interval_s,
                source.last_batch_at,
                row.latest_record_at,
                row.lag_s,
                None if row.gaps is None else len(row.gaps),
                row.gap_s,
                row.rejected,
                row.refusals,
                source.spool_batches,
                source.spool_bytes,
                source.clock_offset_s,
                source.agent_version,
                source.agent_host,
            )
