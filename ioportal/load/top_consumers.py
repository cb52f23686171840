"""Top consumers of metadata servers: sums by principal, and by bin for the selected principals.

The ranking uses the coarsest sums; finer rows are read for selected principals only. The rest is
the difference to the totals.

A principal is a pair (kind, id): the key of a job, the source job id of a process, or the NID of a
host. Unattributed kinds have id 0.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from django.db import connection
from psycopg import sql

from collectors.tables import UTC_US
from ioportal.jobs.analysis.anonymity import coarse, hidden_steps
from ioportal.telemetry import buckets, levels
from ioportal.telemetry.copy import read_frame
from ioportal.telemetry.models import IoWindow, Principal
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime, timedelta

    from ioportal.telemetry.piecewise import Piece

PrincipalKey = tuple[int, int]  # kind and id

_PRINCIPAL_ID = sql.SQL("""
CASE kind WHEN %(JOB)s THEN job_id WHEN %(PROCESS)s THEN source_job_id {} ELSE 0 END
""")
_RPC_PRINCIPAL = _PRINCIPAL_ID.format(sql.SQL("WHEN %(HOST)s THEN nid_id"))
_IO_PRINCIPAL = _PRINCIPAL_ID.format(sql.SQL(""))  # counters carry no NID

_RPC_PIECE = sql.SQL("""
SELECT server_id AS source, start, start AS "end", {columns}
    count AS amount, timed, service_us_sum, total_us_sum
FROM {table}
WHERE start >= {start} AND start < {end} AND server_id = ANY(%(sources)s) AND {principals}
""")
_IO_PIECE = sql.SQL("""
SELECT target_id AS source, start, "end", {columns} {operations} AS amount
FROM {table} w
WHERE {time} >= {start} AND {time} < {end} AND target_id = ANY(%(sources)s)
    AND basis <> %(TOTAL)s AND {principals}
""")
_ALL_PRINCIPALS = sql.SQL("true")
_NO_COLUMNS = sql.SQL("")
_IO = (*levels.IO_LEVELS, levels.IO_TOTALS)
_PRINCIPAL_COLUMNS = sql.SQL("kind, {principal_id} AS principal_id,")

_SUMS = sql.SQL("""
SELECT kind, principal_id, sum({amount})::float8, coalesce(sum({latest}), 0)::float8
FROM ({rows}) w
WHERE {inside}
GROUP BY kind, principal_id
""")
# An interval that exceeds the range counts in proportion: its rate is constant.
_PART_INSIDE = sql.SQL("""
amount * extract(epoch FROM least("end", %(until)s) - greatest(start, %(since)s))
    / extract(epoch FROM "end" - start)
