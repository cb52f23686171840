"""The fast path of RPC traces: plain lines, whose fields fall into columns when split at ':'.

A plain line has the fields of its version, a timing tail, and no other ':' (no IPv6 address, no
job id with a ':'). What is taken from it is what `rpc_exact` reads in it; a line that is odd in any
way is left to that.

Source: docs/formats.md, "RPC trace".
"""

import polars as pl

from collectors.lustre import rpc_records

# The fields that matter, by their position. `beyond` is there when a line goes on.
_WITHOUT_JOB = {
    3: "time",  # 1441096201.004512
    9: "call",  # ptlrpc_server_handle_request()) Handled RPC pname
    14: "thread",  # opc mdt00_003
    17: "xid",  # x1510963712345678
    18: "nid",  # 12345-4217@gni
    19: "tail",  # 101 Request procesed in 143us (171us total) trans 0 rc 301/301
    20: "beyond",
}
_WITH_JOB = {
    3: "time",
    9: "call",  # ptlrpc_server_handle_request()) Handled RPC req@00000000a1b2c3d4 pname
    14: "label",  # opc
    15: "thread",  # job mdt00_003
    18: "xid",
    19: "nid",
    20: "opcode",
    21: "tail",  # 1234567 Request processed in 61us (88us total) trans 0 rc 0/0
    22: "beyond",
}
_TAIL = r"^([^ ]*) Request process?ed in ([0-9]+)us \(([0-9]+)us total\) trans [^/]*/-?[0-9]+$"
_TIME_BYTES = len("1441096201.004512")
_LABEL_BYTES = len("opc ")


def read_plain(text: bytes) -> pl.DataFrame:
    """Read the plain lines of a text, which is UTF-8.

    Returns:
        One row per line: `is_plain`, and where that is true the columns of a record, but for `line`
        (`rpc_records.COLUMNS`); elsewhere they mean nothing.
    """
    has_job = text.startswith(b"req@", text.find(b"Handled RPC ") + len(b"Handled RPC "))
    names = _WITH_JOB if has_job else _WITHOUT_JOB
    time, call, thread = pl.col("time"), pl.col("call"), pl.col("thread")
    before, service_us, total_us = (pl.col("tail").struct.field(n) for n in ("1", "2", "3"))
    if has_job:
        job, opcode = before, pl.col("opcode")
        fits = (
            call.str.contains("()) Handled RPC req@", literal=True)
            & call.str.ends_with(" pname")
            & (pl.col("label") == "opc")
            & thread.str.starts_with("job ")
            & (job.str.len_bytes() <= rpc_records.JOB_CHARACTERS)
        )
    else:
        job, opcode = pl.lit(""), before
        fits = call.str.ends_with("()) Handled RPC pname") & thread.str.starts_with("opc ")
    is_plain = pl.all_horizontal(
        fits,
        time.str.len_bytes() == _TIME_BYTES,
        time.str.slice(10, 1) == ".",
        time >= pl.lit("0"),  # cast() would take a sign
        time < pl.lit(str(rpc_records.LATEST_S + 1)),
        ~opcode.str.starts_with("+"),
        thread.str.len_bytes() > _LABEL_BYTES,
        thread.str.len_bytes() <= _LABEL_BYTES + rpc_records.THREAD_CHARACTERS,
        pl.col("xid").str.starts_with("x"),
        pl.col("nid").str.starts_with("12345-"),
        pl.col("nid").str.len_bytes() > len("12345-"),
        pl.col("beyond").is_null(),
    )
    record = {
        "time_us": time.str.replace(".", "", literal=True).cast(pl.Int64, strict=False),
        "nid": pl.col("nid").str.strip_prefix("12345-"),
        "job": job,
        "service": rpc_records.service_of(thread.str.slice(_LABEL_BYTES)),
        "opcode": opcode.cast(pl.Int16, strict=False),
        "xid": pl.col("xid"),
        "service_us": service_us.cast(pl.Int64, strict=False),
        "total_us": total_us.cast(pl.Int64, strict=False),
    }
    fields = pl.scan_csv(
        text,
        separator=":",
        has_header=False,
        schema={names.get(n, f"unused {n}"): pl.String() for n in range(max(names) + 1)},
        quote_char=None,
        truncate_ragged_lines=True,
        missing_columns="insert",
        extra_columns="ignore",
    )
    return (
        fields.with_columns(pl.col("tail").str.extract_groups(_TAIL))
        .select(**record, is_plain=is_plain)
        .select(
            *(name for name in record if name != "xid"),
            fingerprint=rpc_records.fingerprint(),
            is_plain=pl.all_horizontal("is_plain", pl.col(*record).is_not_null()).fill_null(
                value=False
            ),
        )
        .collect(engine="streaming")
    )
