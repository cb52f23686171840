"""Output bandwidth: its analysis, small enough to cache, and its placement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ioportal.core.formatting import percent
from ioportal.experiments.analysis import stragglers
from ioportal.experiments.analysis.access_methods import spearman
from ioportal.experiments.analysis.bursts import SLOW, bursts, share_in_band
from ioportal.experiments.analysis.stragglers import MIN_COMPONENTS
from ioportal.jobs.analysis.comparison.results import SHARES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.experiments.analysis.stragglers import Persistence, Skill
    from ioportal.load.analysis.load_ramp import Interval


MAX_BINS = 5  # of distances
_MINUTE_S = 60
MIN_BURSTS = 8  # of a correlation
MOST_CELLS = 60  # rows or columns of the heat map
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def by_clients_per_target(transfers: pl.DataFrame) -> pl.DataFrame:
    """Return the bandwidth of a target by the number of its clients in a burst.

    Args:
        transfers: `bursts.Bursts.transfers`.

    Returns:
        A row per size x clients: n (targets x bursts), p5, p25, p50, p75, p95 of the sum of its
        clients' bandwidths, and per_client, the median of it / clients.
    """
    bandwidth = pl.col("bandwidth_bytes_per_s")
    targets = transfers.group_by("burst", "size", "target").agg(
        clients=pl.col("client").n_unique(), bandwidth_bytes_per_s=bandwidth.sum()
    )
    return (
        targets.group_by("size", "clients")
        .agg(pl.len().alias("n"), *_spread(bandwidth), per_client=_per_client(bandwidth))
        .sort("size", "clients")
    )


def _per_client(bandwidth: pl.Expr) -> pl.Expr:
    return (bandwidth / pl.col("clients")).median()


def _spread(column: pl.Expr) -> list[pl.Expr]:
    return [column.quantile(at, "linear").alias(f"p{at * 100:.0f}") for at in _QUANTILES]


@dataclass(frozen=True)
class Locality:
    """Aggregate bandwidth by the mean distance of the nodes of a burst.

    Attributes:
        size: class of the transfers.
        bins: a row per bin of distances: low, high, n, and quantiles p5 to p95 of the effective
            aggregate bandwidth.
        correlation: Spearman's, of bursts; None: too few, or no variation.
    """

    size: str
    bins: pl.DataFrame
    correlation: Interval | None


def by_distance(bursts: pl.DataFrame) -> list[Locality]:
    """Relate effective aggregate bandwidth to the mean distance of nodes, for each size.

    Args:
        bursts: `bursts.Bursts.bursts`; those without a distance are left out.
    """
    placed = bursts.drop_nulls("mean_distance")
    return [
        Locality(str(size), _distance_bins(part), _correlation(part))
        for (size,), part in placed.group_by("size", maintain_order=True)
    ]


def _distance_bins(bursts: pl.DataFrame) -> pl.DataFrame:
    distances = bursts["mean_distance"].to_numpy()
    count = min(MAX_BINS, max(1, bursts.height // MIN_BURSTS))
    edges = np.unique(np.quantile(distances, np.linspace(0, 1, count + 1)))
    inner = edges[1:-1]
    place = pl.Series("bin", np.searchsorted(inner, distances, side="right"))
    return (
        bursts.with_columns(place)
        .group_by("bin")
        .agg(
            pl.len().alias("n"),
            *_spread(pl.col("effective")),
            low=pl.col("mean_distance").min(),
            high=pl.col("mean_distance").max(),
        )
        .sort("bin")
    )


def _correlation(bursts: pl.DataFrame) -> Interval | None:
    distances, effective = (bursts[name].to_numpy() for name in ("mean_distance", "effective"))
    if distances.size < MIN_BURSTS or not np.ptp(distances) or not np.ptp(effective):
        return None
    return spearman(distances, effective)


@dataclass(frozen=True)
class Imbalance:
    """The distribution of bytes over targets.

    Attributes:
        targets: a row per target: target, transfers, bytes, share (of all bytes), relative (to the
            mean), straggler_share, bandwidth_bytes_per_s (median); the most bytes first.
        gini: 0: all targets have equal bytes; near 1: one has all.
        top_share: share of the bytes of the busiest tenth of the targets.
    """

    targets: pl.DataFrame
    gini: float
    top_share: float


def imbalance(transfers: pl.DataFrame, slow: float) -> Imbalance | None:
    """Measure the balance of targets; None with fewer than 2 targets.

    Args:
        transfers: `bursts.Bursts.transfers`.
        slow: slowness above which a transfer is a straggler.
    """
    targets = (
        transfers.group_by("target")
        .agg(
            transfers=pl.len(),
            bytes=pl.col("bytes").sum(),
            straggler_share=(pl.col("slowness") > slow).mean(),
            bandwidth_bytes_per_s=pl.col("bandwidth_bytes_per_s").median(),
        )
        .with_columns(
            share=pl.col("bytes") / pl.col("bytes").sum(),
            relative=pl.col("bytes") / pl.col("bytes").mean(),
        )
        .sort("bytes", "target", descending=[True, False])
    )
    if targets.height < 2:  # noqa: PLR2004  (one target has no balance)
        return None
    ascending = targets["bytes"].sort().to_numpy().astype(float)
    ranks = np.arange(1, ascending.size + 1)
    gini = (
        2 * float(ranks @ ascending) / (ascending.size * ascending.sum())
        - (ascending.size + 1) / ascending.size
    )
    busiest = max(1, round(targets.height / MIN_COMPONENTS))
    return Imbalance(targets, gini, float(targets["share"].head(busiest).sum()))


@dataclass(frozen=True)
class HeatMap:
    """Relative bandwidth of clients (rows) with targets (columns); None: no transfer.

    With more than `MOST_CELLS` clients or targets, neighbours in the order of names are joined.
    """

    clients: tuple[str, ...]
    targets: tuple[str, ...]
    relative: tuple[tuple[float | None, ...], ...]


def heat_map(transfers: pl.DataFrame) -> HeatMap:
    """Return the median of bandwidth / median bandwidth of its burst, for each pair.

    Args:
        transfers: `bursts.Bursts.transfers`.
    """
    names: dict[str, tuple[str, ...]] = {}
    for component in ("client", "target"):
        groups = _groups(transfers[component].unique().to_list())
        names[component] = tuple(dict.fromkeys(groups.values()))
        group = pl.col(component).replace_strict(groups, return_dtype=pl.String)
        transfers = transfers.with_columns(group.alias(component))
    pairs = transfers.group_by("client", "target").agg((1 / pl.col("slowness")).median())
    values = {(client, target): value for client, target, value in pairs.iter_rows()}
    clients, targets = names["client"], names["target"]
    return HeatMap(
        clients,
        targets,
        tuple(tuple(values.get((client, target)) for target in targets) for client in clients),
    )


def _groups(names: list[str]) -> dict[str, str]:
    """Return the group of each name: itself, or its first name and the number of others."""
    ordered = sorted(names, key=lambda name: (len(name), name))  # t2 before t10
    size = -(-len(ordered) // MOST_CELLS)
    parts = [ordered[at : at + size] for at in range(0, len(ordered), size)]
    return {
        name: part[0] if len(part) == 1 else f"{part[0]} +{len(part) - 1}"
        for part in parts
        for name in part
    }


SCORES = ("pair_effective", "lag_effective")
STATES = (("target", "slow"), ("client", "fast"))


@dataclass(frozen=True)
class Output:
    """The analysis of a series of transfers.

    Attributes:
        transfers: their number.
        clients: number of clients.
        targets: number of targets.
        bytes: of all transfers.
        bursts: see `bursts.Bursts.bursts`.
        in_band: share of each score from 0.4 to 0.9.
        scores: each score at 0 %, 1 %, ..., 100 % of the transfers.
        persistence: of slow targets and of fast clients.
        skills: of avoiding slow targets and slow clients.
        imbalance: None with one target.
    """

    transfers: int
    clients: int
    targets: int
    bytes: int
    bursts: pl.DataFrame
    in_band: dict[str, float]
    scores: dict[str, list[float]]
    persistence: dict[str, Persistence]
    skills: dict[str, list[Skill]]
    heat_map: HeatMap
    by_clients: pl.DataFrame
    localities: list[Locality]
    imbalance: Imbalance | None


def analyse(transfers: pl.DataFrame) -> Output | str:
    """Analyse a series of transfers.

    Args:
        transfers: columns of `tables.PAIR_TRANSFERS`.

    Returns:
        The analysis, or the reason for none.

    Source: docs/experiments.md, "Output performance".
    """
    scored = bursts(transfers)
    if scored.refusal:
        return scored.refusal
    each = scored.transfers
    states = {component: stragglers.states(each, component) for component, _ in STATES}
    places = np.linspace(0, 1, SHARES)
    return Output(
        transfers=each.height,
        clients=each["client"].n_unique(),
        targets=each["target"].n_unique(),
        bytes=int(each["bytes"].to_numpy().sum()),
        bursts=scored.bursts,
        in_band=share_in_band(each),
        scores={name: np.quantile(each[name].to_numpy(), places).tolist() for name in SCORES},
        persistence={
            component: stragglers.persistence(states[component], state)
            for component, state in STATES
        },
        skills={component: stragglers.skills(states[component]) for component in states},
        heat_map=heat_map(each),
        by_clients=by_clients_per_target(each),
        localities=by_distance(scored.bursts),
        imbalance=imbalance(each, SLOW),
    )


def findings(output: Output) -> list[str]:
    """Return stragglers, and whether the past predicts them, in sentences."""
    return [_stragglers(output.bursts), *_predictions(output.skills)]


def _stragglers(bursts: pl.DataFrame) -> str:
    shares, delivered, aggregate = (
        bursts[name].to_numpy()
        for name in ("straggler_share", "delivered_bytes_per_s", "aggregate_bytes_per_s")
    )
    lost = 1 - float(np.median(delivered / aggregate))
    return (
        f"In a burst, {percent(float(np.median(shares)))} % of the transfers (median; at most "
        f"{percent(float(shares.max()))} %) take more than {SLOW:g} times as long as its "
        f"median. As a burst waits for its last transfer, the bandwidth delivered is "
        f"{percent(max(lost, 0.0), 0)} % below the sum of its clients (median)."
    )


def _predictions(skills_by_component: dict[str, list[Skill]]) -> Iterator[str]:
    useless = f"{percent(stragglers.USEFUL, 0)} %"
    for component, skills in skills_by_component.items():
        useful = [skill for skill in skills if skill.is_useful]
        if useful:
            last_min = minutes(useful[-1].lag_s)
            rest = [skill for skill in skills if skill.lag_s > useful[-1].lag_s]
            older = f", older information less than {useless}" if _are_useless(rest) else ""
            yield (
                f"The past predicts up to {last_min} min: avoiding {component}s that were slow "
                f"{last_min} min ago avoids {share_text(useful[-1].skill)} of the "
                f"stragglers{older}."
            )
        elif _are_useless(skills):
            first_min, last_min = (minutes(skills[at].lag_s) for at in (0, -1))
            yield (
                f"The past does not predict: avoiding {component}s that were slow {first_min} "
                f"to {last_min} min ago avoids less than {useless} of the stragglers."
            )
        elif skills:
            yield f"Whether slow {component}s stay slow is open: the intervals are too wide."


def _are_useless(skills: list[Skill]) -> bool:
    return bool(skills) and all(skill.is_useless for skill in skills)


def minutes(lag_s: float) -> str:
    """Return a time in minutes."""
    return f"{lag_s / _MINUTE_S:g}"


def share_text(interval: Interval | None) -> str:
    """Return a share in per cent with its interval."""
    if interval is None:
        return "too few episodes"
    low, high = (percent(max(bound, 0.0), 0) for bound in (interval.low, interval.high))
    return f"{percent(max(interval.value, 0.0), 0)} % ({low} to {high} %)"
