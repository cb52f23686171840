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

from collections.abc import Iterator

import polars as pl

from collectors.lustre.rpc_plain import read_plain
from collectors.lustre.rpc_repeats import RepeatedRecords
from collectors.parsed import REJECT_TEXT_CHARACTERS, Account, Parsed
from collectors.source import Chunk, Source
from collectors.tables import RPC_WINDOWS

WINDOW_US = 10_000_000
LONGEST_US = 86_400_000_000  # a day; a longer time is not believed, and 10^8 of them fit an Int64
LATEST_S = 2**32 - 1  # the header's seconds are an unsigned 32-bit number
JOB_CHARACTERS = 31  # Lustre cuts a job id there

HANDLED = "Handled RPC"

_TAIL = (
    r" Request process?ed in (?P<service_us>-?[0-9]+)us \((?P<total_us>-?[0-9]+)us total\)"
    r" trans .*/-?[0-9]+"
)
# The parts of a line in their order; a line that stops matching in one is rejected for its reason.
# What is not used is not judged, but for what tells a record that was cut from a whole one.
_PARTS = (
    (r"[^:]*:[^:]*:", "no debug-log header"),
    (r"[^:]*:", "header ends in the CPU"),
    (r"(?P<seconds>[0-9]+)\.(?P<micros>[0-9]{6}):", "header ends in the time"),
    (r"[^:]*:[^:]*:[^:]*:", "header ends in the thread's numbers"),
    (r"[^:]*:[^:]*:[^:]*\(\)\) ", "header ends in the place in the source"),
    (HANDLED + " ", f'message does not begin with "{HANDLED}"'),
    (r"(?:req@[^:]* )?pname:[^:]*:[^:]*:[^:]*:[^:]*:opc(?P<names_job>:job)? ", "no field names"),
    (r"(?P<thread>[^:]{1,16}):", "no thread name"),
    (r"[^:]*:", "no client"),
    (r"[^:]*:", "no client pid"),
    (r"(?P<xid>x[^:]*):", "no xid"),
    (r"(?:U?[0-9]+|LNET_PID_ANY)-(?P<nid>[^ @]+@(?:[^ :]+|<[0-9]+:[0-9]+>)):", "no NID"),
    (r"(?P<opcode>-?[0-9]+)", "no opcode"),
    (r"(?::(?P<job>.*?))?(?:" + _TAIL + ")?$", "unreadable after the opcode"),
)
_PREFIXES = ["^" + "".join(part for part, _ in _PARTS[: n + 1]) for n in range(len(_PARTS))]
_LINE = _PREFIXES[-1]

# What is known of one handled RPC. Times are microseconds, `time_us` since the epoch; the other two
# are null where it is not timed.
_RECORD = ("time_us", "nid", "job", "service", "opcode", "xid", "service_us", "total_us")


