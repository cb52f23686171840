"""The exact path of RPC traces: any line, of any version, by regular expressions.

Source: docs/formats.md, "RPC trace".
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from collectors.lustre import rpc_records
from collectors.lustre.rpc_records import Records
from collectors.parsed import REJECT_TEXT_CHARACTERS
from collectors.tables import REJECTS

HANDLED = "Handled RPC"

# The parts of a line in their order; one that does not match is the reason to reject the line. What
# is not used is not judged, but for what tells a record that was cut from a whole one. Each
# expression can be followed with one look at each character, which makes it several times faster.
_LINE = (
    (r"[^:]*:[^:]*:", "no debug-log header"),
    (r"[^:]*:", "header ends in the CPU"),
    (r"(?P<seconds>[0-9]+)\.(?P<micros>[0-9]{6}):", "header ends in the time"),
    (r"[^:]*:[^:]*:[^:]*:", "header ends in the thread's numbers"),
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
    # A NID stands between colons; an IPv6 address and an unknown kind of network have their own.
    (r"(?P<nid>[^:]+|[^ @]+@(?:[^ :]+|<[0-9]+:[0-9]+>)):", "no NID"),
    (r"(?P<opcode>-?[0-9]+)", "no opcode"),  # a negative one has a reason of its own
    (rf"(?::(?P<job>.*?))?(?:{_TAIL})?$", "unreadable after the opcode"),
)


def read_exactly(lines: pl.DataFrame) -> tuple[Records, pl.DataFrame]:
    """Read lines that claim to be a handled RPC.

    Args:
        lines: `line` (its number), `text` (with `HANDLED`, without NUL), and `ended`: false for one
            that ends with its source and not with a newline.

    Returns:
        The records, and `tables.REJECTS` for the lines that cannot be read.
    """
    read = (
        _extracted(_extracted(lines.lazy(), "text", _LINE), "end", _END)
        .with_columns(
            time_us=_time_us(pl.col("seconds"), pl.col("micros")),
            opcode=_opcode(pl.col("opcode")),
            job=pl.col("job").fill_null(""),
            has_job=pl.col("job").is_not_null(),
            has_tail=pl.col("service_us").is_not_null(),
            matches=pl.col("opcode").is_not_null(),
        )
        .with_columns(is_wrong=~pl.col("matches") | pl.any_horizontal(wrong for wrong, _ in _WRONG))
        .collect()
    )
    return _records(read.filter(~pl.col("is_wrong"))), _rejects(read.filter("is_wrong"))


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


# What may be wrong with a line that matches.
_WRONG = (
    (~pl.col("call").str.contains(_CALL), f'message does not begin with "{HANDLED}"'),
    (pl.col("thread").str.len_chars() > rpc_records.THREAD_CHARACTERS, "no thread name"),
    (pl.col("time_us").is_null(), "time is not in 1970 to 2106"),
    (pl.col("xid").str.len_chars() > rpc_records.XID_CHARACTERS, "no xid"),
    (pl.col("nid").str.len_chars() > rpc_records.NID_CHARACTERS, "NID is too long"),
    (pl.col("opcode").is_null(), f"opcode is not in 0 to {rpc_records.LARGEST_OPCODE}"),
    (pl.col("names_job").is_not_null() & ~pl.col("has_job"), "no job id"),
    (pl.col("names_job").is_null() & pl.col("has_job"), "job id without a field name"),
    (~pl.col("has_tail") & pl.col("job").str.contains(" "), "timing tail is cut"),
    (pl.col("job").str.len_chars() > rpc_records.JOB_CHARACTERS, "job id is too long"),
    (~pl.col("has_tail") & ~pl.col("ended"), "the text ends in this line"),
)


# A line without a header may hold colons that look like one.
_NO_HEADER = (
    ~pl.col("text").str.contains(r"^[0-9a-fA-F]+:[0-9a-fA-F]+:"),
    "no debug-log header: expected the output of lctl dk or lctl debug_file",
)


def _rejects(wrong: pl.DataFrame) -> pl.DataFrame:
    if wrong.is_empty():  # nearly always; the reasons are many expressions to compile
        return REJECTS.empty()
    reasons = (_NO_HEADER, *_mismatches("text", _LINE), *_mismatches("end", _END), *_WRONG)
    return wrong.select(
        "line",
        pl.col("text").str.slice(0, REJECT_TEXT_CHARACTERS),
        reason=pl.coalesce(pl.when(is_so).then(pl.lit(reason)) for is_so, reason in reasons),
    )


def _extracted(
    lines: pl.LazyFrame, column: str, parts: tuple[tuple[str, str], ...]
) -> pl.LazyFrame:
    """Add the named groups of the parts, in a row, as columns; null where they do not match."""
    whole = "^" + "".join(part for part, _ in parts)
    return lines.with_columns(pl.col(column).str.extract_groups(whole).alias("group")).unnest(
        "group"
    )


def _opcode(digits: pl.Expr) -> pl.Expr:
    """Return an opcode; null for one that no RPC can have."""
    number = digits.cast(pl.Int16, strict=False)
    return pl.when(number >= 0).then(number)


def _time_us(seconds: pl.Expr, micros: pl.Expr) -> pl.Expr:
    whole = seconds.cast(pl.Int64, strict=False)
    return pl.when(whole <= rpc_records.LATEST_S).then(whole * 1_000_000 + micros.cast(pl.Int64))


def _mismatches(column: str, parts: tuple[tuple[str, str], ...]) -> Iterator[tuple[pl.Expr, str]]:
    prefix = "^"
    for part, reason in parts:
        prefix += part
        yield ~pl.col(column).str.contains(prefix), reason
