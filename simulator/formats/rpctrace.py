"""Lines of a Lustre debug log with +rpctrace, written in whole columns.

A frame of records has the columns

    time_us       time of the record, epoch microseconds
    handled       true: "Handled RPC", at the end; false: "Handling RPC", at the start
    cpu, first    CPU of the writer; whether it was the first record of an emptied buffer
    thread        index into `Names.threads`
    client        index into `Names.nids` and `Names.uuids`
    ref, pid, xid, opcode, trans, rc, job
    service_us, total_us   printed on "Handled" records only
"""

from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO

import polars as pl


class Version(Enum):
    """Releases with different lines."""

    V2_8 = "2.8"
    V2_15 = "2.15"


@dataclass(frozen=True)
class Names:
    """Texts for the indices in records."""

    nids: pl.Series
    uuids: pl.Series
    threads: pl.Series
    thread_pids: pl.Series


_LABELS = {
    Version.V2_8: " RPC pname:cluuid+ref:pid:xid:nid:opc ",
    Version.V2_15: " pname:cluuid+ref:pid:xid:nid:opc:job ",
}
_SPELLING = {Version.V2_8: " Request procesed in ", Version.V2_15: " Request processed in "}
_FUNCTION = "ptlrpc_server_handle_request()) "
_LINE_OF = {Version.V2_8: ("2070", "2120"), Version.V2_15: ("2225", "2275")}


def lines(records: pl.DataFrame, names: Names, version: Version = Version.V2_8) -> pl.Series:
    """Return one line per record, in the order given."""
    column = pl.col
    handled = column("handled")
    handling_line, handled_line = _LINE_OF[version]
    request = (
        pl.concat_str(
            pl.lit(" RPC req@00000000"),
            (column("xid") * 773 % 89_999_999 + 10_000_000).cast(pl.String),
        )
        if version is Version.V2_15
        else pl.lit("")
    )
    job = pl.concat_str(pl.lit(":"), column("job")) if version is Version.V2_15 else pl.lit("")
    tail = pl.concat_str(
        pl.lit(_SPELLING[version]),
        column("service_us"),
        pl.lit("us ("),
        column("total_us"),
        pl.lit("us total) trans "),
        column("trans"),
        pl.lit(" rc "),
        column("rc"),
        pl.lit("/"),
        column("rc"),
    )
    line = pl.concat_str(
        pl.lit("00000100:00100000:"),
        column("cpu"),
        pl.when("first").then(pl.lit(".0F:")).otherwise(pl.lit(".0:")),
        column("time_us") // 1_000_000,
        pl.lit("."),
        (column("time_us") % 1_000_000).cast(pl.String).str.zfill(6),
        pl.lit(":0:"),
        pl.lit(names.thread_pids).gather(column("thread")),
        pl.lit(":0:(service.c:"),
        pl.when(handled).then(pl.lit(handled_line)).otherwise(pl.lit(handling_line)),
        pl.lit(":" + _FUNCTION),
        pl.when(handled).then(pl.lit("Handled")).otherwise(pl.lit("Handling")),
        request,
        pl.lit(_LABELS[version]),
        pl.lit(names.threads).gather(column("thread")),
        pl.lit(":"),
        pl.lit(names.uuids).gather(column("client")),
        pl.lit("+"),
        column("ref"),
        pl.lit(":"),
        column("pid"),
        pl.lit(":x"),
        column("xid"),
        pl.lit(":12345-"),
        pl.lit(names.nids).gather(column("client")),
        pl.lit(":"),
        column("opcode"),
        job,
        pl.when(handled).then(tail).otherwise(pl.lit("")),
    )
    return records.select(line=line)["line"]


def write(texts: pl.Series, file: BinaryIO) -> None:
    """Write lines, each with its newline."""
    texts.to_frame().write_csv(file, include_header=False, quote_style="never")