def parse(source: Source, seen: RepeatedRecords | None = None) -> Iterator[Parsed]:
    """Read a debug log and window its handled RPCs: one `Parsed` of `RPC_WINDOWS` per chunk.

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
    for chunk in source.chunks():
        lines = split_lines(chunk)
        fast = read_plain(chunk_text(chunk))
        is_plain = fast["is_plain"] & ~lines["text"].str.ends_with(":")  # beyond
        exact, rejects = read_exactly(lines.filter(~is_plain))
        records = pl.concat([believed(fast.filter(is_plain)), exact])
        new = seen.drop_from(records)
        yield Parsed(
            windows(new),
            rejects,
            Account(len(lines), len(new), len(rejects), len(lines) - len(new) - len(rejects)),
        )


def chunk_text(chunk: Chunk) -> bytes:
    """Return the text of a chunk as UTF-8, with U+FFFD for what is not."""
    return chunk.text if chunk.text.isascii() else chunk.text.decode(errors="replace").encode()


def split_lines(chunk: Chunk) -> pl.DataFrame:
    """Return the lines of a chunk: `line` (its number), `text` (U+FFFD for what is not UTF-8).

    `ended` is false for a last line that ends with the source and not with a newline.
    """
    ended = chunk.text.endswith(b"\n")
    return pl.read_lines(
        chunk_text(chunk), name="text", row_index_name="line", row_index_offset=chunk.first_line
    ).with_columns(pl.col("line").cast(pl.Int64), ended=(pl.row_index() < pl.len() - 1) | ended)


def read_exactly(lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the handled RPCs of `lines`, whatever their version.

    Returns:
        The records, and `tables.REJECTS` for the lines that claim to be one and cannot be read.
    """
    claims = lines.filter(pl.col("text").str.contains(HANDLED, literal=True))
    fields = pl.col("fields").struct
    read = claims.with_columns(fields=pl.col("text").str.extract_groups(_LINE)).select(
        "line",
        "text",
        "ended",
        time_us=_time_us(fields["seconds"], fields["micros"]),
        nid=fields["nid"],
        job=fields["job"].fill_null(""),
        service=fields["thread"].str.strip_chars_end("0123456789_"),
        opcode=fields["opcode"].cast(pl.Int16, strict=False),
        xid=fields["xid"],
        service_us=fields["service_us"].cast(pl.Int64, strict=False),
        total_us=fields["total_us"].cast(pl.Int64, strict=False),
        has_tail=fields["service_us"].is_not_null(),
        names_job=fields["names_job"].is_not_null(),
        has_job=fields["job"].is_not_null(),
        matches=fields["opcode"].is_not_null(),
    )
    mismatched = read.filter(~pl.col("matches")).with_columns(reason=_first_mismatch())
    matched = read.filter(pl.col("matches")).with_columns(
        reason=_first_that_holds(
            (pl.col("time_us").is_null(), "time is not in 1970 to 2106"),
            (pl.col("opcode").is_null(), "opcode is not a 16-bit number"),
            (pl.col("names_job") & ~pl.col("has_job"), "no job id"),
            (~pl.col("names_job") & pl.col("has_job"), "job id without a field name"),
            (~pl.col("has_tail") & pl.col("job").str.contains(" "), "timing tail is cut"),
            (pl.col("job").str.len_chars() > JOB_CHARACTERS, "job id is too long"),
            (~pl.col("has_tail") & ~pl.col("ended"), "the text ends in this line"),
        )
    )
    rejects = (
        pl.concat([mismatched, matched.filter(pl.col("reason").is_not_null())])
        .sort("line")
        .select("line", pl.col("text").str.slice(0, REJECT_TEXT_CHARACTERS), "reason")
    )
    return believed(matched.filter(pl.col("reason").is_null())), rejects


def _time_us(seconds: pl.Expr, micros: pl.Expr) -> pl.Expr:
    whole = seconds.cast(pl.Int64, strict=False)
    return pl.when(whole <= LATEST_S).then(whole * 1_000_000 + micros.cast(pl.Int64))


def _first_mismatch() -> pl.Expr:
    """Say why a line that does not match `_LINE` does not."""
    reasons = [reason for _, reason in _PARTS]
    return _first_that_holds(
        *(
            (~pl.col("text").str.contains(prefix), reason)
            for prefix, reason in zip(_PREFIXES, reasons, strict=True)
        )
    )


def _first_that_holds(*cases: tuple[pl.Expr, pl.Expr | str]) -> pl.Expr:
    """Return the value of the first case whose condition is true, else null."""
    values = [value if isinstance(value, pl.Expr) else pl.lit(value) for _, value in cases]
    return pl.coalesce(
        pl.when(condition).then(value) for (condition, _), value in zip(cases, values, strict=True)
    )


def believed(records: pl.DataFrame) -> pl.DataFrame:
    """Keep the columns of a record, and its times only where they can be true."""
    service_us, total_us = pl.col("service_us"), pl.col("total_us")
    timed = (service_us >= 0) & (service_us <= total_us) & (total_us <= LONGEST_US)
    return records.select(*_RECORD).with_columns(
        service_us=pl.when(timed).then(service_us), total_us=pl.when(timed).then(total_us)
    )


def windows(records: pl.DataFrame) -> pl.DataFrame:
    """Add records up into `RPC_WINDOWS`."""
    time_us, service_us, total_us = pl.col("time_us"), pl.col("service_us"), pl.col("total_us")
    queue_us = total_us - service_us
    return (
        records.group_by("nid", "job", "service", "opcode", start=time_us // WINDOW_US * WINDOW_US)
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
