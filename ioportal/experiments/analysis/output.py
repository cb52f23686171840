"""The analysis of a series of transfers, small enough to cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ioportal.experiments.analysis import placement, stragglers
from ioportal.experiments.analysis.bursts import SLOW, bursts, share_in_band
from ioportal.jobs.analysis.comparison.results import SHARES

if TYPE_CHECKING:
    import polars as pl

    from ioportal.experiments.analysis.placement import HeatMap, Imbalance, Locality
    from ioportal.experiments.analysis.stragglers import Persistence, Skill

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
        heat_map=placement.heat_map(each),
        by_clients=placement.by_clients_per_target(each),
        localities=placement.by_distance(scored.bursts),
        imbalance=placement.imbalance(each, SLOW),
    )
