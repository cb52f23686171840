"""The space of the accounts of batches, also of joined ones, and their reconciliation."""

from __future__ import annotations

import io
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import polars as pl
from django.core.management import call_command
from django.db import connection
from django.db.models import Max
from psycopg import sql

from bench import portal
from bench.figures import Figure
from collectors.agent.delivery.batches import ROWS_TYPE, Batch, Coverage, decoded
from collectors.parsed import Account
from collectors.tables import REJECTS, RPC_WINDOWS
from ioportal.ingest import attribution_stage, batches, joined_batches
from ioportal.ingest.manifest import Manifest
from ioportal.ingest.models import Segment
from ioportal.site.models import Source
from ioportal.telemetry import rollups
from ioportal.telemetry.stage_runs import drain

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCHES = 2_880  # of a day, each 30 s
_BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
_INTERVAL = timedelta(seconds=30)
_BOOKS = """
SELECT relname, pg_total_relation_size(oid) FROM pg_class
WHERE relkind = 'r' AND (starts_with(relname, 'ingest_') OR relname = 'telemetry_coverage')
"""


def _deliver(source: Source, stream: UUID, sequence: int, path: Path) -> None:
    """Deliver a window of one RPC, which covers the interval of its batch."""
    start = _BEGIN + (sequence - 1) * _INTERVAL
    columns = {name: [0] for name in RPC_WINDOWS.columns} | {
        "start": [start],
        "nid": ["1@gni"],
        "job": [""],
        "service": ["mdt"],
        "opcode": [101],
        "count": [1],
        "first": [start],
        "last": [start],
    }
    rows = pl.DataFrame(columns, schema=RPC_WINDOWS.columns)
    coverage = Coverage("", start, start + _INTERVAL)
    batch = Batch(RPC_WINDOWS.name, rows, Account(1, 1), (coverage,), REJECTS.empty())
    description, content = decoded(batch.encoded(str(stream), sequence))
    path.write_bytes(content)
    manifest = Manifest.model_validate(description)
    batches.receive(source, manifest, batches.Rows(path, ROWS_TYPE), datetime.now(UTC))


def _bytes() -> int:
    """Return the space of all bookkeeping, without dead rows."""
    with connection.cursor() as cursor:
        cursor.execute(_BOOKS)
        for table, _ in cursor.fetchall():
            cursor.execute(sql.SQL("VACUUM FULL {}").format(sql.Identifier(table)))
        cursor.execute(_BOOKS)
        return sum(size for _, size in cursor.fetchall())


def measure(scale: float) -> Iterator[Figure]:
    """Deliver a day of a stream, and join it."""
    number = int(BATCHES * scale)
    source = Source.objects.get(name=portal.SOURCE)
    before = _bytes()
    stream = uuid4()
    with tempfile.TemporaryDirectory() as folder:
        for sequence in range(1, number + 1):
            _deliver(source, stream, sequence, Path(folder, "rows"))
    portal.settle()
    single = _bytes() - before
    drain(attribution_stage.attribute_pending)
    drain(rollups.roll_up)
    began = monotonic()
    call_command("reconcile", stdout=io.StringIO())
    reconciled_s = monotonic() - began
    latest = Segment.objects.filter(batch__stream=stream).aggregate(latest=Max("pk"))["latest"]
    old = Segment.objects.filter(batch__stream=stream).exclude(pk=latest)
    old.update(loaded_at=datetime.now(UTC) - timedelta(days=30))
    while joined_batches.join_old(datetime.now(UTC)):
        pass
    joined = _bytes() - before
    what = f"a stream's day, {number:,} batches"
    yield Figure("batch_bytes", f"{what}: bookkeeping of a batch", single / number, "B")
    yield Figure("joined_bytes", f"{what}: the same after joining", joined / number, "B")
    yield Figure(
        "reconcile_ms", f"{what}: reconcile / batch", 1e3 * reconciled_s / number, "ms", at_most=1
    )
