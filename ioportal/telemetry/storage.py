"""Disk usage of the levels and the database, and its forecast."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection
from django.db.models import Max, Min

from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.levels import LEVELS
from ioportal.telemetry.models import Coverage, TableSize
from ioportal.telemetry.retention import ALWAYS

if TYPE_CHECKING:
    from datetime import date, datetime

    from ioportal.telemetry.levels import Level

_RATE_PERIOD = timedelta(days=7)
_DAY = timedelta(days=1)

# Numbers of rows are estimates of the latest ANALYZE (below 0: none), for compressed chunks plus
# the number of compressed rows.
_CHUNKS = """
SELECT c.range_start, c.range_end, c.is_compressed, s.table_bytes, s.index_bytes, s.total_bytes,
    CASE WHEN c.is_compressed THEN coalesce(z.numrows_pre_compression, 0) + greatest(p.reltuples, 0)
        ELSE p.reltuples END
FROM timescaledb_information.chunks c
JOIN chunks_detailed_size(%(table)s::regclass) s USING (chunk_schema, chunk_name)
JOIN pg_class p ON p.oid = format('%%I.%%I', chunk_schema, chunk_name)::regclass
LEFT JOIN _timescaledb_catalog.compression_chunk_size z
    ON z.chunk_id = _timescaledb_functions.chunk_id_from_relid(p.oid)
