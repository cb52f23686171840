"""Whether data come, and whether the stages keep up: the health page's rows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ioportal.ingest import backpressure, health
from ioportal.telemetry import retention, storage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from ioportal.ingest.backpressure import Overload
    from ioportal.ingest.health import Backlog, SourceHealth
    from ioportal.telemetry.models import StageFailure

HEADER = [
    "source",
    "format",
    "of",
    "troubles",
    "poll_interval_s",
    "last_batch",
    "newest_record",
    "lag_s",
    "gaps",
    "gap_s",
    "rejected_lines",
    "spool_batches",
    "spool_bytes",
    "clock_offset_s",
    "agent_version",
    "agent_host",
]


class Health:
    """All that may be wrong with the site's data, at one moment."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    @cached_property
    def sources(self) -> list[SourceHealth]:
        """Those in trouble first."""
        return sorted(health.sources(self.now), key=lambda source: not source.problems)

    @cached_property
    def waiting(self) -> list[Backlog]:
        """What waits for each stage."""
        return health.backlogs(self.now)

    @cached_property
    def behind(self) -> Overload | None:
        """Why agents are told to wait; None: they are not."""
        return backpressure.overload()

    @property
    def in_trouble(self) -> int:
        """How many sources are."""
        return sum(bool(source.problems) for source in self.sources)

    @property
    def late(self) -> list[Backlog]:
        """What waits for longer than a working stage lets it."""
        return [waiting for waiting in self.waiting if waiting.is_late]

    @cached_property
    def failing(self) -> list[StageFailure]:
        """Stages whose latest run failed."""
        return health.failing_stages()

    @property
    def is_well(self) -> bool:
        """Whether nothing needs anybody."""
        return not (self.in_trouble or self.late or self.failing or self.behind)

    @cached_property
    def licence(self) -> str:
        """What TimescaleDB may do here."""
        return retention.licence()

    @cached_property
    def version(self) -> str:
        """That of TimescaleDB."""
        return storage.version()

    @cached_property
    def database_bytes(self) -> int:
        """What all of the database takes."""
        return storage.database_bytes()

    @cached_property
    def database_free_bytes(self) -> int | None:
        """Free space on the database's disk; None: not visible from this host."""
        return storage.free_bytes()

    def about(self) -> dict[str, Any]:
        """Return what is not of one source."""
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
            "agents_are_told_to_wait": self.behind and self.behind.reason,
            "database_bytes": self.database_bytes,
            "database_free_bytes": self.database_free_bytes,
            "timescaledb": self.version,
            "licence": self.licence,
        }

    def twin(self) -> Iterator[tuple[object, ...]]:
        """Yield the sources' rows, exactly."""
        for found in self.sources:
            source = found.source
            yield (
                source.name,
                source.format,
                source.scope.name,
                "; ".join(found.problems),
                source.poll_interval_s,
                source.last_batch_at,
                found.latest_record_at,
                found.lag_s,
                None if found.gaps is None else len(found.gaps),
                found.gap_s,
                found.rejected,
                source.spool_batches,
                source.spool_bytes,
                source.clock_offset_s,
                source.agent_version,
                source.agent_host,
            )
