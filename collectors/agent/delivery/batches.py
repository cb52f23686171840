"""Batches: the unit of the spool and of a delivery.

A batch file is a line of JSON, the description, followed by the rows as an Arrow stream.
"""

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

import polars as pl

from collectors.batch import hostlists
from collectors.parsed import REJECT_TEXT_CHARACTERS, Account, Parsed
from collectors.tables import REJECTS, Table

ROWS_TYPE = "application/vnd.apache.arrow.stream"
BATCH_ROWS = 100_000  # maximum
BATCH_HOSTS = hostlists.NODES_MAX  # maximum in the host lists of its rows
REJECTS_SHOWN = 20  # per batch; all rejects are counted
REASONS_COUNTED = 100

Description = dict[str, Any]


@dataclass(frozen=True)
class Coverage:
    """An interval in which a target ("": the source as a whole) was observed."""

    target: str
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Batch:
    """Rows of one table, with the account, coverage and rejects of their source."""

    table: str
    rows: pl.DataFrame
    account: Account
    coverage: Sequence[Coverage]
    rejects: pl.DataFrame

    def encoded(self, stream: str, sequence: int) -> bytes:
        """Return the content of the batch file."""
        description: Description = {
            "stream": stream,
            "sequence": sequence,
            "table": self.table,
            "account": asdict(self.account),
            "coverage": [
                {"target": c.target, "start": c.start.isoformat(), "end": c.end.isoformat()}
                for c in self.coverage
            ],
            "rejects": self.rejects.head(REJECTS_SHOWN).to_dicts(),
            "rejected_by_reason": dict(
                Counter(self.rejects["reason"].str.head(REJECT_TEXT_CHARACTERS)).most_common(
                    REASONS_COUNTED
                )
            ),
        }
        rows = io.BytesIO()
        self.rows.write_ipc_stream(rows, compression="zstd")
        return json.dumps(description).encode() + b"\n" + rows.getvalue()


def decoded(content: bytes) -> tuple[Description, bytes]:
    """Return the description and the rows of a batch file."""
    description, _, rows = content.partition(b"\n")
    return json.loads(description), rows


def batches(
    table: Table, parts: Iterable[Parsed], coverage: Sequence[Coverage] = ()
) -> Iterator[Batch]:
    """Join parts of a source and split them into batches of bounded size.

    The first batch has the account, the coverage and the rejects.
    """
    whole = Parsed.joined(table, parts)
    first, *others = list(_slices(whole.table)) or [whole.table]
    yield Batch(table.name, first, whole.account, coverage, whole.rejects)
    for rows in others:
        yield Batch(table.name, rows, Account(), (), REJECTS.empty())


def _slices(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    for part in rows.iter_slices(BATCH_ROWS):
        starts, hosts = [0], 0
        for index, nodes in enumerate(part["nodes"] if "nodes" in part.columns else ()):
            size = hostlists.count(nodes)
            hosts += size
            if hosts > BATCH_HOSTS:
                starts.append(index)
                hosts = size
        for start, end in pairwise([*starts, part.height]):
            yield part[start:end]