WHERE c.hypertable_name = %(table)s
ORDER BY c.range_start
"""


_OTHER_TABLES = """
SELECT relname, pg_total_relation_size(oid) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname NOT IN (
    SELECT hypertable_name FROM timescaledb_information.hypertables
)
"""


# No row if the database runs on another host or the role may not read its settings. Both addresses
# are NULL on a unix socket, and equal on one host.
_LOCAL_DATA_FOLDER = """
SELECT setting FROM pg_settings
WHERE name = 'data_directory' AND inet_server_addr() IS NOT DISTINCT FROM inet_client_addr()
"""


@dataclass(frozen=True)
class _Chunk:
    start: datetime
    end: datetime
    is_compressed: bool
    table_bytes: int
    index_bytes: int
    total_bytes: int
    rows: float


@dataclass(frozen=True)
class Stored:
    """Disk usage of one level."""

    level: Level
    chunks: list[_Chunk]
    observed: Interval  # from the first to the last record of all sources

    @property
    def total_bytes(self) -> int:
        """Bytes of rows and indexes."""
        return sum(chunk.total_bytes for chunk in self.chunks)

    @property
    def index_bytes(self) -> int:
        """Bytes of indexes."""
        return sum(chunk.index_bytes for chunk in self.chunks)

    @property
    def compressed(self) -> int:
        """Number of compressed chunks."""
        return sum(chunk.is_compressed for chunk in self.chunks)

    @property
    def rows(self) -> int | None:
        """Estimated number of rows; None: a chunk was not analysed yet."""
        counts = [chunk.rows for chunk in self.chunks]
        return None if any(count < 0 for count in counts) else round(sum(counts))

    @property
    def chunk_days(self) -> float:
        """Length of a chunk in days."""
        return (self.chunks[-1].end - self.chunks[-1].start) / _DAY if self.chunks else 0.0

    @property
    def bytes_per_day(self) -> float | None:
        """Bytes per day in the latest chunks; None: no chunks."""
        recent, days = self._recent
        return sum(chunk.total_bytes for chunk in recent) / days if recent else None

    @property
    def rows_per_day(self) -> float | None:
        """Rows per day in the latest chunks; None: unknown."""
        recent, days = self._recent
        is_known = recent and all(chunk.rows >= 0 for chunk in recent)
        return sum(chunk.rows for chunk in recent) / days if is_known else None

    @property
    def _recent(self) -> tuple[list[_Chunk], float]:
        """The latest complete chunks and their length in days.

        The last chunk counts as incomplete, unless it is the only one.
        """
        if not self.chunks:
            return [], 0.0
        *full, last = self.chunks
        if full:
            recent = [chunk for chunk in full if chunk.end > last.start - _RATE_PERIOD] or full[-1:]
            end = min(last.start, recent[-1].end)
        else:
            recent, end = [last], min(last.end, self.observed.end)
        start = max(recent[0].start, min(self.observed.start, recent[0].end))
        return (recent, (end - start) / _DAY) if end > start else ([], 0.0)


@dataclass(frozen=True)
class Growth:
    """Size and growth of a table.

    Args:
        now: present size in bytes.
        per_day: bytes of a day of records; None: unknown.
        retention: days until rows expire; None: never.
        chunk: days of rows that are dropped together.
    """

    now: float
    per_day: float | None
    retention: float | None
    chunk: float

    @property
    def full(self) -> float | None:
        """Steady size, when drops equal growth; None: unlimited or unknown."""
        if self.per_day is None or self.retention is None:
            return None
        return self.per_day * (self.retention + self.chunk)

    def after(self, days: float) -> float | None:
        """Return the size after some days; None: unknown.

        The table grows until the present rows are dropped. From then on it has its full size.
        """
        if self.per_day is None:
            return None
        if self.full is None:
            return self.now + days * self.per_day
        if self.retention is not None and days >= self.retention + self.chunk:
            return self.full
        return min(self.now + days * self.per_day, max(self.now, self.full))


def stored() -> list[Stored]:
    """Return the disk usage of all levels."""
    usage = []
    extent = Coverage.objects.aggregate(start=Min("start"), end=Max("end"))
    observed = Interval(**extent) if extent["start"] else ALWAYS
    with connection.cursor() as cursor:
        for level in LEVELS:
            cursor.execute(_CHUNKS, {"table": level.table})
            chunks = [_Chunk(*row) for row in cursor.fetchall()]
            usage.append(Stored(level, chunks, observed))
    return usage


@dataclass(frozen=True)
class OtherTable:
    """Disk usage of a table without chunks.

    Args:
        table: its name.
        bytes: of rows and indexes.
        bytes_per_day: growth in the last days; None: unknown.
    """

    table: str
    bytes: int
    bytes_per_day: float | None

    @property
    def growth(self) -> Growth:
        """The forecast."""
        return Growth(self.bytes, self.bytes_per_day, None, 0)


def other_tables(today: date) -> list[OtherTable]:
    """Return the disk usage of tables without chunks, largest first."""
    first: dict[str, TableSize] = {}
    sizes = TableSize.objects.filter(day__gte=today - _RATE_PERIOD, day__lt=today)
    for size in sizes.order_by("-day"):
        first[size.table] = size
    tables = [
        OtherTable(
            name,
            now,
            (now - past.bytes) / (today - past.day).days if (past := first.get(name)) else None,
        )
        for name, now in _other_bytes().items()
    ]
    return sorted(tables, key=lambda table: -table.bytes)


def note_sizes(today: date) -> None:
    """Store the sizes of tables without chunks, once a day; remove those of earlier weeks."""
    if TableSize.objects.filter(day=today).exists():
        return
    TableSize.objects.filter(day__lt=today - _RATE_PERIOD).delete()
    TableSize.objects.bulk_create(
        (TableSize(table=name, day=today, bytes=size) for name, size in _other_bytes().items()),
        ignore_conflicts=True,
    )


def _other_bytes() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(_OTHER_TABLES)
        return dict(cursor.fetchall())


def database_bytes() -> int:
    """Return the size of the database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def free_bytes() -> int | None:
    """Return the free space on the fullest disk of the database; None: not visible."""
    folders = settings.DATABASE_FOLDERS or _data_folders()
    return min((shutil.disk_usage(folder).free for folder in folders), default=None)


@cache
def _data_folders() -> list[str]:
    """Return the data folder of a database on this host, if it is visible."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCAL_DATA_FOLDER)
        rows = cursor.fetchall()
    return [folder for (folder,) in rows if os.access(folder, os.F_OK)]


def version() -> str:
    """Return the version of TimescaleDB."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'")
        return str(cursor.fetchone()[0])
