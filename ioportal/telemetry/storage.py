"""What the tables over time take on disk."""

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
from ioportal.telemetry.models import Coverage
from ioportal.telemetry.retention import ALWAYS

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.telemetry.levels import Level

_RATE_OVER = timedelta(days=7)  # of records
_DAY = timedelta(days=1)

# Rows are those that the database counted when it last analysed a chunk (less than 0: never), and
# of a compressed chunk those that were compressed: only rows added since are in its own table.
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


# Without a row: it runs on another host, or the role may not read its settings. Both addresses are
# NULL on a unix socket, and equal where both ends are on one host.
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
    """One level as it is on disk."""

    level: Level
    chunks: list[_Chunk]
    observed: Interval  # from the first to the last record of any source

    @property
    def total_bytes(self) -> int:
        """Its rows and their indexes."""
        return sum(chunk.total_bytes for chunk in self.chunks)

    @property
    def index_bytes(self) -> int:
        """The indexes among it."""
        return sum(chunk.index_bytes for chunk in self.chunks)

    @property
    def compressed(self) -> int:
        """How many of the chunks are."""
        return sum(chunk.is_compressed for chunk in self.chunks)

    @property
    def rows(self) -> int | None:
        """About how many rows; None: some chunk was not analysed yet."""
        counts = [chunk.rows for chunk in self.chunks]
        return None if any(count < 0 for count in counts) else round(sum(counts))

    @property
    def chunk_days(self) -> float:
        """How long a chunk is."""
        return (self.chunks[-1].end - self.chunks[-1].start) / _DAY if self.chunks else 0.0

    @property
    def bytes_per_day(self) -> float | None:
        """What a day of the newest records takes; None: there are none."""
        recent, days = self._recent
        return sum(chunk.total_bytes for chunk in recent) / days if recent else None

    @property
    def rows_per_day(self) -> float | None:
        """How many rows a day of the newest records has; None: not known."""
        recent, days = self._recent
        is_known = recent and all(chunk.rows >= 0 for chunk in recent)
        return sum(chunk.rows for chunk in recent) / days if is_known else None

    @property
    def _recent(self) -> tuple[list[_Chunk], float]:
        """The newest chunks that are full, and the days from the first of them on.

        The last one may still be filling, unless it is the only one.
        """
        if not self.chunks:
            return [], 0.0
        *full, last = self.chunks
        if full:
            recent = [chunk for chunk in full if chunk.end > last.start - _RATE_OVER] or full[-1:]
            end = min(last.start, recent[-1].end)
        else:
            recent, end = [last], min(last.end, self.observed.end)
        start = max(recent[0].start, min(self.observed.start, recent[0].end))
        return (recent, (end - start) / _DAY) if end > start else ([], 0.0)


def stored() -> list[Stored]:
    """Return all levels as they are on disk."""
    found = []
    extent = Coverage.objects.aggregate(start=Min("start"), end=Max("end"))
    observed = Interval(**extent) if extent["start"] else ALWAYS
    with connection.cursor() as cursor:
        for level in LEVELS:
            cursor.execute(_CHUNKS, {"table": level.table})
            chunks = [_Chunk(*row) for row in cursor.fetchall()]
            found.append(Stored(level, chunks, observed))
    return found


def database_bytes() -> int:
    """Return what all of the database takes."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def free_bytes() -> int | None:
    """Return the free space on the fullest disk of the database; None: not visible here."""
    folders = settings.DATABASE_FOLDERS or _data_folders()
    return min((shutil.disk_usage(folder).free for folder in folders), default=None)


@cache
def _data_folders() -> list[str]:
    """Return the data folder of a database that runs on this host and shows its folder."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCAL_DATA_FOLDER)
        rows = cursor.fetchall()
    return [folder for (folder,) in rows if os.access(folder, os.F_OK)]


def version() -> str:
    """Return the version of TimescaleDB."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'")
        return str(cursor.fetchone()[0])
