"""Capacity of a metadata server: the load at which the time of its requests leaves its baseline.

The load is the usual time of the requests per second: kinds of requests count by their cost. The
factor is the time of requests (queue and service) relative to usual, so that a change of the mix
alone is neither load nor delay. Time blocked on locks is not load: where kinds that wait for no
locks are faster, their factor counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy

from collectors.tables import UTC_US
from ioportal.load.analysis.safe_load import Windows, safe_load
from ioportal.load.analysis.waiting import US_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from ioportal.load.analysis.safe_load import Floats, Ints, SafeLoad

WINDOWS = {  # of one server, complete, without overlap
    "start": UTC_US,
    "end": UTC_US,
    "day": pl.Int64(),  # number of the day
    "requests": pl.Float64(),  # handled
    "work_us": pl.Float64(),  # their usual time
    "took_us": pl.Float64(),  # arrival to end, of requests with a known usual time
    "usual_us": pl.Float64(),  # usual time of these
    "free_took_us": pl.Float64(),  # of kinds that wait for no locks
    "free_usual_us": pl.Float64(),
}
CURVE = {  # a row per bin of loads, ascending
    "load": pl.Float64(),  # median
    "windows": pl.Int64(),
    "p10": pl.Float64(),  # of the factor, relative to that without load
    "median": pl.Float64(),
    "p90": pl.Float64(),
    "fitted": pl.Float64(),
}
KNEE_FACTOR = 2.0  # times as long as without load
BIN_RATIO = 1.05  # upper / lower bound of a bin of loads
WIDEST_BIN_RATIO = 1.5  # of joined bins
MIN_BIN_WINDOWS = 8
MIN_WINDOWS = 200
MIN_LOAD_RATIO = 1.5  # highest / lowest load
MIN_DAYS, MIN_HOURS = 7, 5  # to resample
FREE_THREADS = 16  # of a service: so many blocked threads leave threads for others
STEADY_RATIO = 1.5  # of the loads of adjacent windows
RESTART_PAUSE = timedelta(minutes=10)  # in which clients reconnect
BUSY_SHARE = 0.95  # of the hours have at most the busy load
REPLICATES = 400
_CALM_FACTOR = 1.25  # bins with up to so many times the lowest factor show that without load
_FEWEST_CALM_BINS = 3
_FEWEST_BINS = 2
_INTERVAL = (0.025, 0.975)
_MIN_FREE_US = 1_000.0  # usual time of free kinds in a window whose factor is known
_HOUR = timedelta(hours=1)


class Resampled(StrEnum):
    """The unit of resampling: windows of one unit resemble each other."""

    DAYS = "days"
    HOURS = "hours"


@dataclass(frozen=True)
class Refusal:
    """The reason why no capacity is stated."""

    reason: str


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float | None  # None: no upper bound is known

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate in another unit."""
        high = None if self.high is None else self.high * factor
        return Estimate(self.value * factor, self.low * factor, high)


@dataclass(frozen=True)
class Capacity:
    """The capacity of a server; loads are seconds of usual time per second.

    Args:
        curve: columns of `CURVE`.
        baseline: factor without load, relative to the usual times of the input.
        knee: load at which requests take `KNEE_FACTOR` times as long as without load; None: not
            seen, or in too few windows.
        unconfirmed_knee: this load, seen in too few windows.
        safe: highest load whose latency is shown to be below the knee; None: none.
        limit: the knee, or the highest safe load.
        usual_load: median of the windows.
        busy_load: exceeded in 5 % of the hours.
        cost_s: usual time of a request of the usual mix.
        windows: number of windows in the curve.
        resampled: unit of resampling.
        units: number of units.
        days: number of days with these windows.
        slow: steady windows at loads beyond the knee.
        excluded: number of excluded windows by reason.
    """

    curve: pl.DataFrame
    baseline: float
    knee: Estimate | None
    unconfirmed_knee: float | None
    safe: SafeLoad | None
    limit: Estimate
    usual_load: float
    busy_load: float
    cost_s: float
    windows: int
    resampled: Resampled
    units: int
    days: int
    slow: Windows = field(repr=False)
    excluded: dict[str, int]
    # A row per replicate: lower and upper bound of the knee, busy load.
    replicates: Floats = field(repr=False)

    @property
    def is_busy_load_seen(self) -> bool:
        """Whether the latency at the load of busy hours is known."""
        return self.knee is not None or self.busy_load <= BIN_RATIO * self.limit.value

    @property
    def headroom(self) -> Estimate | None:
        """Load that can be added in busy hours before the knee; None: unknown."""
        if not self.is_busy_load_seen:
            return None
        busy = self.replicates[:, 2]
        spread = _interval(self.replicates[:, 0] - busy, self.replicates[:, 1] - busy)
        value = self.limit.value - self.busy_load
        return Estimate(value if self.knee else max(0.0, value), *spread)


