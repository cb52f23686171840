"""Attribution of RPCs by second: to the principals of their senders in the 10 s windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from psycopg import sql

from collectors.tables import UTC_US
from ioportal.ingest.attribution import rpcs
from ioportal.telemetry.copy import copy_frame, read_frame
from ioportal.telemetry.models import AttributedSecond, Principal, RpcSecond

if TYPE_CHECKING:
    from datetime import datetime

_ROWS = sql.SQL("""
SELECT start, second, service_id, opcode, source_job_id, nid_id,
    sum(count)::bigint, sum(total_us_sum)::bigint, sum(service_us_sum)::bigint, max(nids)
FROM telemetry_rpcsecond
WHERE server_id = %(server)s AND start >= %(start)s AND start < %(end)s
GROUP BY 1, 2, 3, 4, 5, 6
""")
COLUMNS = {
    "start": UTC_US,
    "second": UTC_US,
    **dict.fromkeys(
        (
            "service_id",
            "opcode",
            "source_job_id",
            "nid_id",
            "count",
            "total_us",
            "service_us",
            "nids",
        ),
        pl.Int64(),
    ),
}
_OPERATION = ("start", "service_id", "opcode")
_SENDER = ("source_job_id", "nid_id")
_PRINCIPAL = ("kind", "principal_id")


def attribute_server(server_id: int, start: datetime, end: datetime) -> None:
    """Derive all attributed seconds of a server in the windows of [start, end)."""
    values = {"server": server_id, "start": start, "end": end}
    AttributedSecond.objects.between(start, end).filter(server_id=server_id).delete()
    rows = read_frame(_ROWS, COLUMNS, values)
    if rows.is_empty():
        return
    senders = rpcs.senders(server_id, rows["start"].unique().to_list())
    attributed = by_principal(rows, senders).with_columns(server_id=pl.lit(server_id))
    copy_frame(AttributedSecond, attributed)


def attribute_all(start: datetime, end: datetime) -> None:
    """Derive the attributed seconds of all servers in the windows of [start, end)."""
    raw = RpcSecond.objects.between(start, end)
    for server_id in raw.values_list("server_id", flat=True).distinct():
        attribute_server(server_id, start, end)


def by_principal(rows: pl.DataFrame, senders: pl.DataFrame) -> pl.DataFrame:
    """Divide the requests and clients of senders among their principals.

    Args:
        rows: requests of senders by second: columns of `COLUMNS`.
        senders: the principals of each sender by window: columns of `rpcs.SENDERS`. A sender's
            requests are divided by their timed requests, its clients by their NIDs. Requests of
            other senders (both ids are 0) are divided among the senders that `rows` does not name.
    """
    is_named = (pl.col("source_job_id") != 0) | (pl.col("nid_id") != 0)
    named = rows.filter(is_named).group_by(*_OPERATION, *_SENDER).agg(pl.sum("count"))
    left = 1 - pl.col("count").fill_null(0) / pl.sum("timed").over(*_OPERATION, *_SENDER)
    unnamed = (
        senders.join(named, on=(*_OPERATION, *_SENDER), how="left")
        .with_columns(left=left.clip(0), **dict.fromkeys(_SENDER, pl.lit(0, pl.Int64())))
        .group_by(*_OPERATION, *_SENDER, *_PRINCIPAL)
        .agg((pl.col("timed", "nids") * pl.col("left")).sum())
        .filter(pl.col("timed") > 0)
    )
    # Divided by their sum.
    of_sender = pl.concat([senders, unnamed.select(senders.columns)], how="vertical_relaxed")
    shares = of_sender.with_columns(
        pl.col("timed", "nids") / pl.sum("timed", "nids").over(*_OPERATION, *_SENDER)
    ).rename({"timed": "share", "nids": "client_share"})
    divided = rows.join(shares, on=(*_OPERATION, *_SENDER), how="left").with_columns(
        pl.col("share", "client_share").fill_null(1),
        pl.col("kind").fill_null(Principal.UNATTRIBUTED.value),
        pl.col("principal_id").fill_null(0),
    )
    of_second = ("start", "second", *_PRINCIPAL)
    clients = (
        divided.group_by(*of_second, *_SENDER)
        .agg(clients=(pl.col("nids") * pl.col("client_share")).max())
        .group_by(of_second)
        .agg(pl.sum("clients"))
    )
    return (
        divided.group_by(*of_second, "service_id", "opcode")
        .agg(
            requests=(pl.col("count") * pl.col("share")).sum(),
            total_us=(pl.col("total_us") * pl.col("share")).sum(),
            service_us=(pl.col("service_us") * pl.col("share")).sum(),
        )
        .join(clients, on=of_second)
        .sort(of_second)
    )
