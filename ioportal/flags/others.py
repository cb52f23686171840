"""What other jobs usually do: those of a job's size, and those of its name.

It is told of the month before a moment, whatever job is held beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import polars as pl
from django.core.cache import cache
from psycopg import sql

from ioportal.analysis.populations import coarsened
from ioportal.analysis.rules.evidence import OF_NAMESAKES, OF_PEERS
from ioportal.telemetry import rollups
from ioportal.telemetry.copy import read_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

# Of some kinds, what tells what is usual by a moment.
Usual: TypeAlias = "Mapping[Kind, Callable[[datetime], pl.DataFrame]]"

_SERVES = timedelta(minutes=10)
_MONTH = timedelta(days=30)
_FEWEST_NAMESAKES = 10


@dataclass(frozen=True, eq=False)
class Kind:
    """A way in which jobs of a cluster are alike."""

    alike: str  # the column of a job's that they have in common: a number
    of: sql.SQL  # that number, of a job `j`
    figure: sql.SQL  # what is known of each, from its statistics `s`
    tells: Mapping[str, pl.DataType]  # columns of a job's evidence
    usual: Callable[[pl.DataFrame], pl.DataFrame]  # those columns, from figures

    @property
    def columns(self) -> dict[str, pl.DataType]:
        """What is told of those that are alike."""
        return {"cluster": pl.Int64(), self.alike: pl.Int64(), **self.tells}


def _of_peers(figures: pl.DataFrame) -> pl.DataFrame:
    figure = (pl.col("figure") + 1).log()
    return figures.group_by("cluster", "size").agg(
        peers=pl.len(),
        peers_median=figure.median(),
        peers_deviation=(figure - figure.median()).abs().median(),
    )


def _of_namesakes(figures: pl.DataFrame) -> pl.DataFrame:
    told = figures.group_by("cluster", "name").agg(
        namesakes=pl.len(), namesakes_read_bytes=pl.median("figure")
    )
    return told.filter(pl.col("namesakes") >= _FEWEST_NAMESAKES)


PEERS: Final = Kind(
    "size",
    # The whole part of the binary logarithm of its nodes.
    sql.SQL("CASE WHEN j.node_count > 0 THEN 32 - position(B'1' IN j.node_count::bit(32)) END"),
    sql.SQL("s.metadata_operations_per_node"),
    OF_PEERS,
    _of_peers,
)
NAMESAKES: Final = Kind(
    "name",
    # (names are anybody's text, and long: frames have numbers in their place)
    sql.SQL("CASE WHEN j.name <> '' THEN hashtextextended(j.name, 0) END"),
    sql.SQL("s.read_bytes"),
    OF_NAMESAKES,
    _of_namesakes,
)
KINDS: Final = (PEERS, NAMESAKES)

_FIGURES = sql.SQL("""
SELECT j.cluster_id, {of}, j.started_at, {figure}
FROM jobs_job j JOIN jobs_jobstatistics s ON s.job_id = j.id
WHERE j.started_at >= %(since)s AND j.started_at < %(until)s AND s.quality <> 'poor'
    AND {of} IS NOT NULL AND {figure} IS NOT NULL
""")
_TIME = pl.Datetime("us", "UTC")
_NEVER = datetime.min.replace(tzinfo=UTC)


class Month:
    """The month before a moment, which moves on: what it has in common with the last is kept."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._columns = {
            "cluster": pl.Int64(),
            kind.alike: pl.Int64(),
            "started_at": _TIME,
            "figure": pl.Float64(),
        }
        self._figures = pl.DataFrame(schema=self._columns)
        self._read_until = _NEVER

    def before(self, moment: datetime) -> pl.DataFrame:
        """Return what was usual by a moment, which is not before the last: `Kind.columns`."""
        until = _served_until(moment)
        since = until - _MONTH
        new = self._read(max(since, self._read_until), until)
        self._figures = pl.concat([self._figures.filter(pl.col("started_at") >= since), new])
        self._read_until = until
        told = self._kind.usual(self._figures)
        return told.select(pl.col(name).cast(of) for name, of in self._kind.columns.items())

    def _read(self, since: datetime, until: datetime) -> pl.DataFrame:
        """Read coarse figures: the owner of a flag sees what is usual of other people's jobs."""
        query = _FIGURES.format(of=self._kind.of, figure=self._kind.figure)
        frame = read_frame(query, self._columns, {"since": since, "until": until})
        return frame.with_columns(pl.Series("figure", coarsened(frame["figure"].to_numpy())))


def months(columns: Collection[str]) -> Usual:
    """Return how to ask, of moments one after the other, for what tells some columns."""
    return {kind: Month(kind).before for kind in KINDS if set(kind.tells) & set(columns)}


def kept(kind: Kind, moment: datetime) -> pl.DataFrame:
    """Return what was usual by a moment; within ten minutes it is reckoned once for all jobs."""
    key = f"flags:{kind.alike}:{_served_until(moment).isoformat()}"
    rows: list[Any] | None = cache.get(key)
    if rows is None:
        rows = Month(kind).before(moment).rows()
        cache.set(key, rows, _SERVES.total_seconds())
    return pl.DataFrame(rows, schema=kind.columns, orient="row")


def _served_until(moment: datetime) -> datetime:
    return rollups.ceil(moment, _SERVES)
