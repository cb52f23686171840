"""Lustre's request history: sender, opcode and arrival of requests, without their outcome.

One line per request as long as its buffer exists, service by service:

    SEQ:SELF:12345-NID:xXID:LENGTH:PHASE:ARRIVAL:DIFFs(DEADLINE) opc OPCODE

DIFF is not a latency: it is the reply time in whole seconds (or 0 before the reply) - ARRIVAL.

Source: docs/formats.md, "req_history"; ptlrpc_lprocfs_svc_req_history_show() in
lustre/ptlrpc/lproc_ptlrpc.c, 1.8 to 2.17.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from collectors.format import Format
from collectors.lustre.counters import assembled
from collectors.lustre.params import PARAMETER, numbered_lines, parameter_of
from collectors.lustre.rpc_repeats import RepeatedRecords
from collectors.lustre.rpc_trace import WINDOW_US
from collectors.lustre.service_stats import SERVICES, THREADS
from collectors.parsed import Parsed
from collectors.source import Chunk, Source
from collectors.tables import REQUEST_WINDOWS, UTC_US

NOT_A_REQUEST = "not a req_history line"
OUT_OF_RANGE = "time or opcode out of range"

_PARAMETER = parameter_of(SERVICES, "req_history")
_REQUEST = (
    r"^(?<seq>[0-9]{1,20}):\S*?:U?[0-9]+-(?<nid>\S+?@\w+):x(?<xid>[0-9]{1,20}):[0-9]+:[A-Za-z?]+:"
    r"(?<seconds>[0-9]{1,12})(?:\.(?<fraction>[0-9]{6}))?:-?[0-9.]+s\([+-]?[0-9.]+s\)"
    r"(?:\s+(?:opc (?<opcode>-?[0-9]{1,9})|<not swabbed>))?\s*$"
)
_LCTL_ERROR = "error: get_param"
_OPCODES = 2**15 - 1
_TIMES_US = (10**9 * 10**6, 2**32 * 10**6)  # 2001 to 2106: seconds are 32 bits wide


@dataclass(frozen=True)
class _State:
    """Parser state between two chunks."""

    service: str | None  # of the next line; None: it belongs to another parameter
    framed: bool = False  # the source names its parameters


def parse(
    source: Source, service: str = "", repeats: RepeatedRecords | None = None
) -> Iterator[Parsed]:
    """Parse the request history of a server and aggregate it into windows.

    Args:
        source: with or without the framing of `lctl get_param`.
        service: of a source without parameter names.
        repeats: the requests of this server that have been read already.

    Yields:
        Parts with a frame of `tables.REQUEST_WINDOWS`. Repeated requests (successive polls
        overlap) are irrelevant, and so are requests without an opcode (not unpacked yet).

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "req_history".
    """
    repeats = repeats or RepeatedRecords()
    state = _State(THREADS.get(service, service))
    for chunk in source.chunks():
        part, state = _read(chunk, state, repeats)
        yield part


def _read(chunk: Chunk, state: _State, repeats: RepeatedRecords) -> tuple[Parsed, _State]:
    lines = numbered_lines(chunk)
    text = pl.col("text")
    is_name = text.str.contains(PARAMETER)
    named = lines.select(
        "line",
        # A short value follows its name on the same line.
        pl.when(is_name).then(text.str.replace(PARAMETER, "")).otherwise(text).alias("text"),
        is_name=is_name,
        framed=is_name.cum_max() | pl.lit(state.framed),
        service=pl.when(is_name).then(text.str.extract(_PARAMETER, 1)).replace(THREADS),
    )
    inside = named.with_columns(mark=pl.when("is_name").then("line").forward_fill()).with_columns(
        service=pl.when(pl.col("mark").is_null())
        .then(pl.lit(state.service, pl.String))
        .otherwise(pl.col("service").first().over("mark"))
    )
    last = inside.select("service", "framed").row(-1) if inside.height else (state.service, False)
    service_lines = inside.filter(pl.col("service").is_not_null()).with_columns(
        pl.col("text").str.extract_groups(_REQUEST).alias("fields")
    )
    blank = (pl.col("text").str.strip_chars() == "") | pl.col("text").str.starts_with(_LCTL_ERROR)
    claims = service_lines.filter(~blank).unnest("fields")
    is_request = pl.col("seq").is_not_null()
    requests = _requests(claims.filter(is_request & pl.col("opcode").is_not_null()))
    good = requests.filter(
        pl.col("opcode").is_between(0, _OPCODES) & pl.col("time_us").is_between(*_TIMES_US)
    )
    new = repeats.drop_from(good)
    part = assembled(
        _windows(new),
        lines=lines.height,
        accepted=new.height,
        rejected=[
            claims.filter(~is_request).with_columns(reason=pl.lit(NOT_A_REQUEST)),
            requests.join(good, on="line", how="anti").with_columns(reason=pl.lit(OUT_OF_RANGE)),
        ],
    )
    return part, _State(*last)


def _requests(claims: pl.DataFrame) -> pl.DataFrame:
    """Return requests with the columns of `RepeatedRecords`, including a fingerprint."""
    return claims.select(
        "line",
        "text",
        "service",
        "nid",
        opcode=pl.col("opcode").cast(pl.Int64),
        time_us=pl.col("seconds").cast(pl.Int64) * 1_000_000
        + pl.col("fraction").fill_null("0").cast(pl.Int64),
        fingerprint=pl.struct("service", "seq", "nid", "xid").hash(),
    )


def _windows(requests: pl.DataFrame) -> pl.DataFrame:
    return (
        requests.with_columns(
            start=pl.col("time_us") // WINDOW_US * WINDOW_US, opcode=pl.col("opcode").cast(pl.Int16)
        )
        .group_by("start", "nid", "service", "opcode")
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            first=pl.col("time_us").min().cast(UTC_US),
            last=pl.col("time_us").max().cast(UTC_US),
        )
        .with_columns(pl.col("start").cast(UTC_US))
        .select(*REQUEST_WINDOWS.columns)
        .sort("start", "nid", "service", "opcode")
    )


REQ_HISTORY = Format(
    name="req_history",
    label="Lustre request history",
    table=REQUEST_WINDOWS,
    parse=lambda source, origin: parse(source, origin.service, origin.repeats),
    scopes=("server",),
    options=("server", "filesystem", "service"),
)
