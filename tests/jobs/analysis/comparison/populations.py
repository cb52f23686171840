"""Simulated arms whose days resemble each other less than their jobs."""

import numpy as np

from ioportal.jobs.analysis.comparison.arms import Arm


def skewed(rng, level):
    """Return values over many powers of ten."""
    return np.exp(level + rng.normal(0, 1.5, level.size))


def tied(rng, level):
    """Return few distinct values; the median lies between two neighbouring values."""
    return np.round(np.exp(1.7 + level + rng.normal(0, 0.8, level.size))) + 1


def with_zeros(rng, level):
    """Return values of which a third are zero."""
    return np.where(rng.random(level.size) < 0.3, 0, np.exp(level + rng.normal(0, 1, level.size)))


def narrow(rng, level):
    """Return values such as run times."""
    return np.exp(6 + level + rng.normal(0, 0.2, level.size))


SHAPES = (skewed, tied, with_zeros, narrow)


def arm(
    rng, *, jobs, days, sigma, first_day=0, shapes=SHAPES, effect=1.0, day_effects=None, every=1
):
    """Return an arm with a metric per shape and an effect of each day, with a deviation sigma.

    Without neighbouring days (`every` second day), days count as independent.
    """
    on = np.sort(rng.integers(0, days, jobs))
    values = {}
    for shape in shapes:
        of_day = rng.normal(0, sigma, days) if day_effects is None else day_effects
        values[shape.__name__] = shape(rng, of_day[on] + np.log(effect))
    same = np.zeros(jobs, int)
    return Arm(values, first_day + every * on, same, same)


def simple_arm(values, days, strata=None, users=None):
    """Return an arm with the metric 'x'."""
    values, days = np.array(values, float), np.array(days)
    same = np.zeros(days.size, int)
    return Arm(
        {"x": values},
        days,
        same if users is None else np.array(users),
        same if strata is None else np.array(strata),
    )