@dataclass(frozen=True)
class _Binned:
    """Windows, sorted by bin of load and factor."""

    windows: Windows
    edges: Ints  # first window of each bin
    loads: Floats  # median of each bin

    @classmethod
    def of(cls, windows: Windows) -> _Binned:
        """Sort windows into bins of loads with `MIN_BIN_WINDOWS`; leave out windows without one."""
        step = np.log(BIN_RATIO)
        number = np.floor(np.log(windows.load) / step).astype(np.int64)
        values, inverse, counts = np.unique(number, return_inverse=True, return_counts=True)
        widest = round(np.log(WIDEST_BIN_RATIO) / step)
        bins, sizes, first = np.zeros(len(values), dtype=np.int64), [0], 0
        for n, count in enumerate(counts):
            if sizes[-1] >= MIN_BIN_WINDOWS or values[n] - values[first] >= widest:
                sizes.append(0)
                first = n
            bins[n] = len(sizes) - 1
            sizes[-1] += int(count)
        bin_of = bins[inverse]
        order = np.lexsort((windows.factor, bin_of))
        order = order[np.array(sizes)[bin_of[order]] >= MIN_BIN_WINDOWS]
        edges = np.flatnonzero(np.diff(bin_of[order], prepend=-1))
        return cls(windows[order], edges, _by_bin(windows.load[order], edges, 0.5))

    @property
    def parts(self) -> list[slice]:
        """The windows of each bin."""
        ends = [*self.edges[1:].tolist(), len(self.windows.load)]
        return [slice(*bounds) for bounds in zip(self.edges.tolist(), ends, strict=True)]


def _by_bin(values: Floats, edges: Ints, share: float) -> Floats:
    """Return a quantile of each bin."""
    return np.array([np.quantile(part, share) for part in np.split(values, edges[1:])])


@dataclass(frozen=True)
class _Fit:
    """A curve through the medians of the bins with windows, and its crossing."""

    bins: Ints
    fitted: Floats
    baseline: float
    crossing: int | None  # first of `bins` beyond the knee


