"""Lustre's debug log with +rpctrace: the RPCs a server handled, windowed.

One text line per record; a server writes for every request a "Handling RPC" line and, at its end,

    SUBSYS:MASK:CPU.TYPE[F]:SEC.USEC:STACK:PID:EXTPID:(FILE:LINE:FUNC()) Handled RPC
      [req@POINTER ]pname:cluuid+ref:pid:xid:nid:opc[:job] THREAD:UUID+REF:PID:xXID:NID:OPC[:JOB]
      [ Request processed in Tus (Aus total) trans N rc S/R]

(one line; wrapped here). T is the time in the handler, A from arrival to end. Versions differ in
the parts in brackets: no timing tail up to early 2.0; "procesed" up to 2.11; req@ and the job id
since 2.13.

Source: docs/formats.md, "RPC trace"; printf in lustre/ptlrpc/service.c and print_rec() of lctl,
1.8 to 2.17.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

import numpy as np
import polars as pl

from collectors.byte_scan import Places
from collectors.lustre.rpc_exact import HANDLED, read_exactly
from collectors.lustre.rpc_plain import Plain, read_plain, records_of
from collectors.lustre.rpc_records import Records
from collectors.lustre.rpc_repeats import RepeatedRecords
from collectors.parsed import Account, Parsed
from collectors.source import Chunk, Lines
from collectors.tables import RPC_WINDOWS

WINDOW_US = 10_000_000
LONGEST_US = 86_400_000_000  # a day; a longer time is not believed, and 10^8 of them fit an Int64
PART_CHUNKS = 40  # windows of few, large parts are fewer rows

_HANDLED = HANDLED.encode()

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class _Lines:
    """The lines of a chunk: what plain ones say, and the others that claim to be an RPC.

    Nothing per line holds other objects: of many such, Python would look for garbage ever again.
    """

    first: int  # number of the first line
    count: int
    plain: Plain
    odd: Places  # numbers of the others
    texts: list[bytes]  # of the others
    ended: bool  # the last line has its newline


@dataclass(frozen=True)
class _Reading:
    """What some chunks say."""

    lines: int
    records: Records
    rejects: pl.DataFrame


def parse(source: Lines, seen: RepeatedRecords | None = None) -> Iterator[Parsed]:
    """Read a debug log and window its handled RPCs: a `Parsed` of `RPC_WINDOWS` per 8 chunks.

    Args:
        source: the log as `lctl dk` or `lctl debug_file` print it, one server's.
        seen: the records of this server that were read already; share it between files whose times
            overlap.

    Yields:
        Accepted are handled RPCs; rejected are lines that say "Handled RPC" and cannot be read;
        every other line is irrelevant, and so is a record that was seen before. Times are in
        microseconds. An RPC without believable times (no timing tail, negative, more in the handler
        than in all, over `LONGEST_US`) counts and is not timed.

    Raises:
        SourceUnavailable: the source cannot be read to its end. Nothing else: bad data is data.
    """
    seen = seen or RepeatedRecords()
    with ThreadPoolExecutor(2) as helpers:  # numpy and polars let go of Python's lock
        chunks = _beside(helpers, _split, source.chunks())
        readings = _beside(helpers, _read, _parts(chunks))
        yield from _beside(helpers, _add_up, (_without_repeated(part, seen) for part in readings))


def _beside(
    helpers: Executor, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """Yield what `function` makes of each item; helpers make it while the next one is got."""
    started = None
    for item in items:
        following = helpers.submit(function, item)
        if started:
            yield started.result()
        started = following
    if started:
        yield started.result()


def _split(chunk: Chunk) -> _Lines:
    text = cleaned(chunk.text)
    newlines, plain = read_plain(text, chunk.first_line)
    starts, ends = np.append(0, newlines + 1), np.append(newlines, len(text))
    is_odd = np.ones(len(ends), np.bool_)
    is_odd[plain.numbers["line"] - chunk.first_line] = False
    ended = text.endswith(b"\n")
    is_odd[-1] = not ended  # otherwise there is no line behind the last newline
    odd = np.flatnonzero(is_odd)
    claims = [
        text.find(_HANDLED, start, end) >= 0
        for start, end in zip(starts[odd].tolist(), ends[odd].tolist(), strict=True)
    ]
    odd = odd[np.array(claims, np.bool_)]
    texts = [
        text[start:end] for start, end in zip(starts[odd].tolist(), ends[odd].tolist(), strict=True)
    ]
    count = len(newlines) + int(not ended)
    return _Lines(chunk.first_line, count, plain, odd + chunk.first_line, texts, ended)


def _parts(chunks: Iterator[_Lines]) -> Iterator[list[_Lines]]:
    while part := list(islice(chunks, PART_CHUNKS)):
        yield part


def cleaned(text: bytes) -> bytes:
    """Return a text with U+FFFD for NUL and for what is not UTF-8."""
    if text.isascii() and b"\0" not in text:
        return text
    return text.decode(errors="replace").replace("\0", "\ufffd").encode()


def _read(part: list[_Lines]) -> _Reading:
    last = part[-1]
    odd = {
        "line": np.concatenate([lines.odd for lines in part]),
        "text": [text for lines in part for text in lines.texts],
    }
    lines = pl.DataFrame(odd, {"line": pl.Int64, "text": pl.Binary}).select(
        "line",
        pl.col("text").cast(pl.String).str.strip_suffix("\r"),
        ended=(pl.col("line") < last.first + last.count - 1) | last.ended,
    )
    records, rejects = read_exactly(lines)
    plain = records_of([lines.plain for lines in part])
    return _Reading(sum(lines.count for lines in part), Records.concat([plain, records]), rejects)


def _without_repeated(reading: _Reading, seen: RepeatedRecords) -> _Reading:
    records = replace(reading.records, numbers=seen.drop_from(reading.records.numbers))
    return replace(reading, records=records)


def _add_up(reading: _Reading) -> Parsed:
    accepted, rejected = len(reading.records.numbers), len(reading.rejects)
    irrelevant = reading.lines - accepted - rejected
    account = Account(reading.lines, accepted, rejected, irrelevant)
    return Parsed(windows(reading.records), reading.rejects, account)


def windows(records: Records) -> pl.DataFrame:
    """Add records up into `RPC_WINDOWS`."""
    time_us, service_us, total_us = pl.col("time_us"), pl.col("service_us"), pl.col("total_us")
    queue_us = total_us - service_us
    timed = (service_us >= 0) & (service_us <= total_us) & (total_us <= LONGEST_US)
    return (
        records.numbers.lazy()
        .with_columns(
            pl.when(timed).then(pl.col("service_us", "total_us")),
            # One number is grouped by in less time than two; it is as good a hash as the group.
            row=pl.col("group") + (time_us // WINDOW_US).cast(pl.UInt64),
        )
        .group_by("row")
        .agg(
            pl.first("group"),
            start=time_us.first() // WINDOW_US * WINDOW_US,
            count=pl.len(),
            timed=service_us.count(),
            service_us_sum=service_us.sum(),
            service_us_min=service_us.min().fill_null(0),
            service_us_max=service_us.max().fill_null(0),
            queue_us_min=queue_us.min().fill_null(0),
            queue_us_max=queue_us.max().fill_null(0),
            total_us_sum=total_us.sum(),
            first=time_us.min(),
            last=time_us.max(),
        )
        .join(records.names.lazy().unique("group"), on="group")
        .select(pl.col(name).cast(dtype) for name, dtype in RPC_WINDOWS.columns.items())
        .collect()
    )
