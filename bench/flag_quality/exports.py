"""Export statistics, as an agent reads and sends them."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from collectors.agent.delivery.batches import ROWS_TYPE, Coverage, batches, decoded
from collectors.agent.polling.counters import export_counters
from collectors.lustre.differences import Snapshot
from collectors.parsed import Parsed
from collectors.source import Source
from ioportal.ingest.batches import Rows, receive
from ioportal.ingest.manifest import Manifest
from ioportal.site import models

_NEVER = datetime.min.replace(tzinfo=UTC)  # of no target


class ExportReads:
    """Counter reads of an agent, which keeps the last counters and sends increments.

    Args:
        source: the name of the registered source.
    """

    def __init__(self, source: str) -> None:
        self._source = models.Source.objects.get(name=source)
        self._kind = export_counters()
        self._stream = str(uuid4())
        self._sent = 0
        self._last = Snapshot.at(_NEVER, self._kind.totals.empty().drop("line"), frozenset())

    def send(self, path: Path, at: datetime) -> None:
        """Read the counters at a time, and send their increments to the portal."""
        read = Parsed.joined(self._kind.totals, self._kind.parse(Source.open(path)))
        current = Snapshot.at(at, read.table.drop("line"), read.observed)
        previous = dict(self._last.reads.rows())
        deltas, self._last = self._kind.compare(self._last, current)
        coverage = [
            Coverage(target, previous.get(target, at), at) for target in current.reads["target"]
        ]
        for batch in batches(self._kind.deltas, [replace(read, table=deltas)], coverage):
            self._sent += 1
            description, rows = decoded(batch.encoded(self._stream, self._sent))
            with tempfile.NamedTemporaryFile() as file:
                file.write(rows)
                file.flush()
                manifest = Manifest.model_validate(description)
                receive(self._source, manifest, Rows(Path(file.name), ROWS_TYPE), now=at)
