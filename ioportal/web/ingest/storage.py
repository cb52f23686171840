"""The storage page: size, retention and forecast by level."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from django.conf import settings

from ioportal.ingest.models import LateRows
from ioportal.ingest.storage import Growth
from ioportal.telemetry import retention, storage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.telemetry.storage import Stored

_DAY = timedelta(days=1)
_MONTH_DAYS, _YEAR_DAYS = 30, 365
_LISTED_LATE_ROWS = 50
HEADER = [
    "table",
    "about",
    "retention_days",
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
    """The storage of one level, and its forecast."""

    stored: Stored

    @property
    def table(self) -> str:
        """Table name without the app."""
        return self.stored.level.table.removeprefix("telemetry_")

    @property
    def retention_days(self) -> float | None:
        """Retention of its rows; None for unlimited."""
        age = self.stored.level.retention
        return None if age is None else age / _DAY

    @property
    def growth(self) -> Growth:
        """The forecast."""
        stored = self.stored
        return Growth(
            stored.total_bytes, stored.bytes_per_day, self.retention_days, stored.chunk_days
        )

    @property
    def in_a_month(self) -> float | None:
        """Size after 30 days."""
        return self.growth.after(_MONTH_DAYS)

    @property
    def in_a_year(self) -> float | None:
        """Size after a year."""
        return self.growth.after(_YEAR_DAYS)


class Storage:
    """All levels, and the database."""

    @cached_property
    def rows(self) -> list[Row]:
        """Levels."""
        return [Row(stored) for stored in storage.stored()]

    @cached_property
    def total_bytes(self) -> int:
        """The size of the database."""
        return storage.database_bytes()

    @cached_property
    def free_bytes(self) -> int | None:
        """Free space on the database disk; None if not visible from this host."""
        return storage.free_bytes()

    @property
    def other_bytes(self) -> int:
        """The size of tables without retention."""
        return max(0, self.total_bytes - sum(row.stored.total_bytes for row in self.rows))

    @property
    def per_day(self) -> float:
        """Growth per day before retention."""
        return sum(row.stored.bytes_per_day or 0 for row in self.rows)

    @property
    def in_a_month(self) -> float:
        """Size of the database after 30 days, with the known growth of levels."""
        return self._after(_MONTH_DAYS)

    @property
    def in_a_year(self) -> float:
        """Size of the database after a year, with the known growth of levels."""
        return self._after(_YEAR_DAYS)

    def _after(self, days: float) -> float:
        grown = (row.growth.after(days) for row in self.rows)
        now = (row.growth.now for row in self.rows)
        return self.other_bytes + sum(
            size if later is None else later for later, size in zip(grown, now, strict=True)
        )

    @cached_property
    def licence(self) -> str:
        """The licence of TimescaleDB."""
        return retention.licence()

    @property
    def version(self) -> str:
        """The version of TimescaleDB."""
        return storage.version()

    @property
    def compressed_after_days(self) -> float:
        """The age at which chunks are compressed, if the licence permits."""
        return settings.COMPRESSED_AFTER / _DAY

    @cached_property
    def late_rows(self) -> list[LateRows]:
        """The latest data that arrived after retention."""
        rows = LateRows.objects.select_related("server", "target", "job__cluster", "segment")
        return list(rows.order_by("-noticed_at")[:_LISTED_LATE_ROWS])

    def export_rows(self) -> Iterator[tuple[object, ...]]:
        """Yield the rows of the export, one per level."""
        for row in self.rows:
            stored, growth = row.stored, row.growth
            yield (
                stored.level.table,
                stored.level.about,
                row.retention_days,
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