""")
_INSIDE = sql.SQL('"end" > start AND "end" > %(since)s AND start < %(until)s')
_LATEST_RPCS = sql.SQL(
    "amount) FILTER (WHERE start >= %(latest_from)s AND start < %(latest_until)s"
)
# The rate in the interval of each target that ends at its latest poll.
_LATEST_OPERATIONS = sql.SQL("""
amount / extract(epoch FROM "end" - start)) FILTER (
    WHERE (%(reached)s::timestamptz[])[array_position(%(sources)s::integer[], source)] > start
    AND (%(reached)s::timestamptz[])[array_position(%(sources)s::integer[], source)] <= "end"
""")

_LAYER = sql.SQL("""
LEFT JOIN unnest(%(kinds)s::smallint[], %(ids)s::bigint[], %(layers)s::smallint[])
    AS p (kind, principal_id, layer) ON p.kind = w.kind AND p.principal_id = w.principal_id
""")
# A filter for selected principals that uses the indexes; `_LAYER` is exact. "<> 0" matches the
# condition of the partial indexes.
_BY_ID = {
    Principal.JOB: sql.SQL("job_id <> 0 AND job_id = ANY({})"),
    Principal.PROCESS: sql.SQL("source_job_id <> 0 AND source_job_id = ANY({})"),
    Principal.HOST: sql.SQL("nid_id <> 0 AND nid_id = ANY({})"),
}
_BY_KIND = sql.SQL("kind = {}")
_RPC_BIN = sql.SQL("""
source, date_bin(%(width)s, start, %(origin)s), date_bin(%(width)s, start, %(origin)s) + %(width)s
""")
# No interval is cut. One shorter than a bin belongs to the bin of its middle; the bounds of others
# are rounded to the nearest edge. So sums of bins are right within one poll, and not shifted.
_FIRST_EDGE = sql.SQL("""
date_bin(%(width)s, start + least(%(width)s, "end" - start) / 2, %(origin)s)
""")
_IO_BIN = sql.SQL("""
source, {first}, greatest(
    date_bin(%(width)s, "end" + %(width)s / 2, %(origin)s), {first} + %(width)s
)
""").format(first=_FIRST_EDGE)
_RPC_SUMS = sql.SQL("""
sum(amount)::float8, sum(timed)::float8, sum(service_us_sum)::float8, sum(total_us_sum)::float8
""")
_IO_SUMS = sql.SQL("sum(amount)::float8, 0::float8, 0::float8, 0::float8")
_SELECTED = sql.SQL("""
SELECT {bin}, p.layer, {sums} FROM ({rows}) w {layer} WHERE p.layer IS NOT NULL GROUP BY 1, 2, 3, 4
""")
_ALL = sql.SQL("SELECT {bin}, {sums} FROM ({rows}) w GROUP BY 1, 2, 3")
# The rest by job and owner: other users' jobs are shown only as sums that hide their owners.
_OWNERS_OF_REST = sql.SQL("""
SELECT r.source, r.since, r.until, hashtextextended(coalesce(j.owner, r.kind || ':' || r.key), 0),
    j.id, r.amount, r.timed, r.service_us, r.total_us
FROM (
    SELECT {bin}, w.kind, w.principal_id, {sums} FROM ({rows}) w {layer}
    WHERE p.layer IS NULL GROUP BY 1, 2, 3, 4, 5
) r (source, since, until, kind, key, amount, timed, service_us, total_us)
LEFT JOIN jobs_job j ON r.kind = %(JOB)s AND j.id = r.key
""")
_BIN = {"source": pl.Int64(), "start": UTC_US, "end": UTC_US}
_AMOUNTS = ("amount", "timed", "service_us", "total_us")
_OWNERS = {
    **_BIN,
    "owner": pl.Int64(),  # a hash
    "job": pl.Int64(),
    **dict.fromkeys(_AMOUNTS, pl.Float64()),
}
_REACHING = sql.SQL("""
SELECT min(start) FROM ({rows}) w
WHERE "end" >= (%(reached)s::timestamptz[])[array_position(%(sources)s::integer[], source)]
""")


class Amount(NamedTuple):
    """The RPCs or operations of a principal in a range."""

    principal: PrincipalKey
    total: float
    latest: float  # RPCs in the latest window; for operations, their rate in the latest intervals


@dataclass(frozen=True)
class Rows:
    """The rows of a query: pieces of levels, for some servers or targets."""

    pieces: Sequence[Piece]
    sources: Sequence[int]


class Bin(NamedTuple):
    """The sums of one layer on a server or target in a bin; operations have no times."""

    source: int
    start: datetime
    end: datetime
    layer: int  # 0: the rest
    amount: float
    timed: float
    service_us: float
    total_us: float
    # Whether the amount and the times could reveal a single owner: of layer 0, if requested.
    is_hidden: bool = False
    times_are_hidden: bool = False

    def within(self, start: datetime, end: datetime) -> Bin:
        """Return the part of operations in [start, end), which it intersects, at the same rate."""
        begin, stop = max(self.start, start), min(self.end, end)
        part = (stop - begin) / (self.end - self.start)
        return self._replace(start=begin, end=stop, amount=self.amount * part)

    def rounded(self) -> Bin:
        """Return its sums as users other than the owners may see them, without hidden times."""
        shown = _AMOUNTS[:1] if self.times_are_hidden else _AMOUNTS
        sums: Any = {
            name: coarse(getattr(self, name)) if name in shown else 0.0 for name in _AMOUNTS
        }
        return self._replace(**sums)


def rpc_amounts(rows: Rows, latest_from: datetime, latest_until: datetime) -> list[Amount]:
    """Return the RPCs of each principal, and those in [latest_from, latest_until)."""
    query = _SUMS.format(
        amount=sql.SQL("amount"), latest=_LATEST_RPCS, inside=sql.SQL("true"), rows=_union(rows)
    )
    latest = {"latest_from": latest_from, "latest_until": latest_until}
    return _amounts(query, _values(rows) | latest)


def operation_amounts(
    rows: Rows, since: datetime, until: datetime, reached: Sequence[datetime]
) -> list[Amount]:
    """Return each principal's operations in [since, until), and its latest rate.

    `reached` holds the latest polls of the targets in `rows`.
    """
    query = _SUMS.format(
        amount=_PART_INSIDE, latest=_LATEST_OPERATIONS, inside=_INSIDE, rows=_union(rows)
    )
    values = {"since": since, "until": until, "reached": list(reached)}
    return _amounts(query, _values(rows) | values)


def _amounts(query: sql.Composed, values: dict[str, Any]) -> list[Amount]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return [Amount((kind, key), total, latest) for kind, key, total, latest in cursor]


def reaching_from(rows: Rows, reached: Sequence[datetime]) -> datetime | None:
    """Return the earliest start of the intervals that end at the targets' latest polls."""
    query = _REACHING.format(rows=_union(rows, columns=_NO_COLUMNS))
    with connection.cursor() as cursor:
        cursor.execute(query, _values(rows) | {"reached": list(reached)})
        start: datetime | None = cursor.fetchone()[0]
    return start


def bins(
    rows: Rows,
    totals: Rows,
    layers: Sequence[Collection[PrincipalKey]],
    width: timedelta,
    origin: datetime,
    *,
    hide_within: timedelta | None,
) -> list[Bin]:
    """Return sums by source, bin and layer; poll intervals are in the bins nearest to them.

    Args:
        rows: rows by principal.
        totals: rows of all principals together, at the same resolution.
        layers: principals of the layers from 1 on; layer 0 is the rest.
        width: width of the bins.
        origin: the start of any bin.
        hide_within: find the sums of layer 0 that could reveal a single owner, also as differences
            to bins of this width; None: do not.
    """
    selected = [(*principal, n) for n, layer in enumerate(layers, start=1) for principal in layer]
    kinds, ids, numbers = zip(*selected, strict=True) if selected else ((), (), ())
    is_of_io = any(piece.level in _IO for piece in rows.pieces)
    form = {
        "bin": _IO_BIN if is_of_io else _RPC_BIN,
        "sums": _IO_SUMS if is_of_io else _RPC_SUMS,
        "layer": _LAYER,
    }
    values = _values(rows) | {
        "kinds": list(kinds),
        "ids": list(ids),
        "layers": list(numbers),
        "width": width,
        "origin": origin,
    }

    def read(query: sql.SQL, rows: sql.Composed) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(query.format(rows=rows, **form), values)
            return list(cursor.fetchall())

    bins_of_layers = []
    if selected:
        rows_of_selected = _union(rows, _principal_filter(selected))
        bins_of_layers = [Bin(*row) for row in read(_SELECTED, rows_of_selected)]
    hidden: dict[tuple[Any, ...], tuple[bool, bool]] = defaultdict(lambda: (False, False))
    if hide_within:
        query = _OWNERS_OF_REST.format(rows=_union(_widened(rows, hide_within)), **form)
        owners = read_frame(query, _OWNERS, values)
        hidden = defaultdict(lambda: (True, True), _hidden(owners, hide_within))
    rest = {row[:3]: list(row[3:]) for row in read(_ALL, _union(totals, columns=_NO_COLUMNS))}
    for layer_bin in bins_of_layers:
        sums = rest.setdefault(layer_bin[:3], [0.0] * 4)
        rest[layer_bin[:3]] = [a - b for a, b in zip(sums, layer_bin[4:8], strict=True)]
    # Rows that arrive between the statements must not make the rest negative.
    bins_of_rest = [
        Bin._make((*key, 0, *(max(amount, 0.0) for amount in sums), *hidden[key]))
        for key, sums in rest.items()
    ]
    return sorted(bins_of_layers + bins_of_rest)


def _widened(rows: Rows, width: timedelta) -> Rows:
    """Return rows of whole bins of a width: a part of one must not show what the whole hides."""
    pieces = list(rows.pieces)
    pieces[0] = replace(pieces[0], start=buckets.floor(pieces[0].start, width))
    pieces[-1] = replace(pieces[-1], end=buckets.ceil(pieces[-1].end, width))
    return replace(rows, pieces=pieces)


def _hidden(owners: pl.DataFrame, width: timedelta) -> dict[tuple[Any, ...], tuple[bool, bool]]:
    """Return whether the amount and the times of each bin of the rest are hidden."""
    parts = owners.with_columns(block=pl.col("start").dt.truncate(width))
    hidden = hidden_steps(parts, list(_BIN), ["source", "block"], _AMOUNTS)
    times = pl.any_horizontal(_AMOUNTS[1:])
    return {row[:3]: row[3:] for row in hidden.select(*_BIN, _AMOUNTS[0], times).iter_rows()}


def _principal_filter(selected: Collection[tuple[int, int, int]]) -> sql.Composed:
    ids_by_kind: dict[int, list[int]] = defaultdict(list)
    for kind, principal_id, _ in selected:
        ids_by_kind[kind].append(principal_id)
    parts = [
        _BY_ID[Principal(kind)].format(sql.Literal(ids))
        if kind in _BY_ID
        else _BY_KIND.format(sql.Literal(kind))
        for kind, ids in ids_by_kind.items()
    ]
    return sql.SQL("({})").format(sql.SQL(" OR ").join(parts))


def _union(
    rows: Rows,
    principals: sql.Composable = _ALL_PRINCIPALS,
    columns: sql.Composable = _PRINCIPAL_COLUMNS,
) -> sql.Composed:
    return sql.SQL(" UNION ALL ").join(_piece(piece, principals, columns) for piece in rows.pieces)


def _piece(piece: Piece, principals: sql.Composable, columns: sql.Composable) -> sql.Composed:
    is_of_io = piece.level in _IO
    if columns is _PRINCIPAL_COLUMNS:
        columns = _PRINCIPAL_COLUMNS.format(
            principal_id=_IO_PRINCIPAL if is_of_io else _RPC_PRINCIPAL
        )
    form = {
        "start": sql.Literal(piece.start),
        "end": sql.Literal(piece.end),
        "table": sql.Identifier(piece.level.table),
        "columns": columns,
        "principals": principals,
    }
    if not is_of_io:
        return _RPC_PIECE.format(**form)
    is_rolled_up = piece.level is not levels.IO_WINDOWS
    operations = metadata_operations("w")
    return _IO_PIECE.format(
        operations=sql.Identifier("metadata_operations") if is_rolled_up else operations,
        time=sql.Identifier(piece.level.time),
        **form,
    )


def _values(rows: Rows) -> dict[str, Any]:
    return {
        **{kind.name: kind.value for kind in (Principal.JOB, Principal.PROCESS, Principal.HOST)},
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "sources": list(rows.sources),
    }
