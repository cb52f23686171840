"""Lustre debug log with +rpctrace: handled RPCs of a server in windows.

One line per record; for each request a server writes a "Handling RPC" line and, at its end,

    SUBSYS:MASK:CPU.TYPE[F]:SEC.USEC:STACK:PID:EXTPID:(FILE:LINE:FUNC()) Handled RPC
      [req@POINTER ]pname:cluuid+ref:pid:xid:nid:opc[:job] THREAD:UUID+REF:PID:xXID:NID:OPC[:JOB]
      [ Request processed in Tus (Aus total) trans N rc S/R]

(one line; wrapped here). T is the time in the handler, A the time from arrival to end. The parts in
brackets depend on the version: no timing tail up to early 2.0; "procesed" up to 2.11; req@ and the
job id since 2.13.

Source: docs/formats.md, "RPC trace"; printf in lustre/ptlrpc/service.c and print_rec() of lctl,
1.8 to 2.17.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np
import polars as pl

from collectors.background import in_background
from collectors.byte_scan import Offsets
from collectors.format import LineFormat
from collectors.lustre.rpc_breaks import end_of_record, in_one_line, whole_records
from collectors.lustre.rpc_exact import HANDLED, read_exactly
from collectors.lustre.rpc_plain import Plain, read_plain, records_of
from collectors.lustre.rpc_records import LATEST_S, Records, is_timed
from collectors.lustre.rpc_repeats import RepeatedRecords
from collectors.lustre.rpc_seconds import SlowSeconds
from collectors.lustre.rpc_windows import WINDOW_S
from collectors.parsed import Account, Parsed
from collectors.source import Chunk, Lines, cleaned
from collectors.tables import REJECTS, RPC_SECONDS, RPC_WINDOWS

WINDOW_US = WINDOW_S * 1_000_000
PART_CHUNKS = 40  # larger parts give fewer window rows

_HANDLED = HANDLED.encode()


@dataclass(frozen=True)
class _Lines:
    """The lines of a chunk: records of plain lines, and other lines that claim to be an RPC.

    There is no Python object per line that refers to others, to spare the garbage collector.
    """

    first: int  # number of the first line
    count: int
    plain: Plain
    odd: Offsets  # numbers of the other lines
    texts: list[bytes]  # of the other lines
    ended: bool  # the last line ends with a newline


@dataclass(frozen=True)
class _Part:
    """The records and rejects of consecutive chunks."""

    lines: int
    records: Records
    rejects: pl.DataFrame


def parse(
    source: Lines,
    repeats: RepeatedRecords | None = None,
    seconds: SlowSeconds | None = None,
    latest_s: int = LATEST_S,
) -> Iterator[Parsed]:
    """Parse a debug log and aggregate its handled RPCs into windows.

    Args:
        source: the output of `lctl dk` or `lctl debug_file` of one server.
        repeats: the records of this server that have been read already; share it between files
            whose times overlap.
        seconds: the records of this server whose demand by second is not decided yet, if more
            records will follow; by default it is decided at the end of the source.
        latest_s: the latest time of a record, in seconds since 1970; later ones are rejected.

    Yields:
        Parts with a frame of `tables.RPC_WINDOWS`, one per `PART_CHUNKS` chunks. Handled RPCs are
        accepted, unreadable lines with "Handled RPC" rejected, all other lines and repeated records
        irrelevant. Times are in microseconds. An RPC without plausible times (`is_timed`: no timing
        tail, negative, service time above total time, above a day) is counted but not timed.

    Raises:
        SourceUnavailable: the source cannot be read to its end.
    """
    repeats = repeats or RepeatedRecords()
    with ThreadPoolExecutor(2) as threads:  # numpy and polars release the GIL
        whole = whole_records(source.chunks())
        chunks = in_background(threads, partial(_split, latest_s=latest_s), whole)
        parts = in_background(threads, partial(_read, latest_s=latest_s), _batched(chunks))
        demand = seconds or SlowSeconds()
        new = (_without_repeated(part, repeats) for part in parts)
        followed = ((part, demand.add(part.records)) for part in new)
        yield from in_background(threads, _aggregate, followed)
        if seconds is None and (rest := demand.rest()).height:
            yield Parsed(RPC_WINDOWS.empty(), REJECTS.empty(), Account(), seconds=rest)


def _split(chunk: Chunk, latest_s: int) -> _Lines:
    text = cleaned(chunk.text)
    newlines, plain = read_plain(text, chunk.first_line, latest_s)
    starts, ends = np.append(0, newlines + 1), np.append(newlines, len(text))
    is_odd = np.ones(len(ends), np.bool_)
    is_odd[plain.numbers["line"] - chunk.first_line] = False
    ended = text.endswith(b"\n")
    is_odd[-1] = not ended  # there is no line after a final newline
    odd = np.flatnonzero(is_odd)
    numbers, texts, reached = [], [], 0
    for number, start, end in zip(
        odd.tolist(), starts[odd].tolist(), ends[odd].tolist(), strict=True
    ):
        if start >= reached and text.find(_HANDLED, start, end) >= 0:
            reached = end_of_record(text, start, end)
            numbers.append(chunk.first_line + number)
            texts.append(in_one_line(text[start:reached]))
    count = len(newlines) + int(not ended)
    return _Lines(chunk.first_line, count, plain, np.array(numbers, np.int64), texts, ended)


def _batched(chunks: Iterator[_Lines]) -> Iterator[list[_Lines]]:
    while batch := list(islice(chunks, PART_CHUNKS)):
        yield batch


def _read(chunks: list[_Lines], latest_s: int) -> _Part:
    last = chunks[-1]
    odd = {
        "line": np.concatenate([chunk.odd for chunk in chunks]),
        "text": [text for chunk in chunks for text in chunk.texts],
    }
    lines = pl.DataFrame(odd, {"line": pl.Int64, "text": pl.Binary}).select(
        "line",
        pl.col("text").cast(pl.String).str.strip_suffix("\r"),
        ended=(pl.col("line") < last.first + last.count - 1) | last.ended,
    )
    records, rejects = read_exactly(lines, latest_s)
    plain = records_of([chunk.plain for chunk in chunks])
    return _Part(sum(chunk.count for chunk in chunks), Records.concat([plain, records]), rejects)


def _without_repeated(part: _Part, repeats: RepeatedRecords) -> _Part:
    records = replace(part.records, numbers=repeats.drop_from(part.records.numbers))
    return replace(part, records=records)


def _aggregate(followed: tuple[_Part, pl.DataFrame]) -> Parsed:
    part, seconds = followed
    accepted, rejected = len(part.records.numbers), len(part.rejects)
    irrelevant = part.lines - accepted - rejected
    account = Account(part.lines, accepted, rejected, irrelevant)
    return Parsed(windows(part.records), part.rejects, account, seconds=seconds)


def windows(records: Records) -> pl.DataFrame:
    """Aggregate records into `tables.RPC_WINDOWS`."""
    time_us, service_us, total_us = pl.col("time_us"), pl.col("service_us"), pl.col("total_us")
    queue_us = total_us - service_us
    return (
        records.numbers.lazy()
        .with_columns(
            pl.when(is_timed()).then(pl.col("service_us", "total_us")),
            # Grouping by one number is faster; the sum is as good a hash as the group.
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


RPC_TRACE = LineFormat(
    name="rpctrace",
    label="Lustre RPC trace",
    table=RPC_WINDOWS,
    seconds_table=RPC_SECONDS,
    parse=lambda source, origin: parse(source, origin.repeats, latest_s=origin.latest_s),
    scopes=("server",),
    options=("server", "filesystem"),
    agent_inputs=("file", "pipe", "command", "folder"),
)
