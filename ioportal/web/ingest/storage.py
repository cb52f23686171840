"""What data take on disk, how long they are kept, and how much that will be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from django.conf import settings

from ioportal.analysis.storage import Growth
from ioportal.ingest.models import LateRows
from ioportal.telemetry import retention, storage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.telemetry.storage import Stored

_DAY = timedelta(days=1)
_MONTH_DAYS, _YEAR_DAYS = 30, 365
_TOO_LATE_SHOWN = 50
HEADER = [
    "table",
    "about",
    "kept_days",
    "bytes",
    "index_bytes",
    "rows",
    "chunks",
    "compressed_chunks",
    "bytes_per_day",
    "rows_per_day",
    "bytes_in_30_days",
    "bytes_in_a_year",
    "bytes_when_full",
]


@dataclass(frozen=True)
class Row:
    """One level and what becomes of it."""

    stored: Stored

    @property
    def table(self) -> str:
        """Its table, without the app's name."""
        return self.stored.level.table.removeprefix("telemetry_")

    @property
    def kept_days(self) -> float | None:
        """How long its rows stay; None: forever."""
        kept = self.stored.level.retention
        return None if kept is None else kept / _DAY

    @property
    def growth(self) -> Growth:
        """What becomes of it."""
        stored = self.stored
        return Growth(stored.total_bytes, stored.bytes_per_day, self.kept_days, stored.chunk_days)

    @property
    def in_a_month(self) -> float | None:
        """Its size then."""
        return self.growth.after(_MONTH_DAYS)

    @property
    def in_a_year(self) -> float | None:
        """Its size then."""
        return self.growth.after(_YEAR_DAYS)


class Storage:
    """All levels together."""

    @cached_property
    def rows(self) -> list[Row]:
        """One for each level."""
        return [Row(stored) for stored in storage.stored()]

    @cached_property
    def total_bytes(self) -> int:
        """What the database takes."""
        return storage.database_bytes()

    @cached_property
    def free_bytes(self) -> int | None:
        """Free space on the database's disk; None: not visible from this host."""
        return storage.free_bytes()

    @property
    def other_bytes(self) -> int:
        """Jobs, segments and all else: not dropped."""
        return max(0, self.total_bytes - sum(row.stored.total_bytes for row in self.rows))

    @property
    def per_day(self) -> float:
        """What a day of records takes before anything is dropped."""
        return sum(row.stored.bytes_per_day or 0 for row in self.rows)

    @property
    def in_a_month(self) -> float:
        """The size of the database then, as far as levels are known to grow."""
        return self._after(_MONTH_DAYS)

    @property
    def in_a_year(self) -> float:
        """The size of the database then, as far as levels are known to grow."""
        return self._after(_YEAR_DAYS)

    def _after(self, days: float) -> float:
        grown = (row.growth.after(days) for row in self.rows)
        now = (row.growth.now for row in self.rows)
        return self.other_bytes + sum(
            size if later is None else later for later, size in zip(grown, now, strict=True)
        )

    @cached_property
    def licence(self) -> str:
        """What TimescaleDB may do here."""
        return retention.licence()

    @property
    def version(self) -> str:
        """That of TimescaleDB."""
        return storage.version()

    @property
    def compressed_after_days(self) -> float:
        """When chunks are compressed where the licence allows it."""
        return settings.COMPRESSED_AFTER / _DAY

    @cached_property
    def too_late(self) -> list[LateRows]:
        """The newest of what could not be charged."""
        rows = LateRows.objects.select_related("server", "target", "job__cluster", "segment")
        return list(rows.order_by("-noticed_at")[:_TOO_LATE_SHOWN])

    def twin(self) -> Iterator[tuple[object, ...]]:
        """Yield the rows of the table, exactly."""
        for row in self.rows:
            stored, growth = row.stored, row.growth
            yield (
                stored.level.table,
                stored.level.about,
                row.kept_days,
                stored.total_bytes,
                stored.index_bytes,
                stored.rows,
                len(stored.chunks),
                stored.compressed,
                stored.bytes_per_day,
                stored.rows_per_day,
                row.in_a_month,
                row.in_a_year,
                growth.full,
            )
