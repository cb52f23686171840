"""The exact path for RPC traces: regular expressions for any line of any version.

Source: docs/formats.md, "RPC trace".
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from collectors.lustre import rpc_records
from collectors.lustre.rpc_records import EARLIEST_S, LATEST_S, Records
from collectors.parsed import REJECT_TEXT_CHARACTERS
from collectors.tables import REJECTS

HANDLED = "Handled RPC"

# The parts of a line in order, each with the reason for rejection if it is the first mismatch.
# Unused fields are not validated unless they show that a record is truncated. The expressions need
# no backtracking, which makes them several times faster.
_LINE = (
    (r"[^:]*:[^:]*:", "no debug-log header"),
    (r"[^:]*:", "header ends in the CPU"),
    (r"(?P<seconds>[0-9]+)\.(?P<micros>[0-9]{6}):", "header ends in the time"),
    (r"[^:]*:[^:]*:[^:]*:", "header ends in the thread numbers"),
    (r"[^:]*:[^:]*:(?P<call>[^:]*):", "no field names"),
    (r"cluuid\+ref:pid:xid:nid:opc(?P<names_job>:job)? ", "no field names"),
    (r"(?P<thread>[^:]+):", "no thread name"),
    (r"[^:]*:", "no client"),
    (r"[^:]*:", "no client pid"),
    (r"x(?P<xid>[^:]*):", "no xid"),
    (r"(?:U?[0-9]+|LNET_PID_ANY)-(?P<end>.*)$", "no NID"),
)
_CALL = rf"\(\)\) {HANDLED} (?:req@.* )?pname$"
_TAIL = (
    r" Request process?ed in (?P<service_us>-?[0-9]+)us \((?P<total_us>-?[0-9]+)us total\)"
    r" trans .*/.*"
)
_END = (
    # Between colons; IPv6 addresses and unknown network types contain colons themselves.
    (r"(?P<nid>[^:]+|[^ @]+@(?:[^ :]+|<[0-9]+:[0-9]+>)):", "no NID"),
    (r"(?P<opcode>-?[0-9]+)", "no opcode"),  # negative opcodes have their own reason
    (rf"(?::(?P<job>.*?))?(?:{_TAIL})?$", "unreadable after the opcode"),
)


def read_exactly(lines: pl.DataFrame, latest_s: int = LATEST_S) -> tuple[Records, pl.DataFrame]:
    """Parse lines that claim to be a handled RPC.

    Args:
        lines: `line` (number), `text` (contains `HANDLED`, no NUL) and `ended` (false for the last
            line of a source without a newline).
        latest_s: the latest time, in seconds since 1970.

    Returns:
        The records, and a frame of `tables.REJECTS`.
    """
    read = (
        _extracted(_extracted(lines.lazy(), "text", _LINE), "end", _END)
        .with_columns(
            time_us=_time_us(pl.col("seconds"), pl.col("micros"), latest_s),
            opcode=_opcode(pl.col("opcode")),
            job=pl.col("job").fill_null(""),
            has_job=pl.col("job").is_not_null(),
            has_tail=pl.col("service_us").is_not_null(),
            matches=pl.col("opcode").is_not_null(),
        )
        .with_columns(
            invalid=~pl.col("matches") | pl.any_horizontal(is_invalid for is_invalid, _ in _CHECKS)
        )
        .collect()
    )
    return _records(read.filter(~pl.col("invalid"))), _rejects(read.filter("invalid"))


def _records(read: pl.DataFrame) -> Records:
    nid = rpc_records.hashed(read["nid"])
    job = rpc_records.hashed(read["job"])
    services = read.select(service=rpc_records.service_of(pl.col("thread"))).to_series()
    service = rpc_records.hashed(services)
    xid = rpc_records.hashed(read["xid"])
    opcode = read["opcode"].cast(pl.Int64).to_numpy().view(np.uint64)
    time_us = read["time_us"].to_numpy().view(np.uint64)
    records = read.with_columns(
        pl.col("service_us", "total_us").cast(pl.Int64, strict=False),
        services,
        pl.Series("group", rpc_records.group_of(nid, job, service, opcode)),
        pl.Series("fingerprint", rpc_records.fingerprint_of(nid, xid, opcode, time_us)),
    )
    return Records(
        records.select(*rpc_records.NUMBERS), records.select(*rpc_records.NAMES).unique("group")
    )


# Checks of a line that matches: condition and reason.
_CHECKS = (
    (~pl.col("call").str.contains(_CALL), f'message does not begin with "{HANDLED}"'),
    (pl.col("thread").str.len_chars() > rpc_records.THREAD_CHARACTERS, "no thread name"),
    (pl.col("time_us").is_null(), "time before 2001 or in the future"),
    (pl.col("xid").str.len_chars() > rpc_records.XID_CHARACTERS, "no xid"),
    (pl.col("nid").str.len_chars() > rpc_records.NID_CHARACTERS, "NID too long"),
    (pl.col("opcode").is_null(), f"opcode out of range (0 to {rpc_records.LARGEST_OPCODE})"),
    (pl.col("names_job").is_not_null() & ~pl.col("has_job"), "no job id"),
    (pl.col("names_job").is_null() & pl.col("has_job"), "job id without a field name"),
    (~pl.col("has_tail") & pl.col("job").str.contains(" "), "timing tail truncated"),
    (pl.col("job").str.len_chars() > rpc_records.JOB_CHARACTERS, "job id too long"),
    (~pl.col("has_tail") & ~pl.col("ended"), "file ends in this line"),
)


# Colons of a line without a header may look like one.
_NO_HEADER = (
    ~pl.col("text").str.contains(r"^[0-9a-fA-F]+:[0-9a-fA-F]+:"),
    "no debug-log header: expected the output of lctl dk or lctl debug_file",
)


def _rejects(invalid: pl.DataFrame) -> pl.DataFrame:
    if invalid.is_empty():  # the common case: saves compiling many expressions
        return REJECTS.empty()
    reasons = (_NO_HEADER, *_mismatches("text", _LINE), *_mismatches("end", _END), *_CHECKS)
    return invalid.select(
        "line",
        pl.col("text").str.slice(0, REJECT_TEXT_CHARACTERS),
        reason=pl.coalesce(pl.when(applies).then(pl.lit(reason)) for applies, reason in reasons),
    )


def _extracted(
    lines: pl.LazyFrame, column: str, parts: tuple[tuple[str, str], ...]
) -> pl.LazyFrame:
    """Add the named groups of the concatenated parts as columns; null without a match."""
    whole = "^" + "".join(part for part, _ in parts)
    return lines.with_columns(pl.col(column).str.extract_groups(whole).alias("group")).unnest(
        "group"
    )


def _opcode(digits: pl.Expr) -> pl.Expr:
    """Return an opcode; null if it is out of range."""
    number = digits.cast(pl.Int16, strict=False)
    return pl.when(number >= 0).then(number)


def _time_us(seconds: pl.Expr, micros: pl.Expr, latest_s: int) -> pl.Expr:
    whole = seconds.cast(pl.Int64, strict=False)
    is_plausible = whole.is_between(EARLIEST_S, latest_s)
    return pl.when(is_plausible).then(whole * 1_000_000 + micros.cast(pl.Int64))


def _mismatches(column: str, parts: tuple[tuple[str, str], ...]) -> Iterator[tuple[pl.Expr, str]]:
    prefix = "^"
    for part, reason in parts:
        prefix += part
        yield ~pl.col(column).str.contains(prefix), reason
