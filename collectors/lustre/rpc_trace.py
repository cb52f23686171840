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

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import polars as pl

from collectors.lustre import rpc_records
from collectors.lustre.rpc_exact import read_exactly
from collectors.lustre.rpc_plain import read_plain
from collectors.lustre.rpc_repeats import RepeatedRecords
from collectors.parsed import Account, Parsed
from collectors.source import Chunk, Source
from collectors.tables import RPC_WINDOWS

WINDOW_US = 10_000_000
LONGEST_US = 86_400_000_000  # a day; a longer time is not believed, and 10^8 of them fit an Int64

READERS = 2
PART_CHUNKS = 16  # windows of few, large parts are fewer rows


@dataclass(frozen=True)
class _Reading:
    """What a chunk says: how many lines, the records and the rejects among them."""

    lines: int
    records: pl.DataFrame
    rejects: pl.DataFrame


def parse(source: Source, seen: RepeatedRecords | None = None) -> Iterator[Parsed]:
    """Read a debug log and window its handled RPCs: a `Parsed` of `RPC_WINDOWS` per 16 chunks.

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
    readings = _readings(source)
    while part := list(islice(readings, PART_CHUNKS)):
        lines = sum(reading.lines for reading in part)
        records = seen.drop_from(pl.concat(reading.records for reading in part))
        rejects = pl.concat(reading.rejects for reading in part)
        account = Account(lines, len(records), len(rejects), lines - len(records) - len(rejects))
        yield Parsed(windows(records), rejects, account)


def _readings(source: Source) -> Iterator[_Reading]:
    """Read the chunks of a source in their order, several at a time."""
    with ThreadPoolExecutor(READERS) as readers:
        started: deque[Future[_Reading]] = deque()
        for chunk in source.chunks():
            started.append(readers.submit(_read, chunk))
            if len(started) > READERS:
                yield started.popleft().result()
        for reading in started:
            yield reading.result()


def _read(chunk: Chunk) -> _Reading:
    text = utf8(chunk.text)
    lines = split_lines(text, chunk.first_line)
    plain = read_plain(text).with_columns(lines["line"])
    goes_on = lines["text"].str.ends_with(":")  # with an empty field, which columns do not show
    is_plain = plain["is_plain"] & ~goes_on
    exact, rejects = read_exactly(lines.filter(~is_plain))
    records = pl.concat([plain.filter(is_plain).select(*rpc_records.COLUMNS), exact])
    return _Reading(len(lines), records, rejects)


def utf8(text: bytes) -> bytes:
    """Return a text with U+FFFD for what is not UTF-8 in it."""
    return text if text.isascii() else text.decode(errors="replace").encode()


def split_lines(text: bytes, first_line: int) -> pl.DataFrame:
    """Return the lines of a text, as `read_exactly` takes them."""
    is_last = pl.row_index() == pl.len() - 1
    return pl.read_lines(text, name="text").with_columns(
        line=pl.row_index().cast(pl.Int64) + first_line,
        ended=~is_last | text.endswith(b"\n"),
    )


def windows(records: pl.DataFrame) -> pl.DataFrame:
    """Add records up into `RPC_WINDOWS`."""
    time_us, service_us, total_us = pl.col("time_us"), pl.col("service_us"), pl.col("total_us")
    queue_us = total_us - service_us
    timed = (service_us >= 0) & (service_us <= total_us) & (total_us <= LONGEST_US)
    return (
        records.with_columns(pl.when(timed).then(pl.col("service_us", "total_us")))
        .group_by("nid", "job", "service", "opcode", start=time_us // WINDOW_US * WINDOW_US)
        .agg(
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
        .select(pl.col(name).cast(dtype) for name, dtype in RPC_WINDOWS.columns.items())
    )
