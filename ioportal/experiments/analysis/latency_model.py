"""A model of the time in storage: operations x latency + bytes / bandwidth.

It applies to one process whose operations wait for each other. With prefetching or several
processes it is an upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy

from ioportal.jobs.analysis.comparison.results import CONFIDENCE
from ioportal.load.analysis.load_ramp import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]

MIN_RUNS = 3
MOST_COLLINEAR = 0.999  # correlation (cosine) of operations and bytes over runs
EXACT = 1e-9  # share of the time: smaller residuals are rounding
CLAIM_MARGIN = 0.1  # relative difference of a claimed time that still agrees
_EDGE = (1 + CONFIDENCE) / 2


class NotIdentifiable(ValueError):  # noqa: N818  (a result for the page, with its reason)
    """The runs do not determine both parameters; the message is the reason."""


@dataclass(frozen=True)
class Load:
    """What a run, job or population asks of the storage; `measured_s` is None if unknown."""

    name: str
    operations: float
    bytes: float
    measured_s: float | None = None


@dataclass(frozen=True)
class Prediction:
    """The two terms of the predicted time."""

    load: Load
    latency_s: float  # of all operations
    transfer_s: float

    @property
    def total_s(self) -> float:
        """The predicted time."""
        return self.latency_s + self.transfer_s

    @property
    def latency_share(self) -> float | None:
        """Change of the time, in shares, per relative change of the latency; None: no time."""
        return self.latency_s / self.total_s if self.total_s else None

    @property
    def residual_s(self) -> float | None:
        """Measured - predicted time."""
        measured_s = self.load.measured_s
        return None if measured_s is None else measured_s - self.total_s


def predict(load: Load, latency_s: float, bandwidth_bytes_per_s: float) -> Prediction:
    """Predict the time of a load.

    Args:
        load: operations and bytes, at least 0.
        latency_s: of an operation, at least 0.
        bandwidth_bytes_per_s: of the transfers, positive.

    Raises:
        ValueError: a parameter is negative, zero or not finite.
    """
    if not (0 <= latency_s < np.inf and bandwidth_bytes_per_s > 0):
        raise ValueError(
            f"Latency {latency_s} s and bandwidth {bandwidth_bytes_per_s} bytes/s are unusable."
        )
    return Prediction(load, load.operations * latency_s, load.bytes / bandwidth_bytes_per_s)


@dataclass(frozen=True)
class Fit:
    """Latency and bandwidth fitted to measured runs."""

    runs: int
    latency_s: Interval
    bandwidth_bytes_per_s: Interval  # its upper bound may be infinite
    residual_s: float  # standard deviation about the model, with the degrees of freedom it leaves


def fit(loads: Sequence[Load]) -> Fit:
    """Fit latency and bandwidth to runs with measured times.

    Least squares with both terms at least 0, of times relative to the measured time: relative
    errors count alike, so that short runs are not ignored. The intervals are Student's, with
    n - 2 degrees of freedom, cut at 0. They are exact for independent normal errors while neither
    term is 0.

    Args:
        loads: runs; those without a measured time, or with 0 s, are left out.

    Raises:
        NotIdentifiable: fewer than `MIN_RUNS` runs, nearly the same bytes per operation in all
            runs, or a term that fits best as 0.
    """
    known = [load for load in loads if load.measured_s]
    if len(known) < MIN_RUNS:
        raise NotIdentifiable(
            f"{len(known)} runs have a measured time in reads. A fit needs at least {MIN_RUNS}."
        )
    times = np.array([load.measured_s for load in known], dtype=float)
    amounts = np.array([[load.operations, load.bytes] for load in known], dtype=float)
    terms = amounts / times[:, None]
    lengths = np.linalg.norm(terms, axis=0)
    if not lengths.all() or _cosine(terms) > MOST_COLLINEAR:
        raise NotIdentifiable(
            "All runs have nearly the same bytes per operation: latency and bandwidth cannot be "
            "separated. Add runs with another read size."
        )
    scaled = terms / lengths  # numbers of similar size
    solution, distance = scipy.optimize.nnls(scaled, np.ones(times.size))
    if not solution.all():
        missing, other = ("latency", "transfer") if not solution[0] else ("transfer", "latency")
        raise NotIdentifiable(
            f"The {missing} term fits best as 0: the {other} term alone explains the times. "
            "Latency and bandwidth cannot be separated from these runs."
        )
    degrees = times.size - 2
    variance = max(distance**2 / degrees, EXACT**2)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(scaled.T @ scaled)))
    wide = float(scipy.stats.t.ppf(_EDGE, degrees)) * errors
    latency, slowness = (
        Interval(*(float(x / length) for x in (value, max(value - half, 0.0), value + half)))
        for value, half, length in zip(solution, wide, lengths, strict=True)
    )
    bandwidth = Interval(
        1 / slowness.value, 1 / slowness.high, 1 / slowness.low if slowness.low else np.inf
    )
    predicted = amounts @ np.array([latency.value, slowness.value])
    residual_s = float(np.sqrt(((times - predicted) ** 2).sum() / degrees))
    return Fit(times.size, latency, bandwidth, residual_s)


def _cosine(terms: Floats) -> float:
    first, second = terms.T
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def claim(prediction: Prediction, claimed_s: float) -> str:
    """Return whether a claimed time follows from a load and parameters, as a sentence.

    Args:
        prediction: of the load that the claim is about.
        claimed_s: the claimed time, at least 0.
    """
    load, total_s = prediction.load, prediction.total_s
    terms = (
        f"{load.operations:,.0f} operations take {prediction.latency_s:,.0f} s and "
        f"{load.bytes / 2**20:,.0f} MiB take {prediction.transfer_s:,.0f} s, "
        f"{total_s:,.0f} s in all"
    )
    if abs(claimed_s - total_s) <= CLAIM_MARGIN * total_s:
        return f"{claimed_s:,.0f} s agrees with {load.name}: {terms}."
    return f"{claimed_s:,.0f} s cannot be derived from {load.name}: {terms}."
