"""The storage page: size, retention and forecast by level."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from ioportal.ingest.models import LateRows
from ioportal.telemetry import retention
from ioportal.telemetry import storage as database
from ioportal.web.common import exports
from ioportal.web.common.staff_only import staff_only
from ioportal.web.common.tables import Column, Table
from ioportal.web.ingest.segments import tabs
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.telemetry.storage import Stored
    from ioportal.web.common.requests import UserRequest


_DAY = timedelta(days=1)
_MONTH_DAYS, _YEAR_DAYS = 30, 365
_LISTED_LATE_ROWS = 50
_LISTED_TABLES = 10


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
    def growth(self) -> database.Growth:
        """The forecast."""
        stored = self.stored
        return database.Growth(
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
        return [Row(stored) for stored in database.stored()]

    @cached_property
    def total_bytes(self) -> int:
        """The size of the database."""
        return database.database_bytes()

    @cached_property
    def free_bytes(self) -> int | None:
        """Free space on the database disk; None if not visible from this host."""
        return database.free_bytes()

    @cached_property
    def others(self) -> list[database.OtherTable]:
        """Tables that are no levels."""
        return database.other_tables(datetime.now(UTC).date())

    @property
    def other_bytes(self) -> int:
        """The size of tables that are no levels, and of the catalogue."""
        return max(0, self.total_bytes - sum(row.stored.total_bytes for row in self.rows))

    @property
    def per_day(self) -> float:
        """Growth per day before retention."""
        of_levels = sum(row.stored.bytes_per_day or 0 for row in self.rows)
        return of_levels + self._others_per_day

    @property
    def _others_per_day(self) -> float:
        return sum(table.bytes_per_day or 0 for table in self.others)

    @property
    def in_a_month(self) -> float:
        """Size of the database after 30 days, with the known growth of tables."""
        return self._after(_MONTH_DAYS)

    @property
    def in_a_year(self) -> float:
        """Size of the database after a year, with the known growth of tables."""
        return self._after(_YEAR_DAYS)

    def _after(self, days: float) -> float:
        grown = (row.growth.after(days) for row in self.rows)
        now = (row.growth.now for row in self.rows)
        others = self.other_bytes + days * self._others_per_day
        return others + sum(
            size if later is None else later for later, size in zip(grown, now, strict=True)
        )

    @cached_property
    def licence(self) -> str:
        """The licence of TimescaleDB."""
        return retention.licence()

    @property
    def version(self) -> str:
        """The version of TimescaleDB."""
        return database.version()

    @property
    def compressed_after_days(self) -> float:
        """The age at which chunks are compressed, if the licence permits."""
        return settings.COMPRESSED_AFTER / _DAY

    @cached_property
    def levels(self) -> Table[Row]:
        """Levels."""
        return Table("Sizes of the levels", _LEVELS, self.rows)

    @property
    def other_tables(self) -> Table[database.OtherTable]:
        """The largest tables that are no levels."""
        return Table(
            "Other tables",
            _OTHERS,
            self.others[:_LISTED_TABLES],
            about=f"The {_LISTED_TABLES} largest. Growth is of the last seven days, from the "
            "second day on.",
        )

    @property
    def late_data(self) -> Table[LateRows]:
        """The latest data that arrived after retention."""
        rows = LateRows.objects.select_related("server", "target", "job__cluster", "segment")
        return Table(
            "Late data",
            _LATE_DATA,
            list(rows.order_by("-noticed_at")[:_LISTED_LATE_ROWS]),
            about="Arrived after retention had dropped rows of its time. It is stored, but not "
            "attributed.",
            nothing="No late data.",
        )

    @property
    def about(self) -> dict[str, Any]:
        """Members of the JSON export other than levels."""
        return {
            "bytes": self.total_bytes,
            "other_bytes": self.other_bytes,
            "bytes_in_30_days": self.in_a_month,
            "bytes_in_a_year": self.in_a_year,
            "timescaledb": self.version,
            "licence": self.licence,
        }


def _chunks(row: Row) -> str:
    compressed = f" ({row.stored.compressed:,})" if row.stored.compressed else ""
    return f"{len(row.stored.chunks):,}{compressed}"


def _maximum(row: Row) -> str:
    if row.retention_days is None and row.stored.bytes_per_day:
        return "grows"
    return show.size(row.growth.full)


_LEVELS: tuple[Column[Row], ...] = (
    Column("", "Level", "table", form=show.code, note="stored__level__about"),
    Column("table", "", "stored__level__table"),
    Column("about", "", "stored__level__about"),
    Column(
        "retention_days",
        "Retention",
        unit="days",
        cell=lambda row: "forever" if row.retention_days is None else f"{row.retention_days:g}",
    ),
    Column("bytes", "Size", "stored__total_bytes", "", form=show.size),
    Column("index_bytes", "Indexes", "stored__index_bytes", "", form=show.size),
    Column("rows", "Rows", "stored__rows", "about"),
    Column("chunks", "Chunks", lambda row: len(row.stored.chunks), "compressed", cell=_chunks),
    Column("compressed_chunks", "", "stored__compressed"),
    Column("bytes_per_day", "Size", "stored__bytes_per_day", "per day", form=show.size),
    Column("rows_per_day", "Rows", "stored__rows_per_day", "per day", form=show.whole),
    Column("bytes_in_30_days", "In 30 days", "in_a_month", "", form=show.size),
    Column("bytes_in_a_year", "In a year", "in_a_year", "", form=show.size),
    Column(
        "bytes_when_full",
        "Maximum",
        "growth__full",
        "",
        cell=_maximum,
        about="Size when retention drops as much as is added",
    ),
)


_OTHERS: tuple[Column[database.OtherTable], ...] = (
    Column("table", "Table", form=show.code),
    Column("bytes", "Size", unit="", form=show.size),
    Column("bytes_per_day", "Size", unit="per day", form=show.size),
    Column(
        "bytes_in_30_days",
        "In 30 days",
        lambda row: row.growth.after(_MONTH_DAYS),
        "",
        form=show.size,
    ),
    Column(
        "bytes_in_a_year", "In a year", lambda row: row.growth.after(_YEAR_DAYS), "", form=show.size
    ),
)


def _late(rows: LateRows) -> str:
    if rows.server or rows.target:
        return f"trace of {rows.server}" if rows.server else f"reads of {rows.target}"
    return rows.segment.name if rows.segment else f"record of {rows.job}"


def _late_url(rows: LateRows) -> str:
    if rows.server or rows.target:
        return ""
    stored = rows.segment or rows.job
    return reverse("segment" if rows.segment else "job", args=[stored.pk]) if stored else ""


_LATE_DATA: tuple[Column[LateRows], ...] = (
    Column("data", "Data", _late, link=_late_url),
    Column("start", "From"),
    Column("end", "To"),
    Column("noticed_at", "Detected"),
)


@require_safe
@staff_only
@exports.accept("csv", "json")
def storage(request: UserRequest) -> HttpResponseBase:
    """Sizes, growth and forecast; exports have the levels."""
    page = Storage()
    if exports.requested_format(request):
        return exports.response(request, "storage", page.about, *page.levels.export)
    return render(request, "ingest/storage.html", {**tabs("storage"), "storage": page})
