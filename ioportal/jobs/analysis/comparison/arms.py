"""Arms of a comparison, and weights by which they have the same mix of strata."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]
    Ints: TypeAlias = npt.NDArray[np.integer[Any]]

_WEIGHT_STEP = 2.0**-32  # it divides all weights: sums of two million weights are exact


@dataclass(frozen=True)
class Arm:
    """One side of a comparison: jobs, PanDA jobs or runs, one per element of each array.

    All arrays have shape (n,). Equal numbers of days, users and strata mean the same in all arms.
    """

    values: Mapping[str, Floats]  # by metric; NaN: unknown
    days: Ints  # number of the local day of the start; of independent runs, a number of the run
    users: Ints
    strata: Ints

    @property
    def size(self) -> int:
        """Number of jobs."""
        return int(self.days.size)

    @cached_property
    def known_days(self) -> Ints:
        """The days with jobs, ascending."""
        return np.unique(self.days)

    @cached_property
    def largest_user_share(self) -> float:
        """Share of the jobs of the user with most jobs; 0 without jobs."""
        if not self.size:
            return 0.0
        return float(np.unique(self.users, return_counts=True)[1].max() / self.size)


@dataclass(frozen=True)
class Balance:
    """Strata of arms before and after weighting.

    Strata are ascending. `jobs` and `weights` have a row per arm and a column per stratum: number
    of jobs, and weight of each job. `standard` is the share of each stratum after weighting,
    equal in all arms; 0: the stratum is missing in some arm.
    """

    strata: Ints
    jobs: Ints
    standard: Floats
    weights: Floats

    @property
    def matched(self) -> Floats:
        """Share of the jobs of each arm in strata that all arms have."""
        matched = self.jobs[:, self.standard > 0].sum(axis=1)
        shares: Floats = matched / np.maximum(self.jobs.sum(axis=1), 1)
        return shares

    @property
    def differences(self) -> Floats:
        """Largest difference of a stratum's share between the first arm and each arm."""
        shares = self.jobs / np.maximum(self.jobs.sum(axis=1, keepdims=True), 1)
        largest: Floats = np.abs(shares - shares[:1]).max(axis=1, initial=0.0)
        return largest

    def job_weights(self, number: int, arm: Arm) -> Floats:
        """Return the weight of each job of an arm, with a mean of 1 over matched jobs."""
        weights: Floats = self.weights[number][self.strata.searchsorted(arm.strata)]
        return weights


def balance(arms: Sequence[Arm], min_jobs: int = 1) -> Balance:
    """Compute weights that give all arms the same mix of strata (direct standardisation).

    The standard share of a stratum is proportional to the harmonic mean of its shares in the arms
    (overlap weights, Li, Morgan and Zaslavsky 2018): strata that are rare in any arm count little,
    and the order of the arms does not matter. With equal mixes all weights are 1. Weights are
    rounded so that their sums do not depend on the order of the jobs.

    Args:
        arms: at least one.
        min_jobs: number of jobs in each arm below which a stratum has no weight.

    Returns:
        The strata, numbers of jobs, and weights. Without a shared stratum all weights are 0.

    Source: docs/comparisons.md, "Weights".
    """
    strata = np.unique(np.concatenate([arm.strata for arm in arms]))
    jobs = np.array(
        [np.bincount(strata.searchsorted(arm.strata), minlength=strata.size) for arm in arms]
    )
    is_shared = (jobs >= max(min_jobs, 1)).all(axis=0)
    matched = jobs[:, is_shared]
    shares = matched / matched.sum(axis=1, keepdims=True)
    harmonic = 1 / (1 / shares).sum(axis=0)
    standard, weights = np.zeros(strata.size), np.zeros(jobs.shape)
    standard[is_shared] = harmonic / harmonic.sum()
    weights[:, is_shared] = np.round(standard[is_shared] / shares / _WEIGHT_STEP) * _WEIGHT_STEP
    return Balance(strata, jobs, standard, weights)