def capacity(windows: pl.DataFrame, restarts: Iterable[datetime] = ()) -> Capacity | Refusal:
    """Find the load at which the time of a server's requests leaves its baseline.

    Windows in which the load changes, windows after a restart and windows in which threads are
    blocked on locks are excluded. The curve is an isotonic regression through the medians of bins
    of loads. The interval is from resampled days, or hours where days are few, and includes the
    bins on both sides of the crossing: loads in between were not observed. A knee with too few
    windows beyond it is unconfirmed.

    Args:
        windows: columns of `WINDOWS`.
        restarts: times at which the server restarted.

    Source: docs/capacity.md.
    """
    known = _with_load(windows, restarts)
    steady = known.filter("is_steady", ~pl.col("is_restart"), ~pl.col("is_blocked"))
    excluded = {
        "load changes": known.filter(~pl.col("is_steady")).height,
        "restart": known.filter("is_restart").height,
        "lock waiting": known.filter("is_blocked").height,
    }
    if steady.height < MIN_WINDOWS:
        return Refusal(
            f"Too few windows: {steady.height:,} with a steady load, {MIN_WINDOWS} are needed."
        )
    if (hours := steady["hour"].n_unique()) < MIN_HOURS:
        return Refusal(f"Too few hours with data: {hours}, {MIN_HOURS} are needed.")
    resampled = Resampled.DAYS if steady["day"].n_unique() >= MIN_DAYS else Resampled.HOURS
    column = "day" if resampled is Resampled.DAYS else "hour"
    names = known[column].unique().sort().to_numpy()
    load, factor, unit, day = (
        steady[name].to_numpy() for name in ("load", "factor", column, "day")
    )
    points = Windows(load, factor, np.searchsorted(names, unit), day)
    lowest, highest = np.quantile(load, 0.01), points.supported_load
    if highest is None or highest < MIN_LOAD_RATIO * lowest:
        return Refusal(
            f"The load varies too little: without single windows, the highest is "
            f"{(highest or lowest) / lowest:.2f} times the lowest, {MIN_LOAD_RATIO:g} times are "
            "needed."
        )
    binned = _Binned.of(points)
    if len(binned.loads) < _FEWEST_BINS:
        return Refusal(
            f"Too few windows at similar loads: {MIN_BIN_WINDOWS} within a ratio of "
            f"{WIDEST_BIN_RATIO:g} are needed."
        )
    fit = _fitted(binned, np.ones(len(binned.windows.load)))
    hourly = known.group_by("hour", pl.col(column).alias("unit")).agg(
        load=pl.sum("work_us") / pl.sum("seconds") / US_PER_S
    )
    hour_unit = np.searchsorted(names, hourly["unit"].to_numpy())
    hour_load = hourly["load"].to_numpy()
    replicates, latencies = _replicates(binned, fit, len(names), hour_unit, hour_load)
    knee = unconfirmed = None
    most = np.inf
    slow = points[load > np.inf]
    if fit.crossing is not None:
        crossing = _crossing_load(binned, fit)
        slow = points[load > crossing]
        if slow.supported_load is None:
            most = unconfirmed = crossing
        else:
            knee = Estimate(crossing, *_interval(replicates[:, 0], replicates[:, 1]))
            most = knee.low
    safe = safe_load(
        replace(points, factor=factor / fit.baseline),
        [binned.windows[part] for part in binned.parts],
        fit.fitted / fit.baseline,
        latencies,
        limit=KNEE_FACTOR,
        most=most,
    )
    if knee:
        limit = knee
    elif safe:
        limit = Estimate(safe.load, safe.load, None)
        replicates[:, :2] = safe.load, np.inf
    else:
        return Refusal(
            f"Too few windows at similar loads, or latency that varies too much: at no load is it "
            f"shown to be below {KNEE_FACTOR:g} times that without load."
        )
    return Capacity(
        curve=_curve(binned, fit),
        baseline=fit.baseline,
        knee=knee,
        unconfirmed_knee=unconfirmed,
        safe=safe,
        limit=limit,
        usual_load=float(known["load"].median()),  # type: ignore[arg-type]  # (never null)
        busy_load=float(np.quantile(hour_load, BUSY_SHARE)),
        cost_s=float(known.select((pl.col("work_us") / pl.col("requests")).median()).item())
        / US_PER_S,
        windows=len(binned.windows.load),
        resampled=resampled,
        units=len(names),
        days=binned.windows.days,
        slow=slow,
        excluded=excluded,
        replicates=replicates,
    )


def _with_load(windows: pl.DataFrame, restarts: Iterable[datetime]) -> pl.DataFrame:
    """Return windows with known times: load, factor, and whether to exclude them."""
    took, usual = pl.col("took_us"), pl.col("usual_us")
    has_free = pl.col("free_usual_us") >= _MIN_FREE_US
    free = pl.when(has_free).then(pl.col("free_took_us") / pl.col("free_usual_us"))
    blocked_us = took - pl.col("factor") * usual
    is_restart = pl.any_horizontal(
        pl.lit(value=False),
        *(
            (pl.col("end") > restart) & (pl.col("start") < restart + RESTART_PAUSE)
            for restart in restarts
        ),
    )
    load, earlier, later = pl.col("load"), pl.col("load").shift(), pl.col("load").shift(-1)
    follows = pl.col("start") == pl.col("end").shift()
    precedes = pl.col("end") == pl.col("start").shift(-1)

    def is_alike(other: pl.Expr) -> pl.Expr:
        return (load <= STEADY_RATIO * other) & (other <= STEADY_RATIO * load)

    return (
        windows.filter(usual > 0, pl.col("work_us") > 0, pl.col("requests") > 0)
        .sort("start")
        .with_columns(seconds=(pl.col("end") - pl.col("start")).dt.total_microseconds() / US_PER_S)
        .with_columns(
            load=pl.col("work_us") / pl.col("seconds") / US_PER_S,
            factor=pl.min_horizontal(took / usual, free),
            hour=pl.col("start").dt.epoch("us") // (_HOUR // timedelta(microseconds=1)),
        )
        .with_columns(
            is_steady=(follows & precedes & is_alike(earlier) & is_alike(later)).fill_null(
                value=False
            ),
            is_restart=is_restart,
            # Half of the threads are blocked: requests queue for them, not for work.
            is_blocked=(blocked_us > took / 2)
            & (blocked_us > FREE_THREADS / 2 * pl.col("seconds") * US_PER_S),
        )
    )


