"""The demand of principals on a server by second, in slow episodes of its trace."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
from psycopg import sql

from collectors.lustre import opcodes
from collectors.lustre.rpc_seconds import SLICE_S, WAIT_S
from collectors.tables import UTC_US
from ioportal.load import baselines
from ioportal.load.analysis.replay.demand import REQUESTS, Demand
from ioportal.load.analysis.replay.server import plateau
from ioportal.load.analysis.waiting import work_us
from ioportal.load.impact import principal_windows
from ioportal.telemetry.copy import read_frame

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from ioportal.load.analysis.replay.server import Plateau

SECOND = timedelta(seconds=1)
LEARNED = timedelta(days=1)  # in which the capacity of a server is learned

# A request counts as waiting for at most `WAIT_S`: its window starts by then before its record.
_BEFORE, _AFTER = timedelta(seconds=SLICE_S), timedelta(seconds=WAIT_S + SLICE_S)
_SECONDS = sql.SQL("""
SELECT second, server_id, service_id, opcode, {kind}, {key},
    sum(requests), sum(total_us), sum(service_us), max(clients)
FROM telemetry_attributedsecond
WHERE server_id = %(server)s AND start >= %(first)s AND start < %(last)s
    AND second >= %(start)s AND second < %(end)s
GROUP BY 1, 2, 3, 4, 5, 6
""")
_COLUMNS = {
    "start": UTC_US,
    **dict.fromkeys(("server", "service", "opcode", "kind", "key"), pl.Int64()),
    **dict.fromkeys(("requests", "total_us", "service_us", "clients"), pl.Float64()),
}
_BY_PRINCIPAL = {"kind": sql.Identifier("kind"), "key": sql.Identifier("principal_id")}
_OF_ALL = {"kind": sql.Literal(0), "key": sql.Literal(0)}
SECONDS = {
    "start": UTC_US,  # of the second in which the requests arrived
    **dict.fromkeys(("server", "service", "opcode"), pl.Int64()),
    "principal": pl.String(),  # as in `principal_windows`
    "requests": pl.Float64(),
    "total_us": pl.Float64(),
    "service_us": pl.Float64(),
    "clients": pl.Float64(),  # of the principal in this second
}


def seconds(server_id: int, start: datetime, end: datetime) -> pl.DataFrame:
    """Return the requests that arrived at a server in [start, end): columns of `SECONDS`.

    Seconds without a slow episode have no rows: their demand is unknown.
    """
    return _read(_BY_PRINCIPAL, server_id, start, end)


def capacity(server_id: int, time: datetime) -> Plateau | None:
    """Return the work that a server does in a second; None: its slow seconds do not show it.

    Work is counted in seconds of an idle server. The capacity is learned from the period `LEARNED`
    before the time.
    """
    (found,) = capacities(server_id, [(time, baselines.at_time([server_id], time))])
    return found


def capacities(
    server_id: int, asked: Sequence[tuple[datetime, pl.DataFrame]]
) -> list[Plateau | None]:
    """Return the capacity of a server as it is known at each of some times; see `capacity`.

    Args:
        server_id: a metadata server.
        asked: times in order, at least one, and the baselines of the server: columns of
            `load.analysis.waiting.BASELINES`.
    """
    rows = _read(_OF_ALL, server_id, asked[0][0] - LEARNED, asked[-1][0])
    found: list[Plateau | None] = []
    of_all = last = None
    for time, usual in asked:
        if of_all is None or last is None or not usual.equals(last):
            of_all, last = requests(rows, usual, users=set()), usual
        of_day = of_all.filter(pl.col("start").is_between(time - LEARNED, time, closed="left"))
        # Without baselines, the work of requests is unknown.
        is_known = not (of_day.is_empty() or usual.filter(pl.col("baseline_us") > 0).is_empty())
        found.append(plateau(Demand.of(of_day, SECOND)) if is_known else None)
    return found


def requests(rows: pl.DataFrame, usual: pl.DataFrame, users: Collection[str]) -> pl.DataFrame:
    """Return the demand for a replay: columns of `load.analysis.replay.demand.REQUESTS`.

    Args:
        rows: columns of `SECONDS`.
        usual: columns of `load.analysis.waiting.BASELINES`.
        users: principals that are jobs of users. No user waits for pings.
    """
    is_counted = pl.col("principal").is_in(list(users)) & (pl.col("opcode") != opcodes.OBD_PING)
    return (
        with_work(rows.with_columns(counted=pl.col("requests") * is_counted), usual)
        .group_by("start", sender="principal")
        .agg(
            pl.sum("requests", "work_us", "service_us"),
            took_us=pl.min_horizontal("total_us", pl.col("requests") * WAIT_S * 1e6).sum(),
            counted=pl.sum("counted") / pl.sum("requests"),
            clients=pl.max("clients"),
        )
        .select(*REQUESTS)
    )


def with_work(rows: pl.DataFrame, usual: pl.DataFrame) -> pl.DataFrame:
    """Add the column work_us: see `load.analysis.waiting.work_us`.

    Args:
        rows: columns start, server, service, opcode, requests and service_us.
        usual: columns of `load.analysis.waiting.BASELINES`.
    """
    known = usual.filter(pl.col("baseline_us") > 0)
    return rows.join(known, on=["server", "service", "opcode"], how="left").with_columns(
        work_us=work_us("requests", "service_us")
    )


def _read(
    columns: Mapping[str, sql.Composable], server_id: int, start: datetime, end: datetime
) -> pl.DataFrame:
    values: dict[str, Any] = {"server": server_id, "start": start, "end": end}
    values |= {"first": start - _BEFORE, "last": end + _AFTER}
    return (
        read_frame(_SECONDS.format(**columns), _COLUMNS, values)
        .with_columns(principal_windows.NAME)
        .select(*SECONDS)
        .sort("start", "principal", "service", "opcode")
    )
