"""The demand of principals on a server by second, in slow episodes of its trace."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
from psycopg import sql

from collectors.lustre.rpc_seconds import SLICE_S, WAIT_S
from collectors.tables import UTC_US
from ioportal.telemetry.copy import read_frame

if TYPE_CHECKING:
    from datetime import datetime

# A request waits for at most `WAIT_S`, so the windows of its record start within this time.
_BEFORE, _AFTER = timedelta(seconds=SLICE_S), timedelta(seconds=WAIT_S + SLICE_S)
_SECONDS = sql.SQL("""
SELECT second, server_id, service_id, opcode, kind, principal_id,
    sum(requests), sum(total_us), max(clients)
FROM telemetry_attributedsecond
WHERE server_id = %(server)s AND start >= %(first)s AND start < %(last)s
    AND second >= %(start)s AND second < %(end)s
GROUP BY 1, 2, 3, 4, 5, 6
""")
_COLUMNS = {
    "start": UTC_US,
    **dict.fromkeys(("server", "service", "opcode", "kind", "key"), pl.Int64()),
    **dict.fromkeys(("requests", "total_us", "clients"), pl.Float64()),
}
SECONDS = {
    "start": UTC_US,  # of the second in which the requests arrived
    **dict.fromkeys(("server", "service", "opcode"), pl.Int64()),
    "principal": pl.String(),  # as in `principal_windows`
    "requests": pl.Float64(),
    "total_us": pl.Float64(),
    "clients": pl.Float64(),  # of the principal in this second
}


def seconds(server_id: int, start: datetime, end: datetime) -> pl.DataFrame:
    """Return the requests that arrived at a server in [start, end): columns of `SECONDS`.

    Seconds without a slow episode have no rows: their demand is unknown.
    """
    values: dict[str, Any] = {"server": server_id, "start": start, "end": end}
    rows = read_frame(_SECONDS, _COLUMNS, values | {"first": start - _BEFORE, "last": end + _AFTER})
    return (
        rows.with_columns(principal=pl.concat_str("kind", pl.lit(":"), "key"))
        .select(*SECONDS)
        .sort("start", "principal", "service", "opcode")
    )
