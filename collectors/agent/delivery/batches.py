"""Batches: the unit of the spool and of a delivery.

A batch file is a line of JSON, the description, followed by the rows as an Arrow stream and, if the
description has `seconds_bytes`, by that many bytes of another one: the demand by second of a trace.
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
    seconds: pl.DataFrame | None = None  # not empty

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
        seconds = b""
        if self.seconds is not None:
            seconds = _arrow(self.seconds)
            description["seconds_bytes"] = len(seconds)
        return json.dumps(description).encode() + b"\n" + _arrow(self.rows) + seconds


def decoded(content: bytes) -> tuple[Description, bytes]:
    """Return the description and the rows of a batch file; `parted` those with seconds."""
    description, _, rows = content.partition(b"\n")
    return json.loads(description), rows


def parted(description: Description, rows: bytes) -> tuple[bytes, bytes]:
    """Part the rows of a batch file from its demand by second, which may be empty."""
    end = len(rows) - description.get("seconds_bytes", 0)
    return rows[:end], rows[end:]


def _arrow(frame: pl.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.write_ipc_stream(stream, compression="zstd")
    return stream.getvalue()


def batches(
    table: Table, parts: Iterable[Parsed], coverage: Sequence[Coverage] = ()
) -> Iterator[Batch]:
    """Join parts of a source and split them into batches of bounded size.

    The first batch has the account, the coverage and the rejects.
    """
    whole = Parsed.joined(table, parts)
    first, *others = list(_slices(whole.table)) or [whole.table]
    seconds = iter(_divided(whole.seconds, 1 + len(others)))
    yield Batch(table.name, first, whole.account, coverage, whole.rejects, next(seconds, None))
    for rows in others:
        empty = REJECTS.empty()
        yield Batch(table.name, rows, Account(), (), empty, next(seconds, None))


def _divided(seconds: pl.DataFrame | None, batches: int) -> Iterator[pl.DataFrame]:
    """Divide the demand by second of a part among its batches."""
    if seconds is None or seconds.is_empty():
        return iter(())
    return seconds.iter_slices(-(-seconds.height // batches))


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