def _fitted(binned: _Binned, weights: Floats) -> _Fit:
    """Fit the curve to windows that count `weights` times each."""
    totals = np.add.reduceat(weights, binned.edges)
    middle = np.cumsum(totals) - totals / 2
    medians = binned.windows.factor[np.searchsorted(np.cumsum(weights), middle)]
    bins = np.flatnonzero(totals)
    fitted = scipy.optimize.isotonic_regression(medians[bins], weights=totals[bins]).x
    calm = np.maximum(fitted <= _CALM_FACTOR * fitted[0], np.arange(len(bins)) < _FEWEST_CALM_BINS)
    baseline = _without_load(binned.loads[bins][calm], medians[bins][calm], fitted[0])
    slow = np.flatnonzero(fitted >= KNEE_FACTOR * baseline)
    crossing = int(slow[0]) if len(slow) and slow[0] else None
    return _Fit(bins, fitted, baseline, crossing)


def _without_load(loads: Floats, factors: Floats, lowest: float) -> float:
    """Return the factor without load: 1 / factor is nearly linear below the knee.

    It is exactly linear where requests share the server's processors, and constant where they only
    wait for a thread.
    """
    if len(loads) < _FEWEST_CALM_BINS:
        return lowest
    intercept = float(scipy.stats.theilslopes(1 / factors, loads).intercept)
    return lowest if intercept <= 0 else min(max(1 / intercept, lowest / 2), lowest)


def _crossing_load(binned: _Binned, fit: _Fit) -> float:
    """Return the load at which the curve reaches the knee, between two bins.

    1 / factor is interpolated, which is nearly linear: see `_without_load`.
    """
    first = fit.crossing or 0
    below, above = 1 / fit.fitted[first - 1 : first + 1]
    share = (below - 1 / (KNEE_FACTOR * fit.baseline)) / (below - above)
    low, high = binned.loads[fit.bins[first - 1 : first + 1]]
    return float(low + share * (high - low))


def _replicates(
    binned: _Binned, fit: _Fit, units: int, hour_unit: Ints, hour_load: Floats
) -> tuple[Floats, Floats]:
    """Return the bounds of the knee and the busy load in resampled units, and latencies.

    The bounds are the outer ends of the bins around the crossing. Without a crossing they are the
    load of the last bin below the crossing of `fit`, and infinity. The latencies are relative to
    those without load, with the shape (replicates, bins); NaN: no windows of the bin.
    """
    load, unit = binned.windows.load, binned.windows.unit
    lowest = np.minimum.reduceat(load, binned.edges)
    highest = np.maximum.reduceat(load, binned.edges)
    below = binned.loads[-1 if fit.crossing is None else fit.crossing - 1]
    rows = np.empty((REPLICATES, 3))
    latencies = np.full((REPLICATES, len(binned.loads)), np.nan)
    for row, latency, counts in zip(rows, latencies, _draws(units, REPLICATES), strict=True):
        drawn = _fitted(binned, counts[unit].astype(np.float64))
        if drawn.crossing is None:
            row[:2] = below, np.inf
        else:
            row[:2] = lowest[drawn.bins[drawn.crossing - 1]], highest[drawn.bins[drawn.crossing]]
        row[2] = np.quantile(np.repeat(hour_load, counts[hour_unit]), BUSY_SHARE)
        latency[drawn.bins] = drawn.fitted / drawn.baseline
    return rows, latencies


def _draws(units: int, count: int) -> Ints:
    """Return how often each unit is drawn in each replicate; the same for the same numbers."""
    chance = np.random.default_rng(units)
    return chance.multinomial(units, np.full(units, 1 / units), size=count)


def _interval(lows: Floats, highs: Floats) -> tuple[float, float | None]:
    low = float(np.nanquantile(lows, _INTERVAL[0], method="lower"))
    high = float(np.nanquantile(highs, _INTERVAL[1], method="higher"))
    return low, high if np.isfinite(high) else None


def _curve(binned: _Binned, fit: _Fit) -> pl.DataFrame:
    columns: dict[str, Any] = {
        "load": binned.loads,
        "windows": [part.stop - part.start for part in binned.parts],
        **{
            name: _by_bin(binned.windows.factor, binned.edges, share) / fit.baseline
            for name, share in (("p10", 0.1), ("median", 0.5), ("p90", 0.9))
        },
        "fitted": fit.fitted / fit.baseline,
    }
    return pl.DataFrame(columns, schema=CURVE)
