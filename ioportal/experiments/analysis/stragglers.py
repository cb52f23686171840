"""Stragglers: how long slow targets stay slow and fast nodes fast, and whether that helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import scipy

from ioportal.experiments.analysis.bursts import FAST, SLOW
from ioportal.jobs.analysis.comparison.results import CONFIDENCE
from ioportal.load.analysis.load_ramp import Interval

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]
    Ints: TypeAlias = npt.NDArray[np.int64]
    Bools: TypeAlias = npt.NDArray[np.bool_]

MIN_EPISODES = 5
MIN_COMPONENTS = 10  # targets or clients, which are resampled
RECOVERY_S = (120.0, 600.0)
LAGS_S = (60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0)
USEFUL = 0.1  # skill below which the past is of no practical use
_RESAMPLES = 1_000
_SEED = 20
_TOLERANCE = 0.5  # of a lag: how much older the earlier burst may be
_TAIL = (1 - CONFIDENCE) / 2


def states(transfers: pl.DataFrame, component: str) -> pl.DataFrame:
    """Return the state of each target or client in each burst.

    Args:
        transfers: `bursts.Bursts.transfers`.
        component: ``target`` or ``client``.

    Returns:
        Columns component, burst, start_s (of the burst), slowness (median of its transfers), slow
        and fast; sorted by component and burst.
    """
    starts = transfers.group_by("burst").agg(pl.min("start_s"))
    return (
        transfers.group_by(component, "burst")
        .agg(pl.median("slowness"))
        .join(starts, on="burst")
        .select(
            "burst",
            "start_s",
            "slowness",
            component=component,
            slow=pl.col("slowness") > SLOW,
            fast=pl.col("slowness") < FAST,
        )
        .sort("component", "burst")
    )


@dataclass(frozen=True)
class Persistence:
    """How long a state lasts.

    `times_s` and `lasting` are the survival function: the share of episodes that last longer than
    a time. `ended` has the share that ended within each of `RECOVERY_S`; None: too few episodes.
    """

    episodes: int
    unfinished: int  # still lasting at the end of the series
    times_s: tuple[float, ...]
    lasting: tuple[float, ...]
    ended: dict[float, Interval | None]


def persistence(series: pl.DataFrame, state: str) -> Persistence:
    """Measure how long a state lasts, from its first burst to the first burst without it.

    An episode that lasts at the end of the series is censored (Kaplan-Meier). Episodes that began
    before the series are left out: their beginning is unknown. The interval of a share is Wilson's,
    over the episodes whose outcome at that time is known.

    Args:
        series: see `states`.
        state: ``slow`` or ``fast``.
    """
    runs = (
        series.with_columns(run=pl.col(state).rle_id().over("component"))
        .group_by("component", "run", maintain_order=True)
        .agg(pl.first("start_s", state), last=pl.last("start_s"))
        .with_columns(
            end=pl.col("start_s").shift(-1).over("component"),
            last=pl.col("last").max().over("component"),
        )
        .filter(pl.col(state), pl.col("run") > 0)
    )
    is_over = runs["end"].is_not_null().to_numpy()
    ends = runs.select(pl.coalesce("end", "last") - pl.col("start_s")).to_series().to_numpy()
    if not ends.size:
        return Persistence(0, 0, (), (), dict.fromkeys(RECOVERY_S))
    times, lasting = _survival(ends, is_over)
    return Persistence(
        ends.size,
        int((~is_over).sum()),
        times,
        lasting,
        {limit: _share_ended(ends, is_over, limit) for limit in RECOVERY_S},
    )


def _survival(durations: Floats, is_over: Bools) -> tuple[tuple[float, ...], ...]:
    """Return the steps of the survival function, from time 0."""
    if not is_over.any():
        return (0.0, float(durations.max())), (1.0, 1.0)
    censored = scipy.stats.CensoredData(uncensored=durations[is_over], right=durations[~is_over])
    survival = scipy.stats.ecdf(censored).sf
    return (0.0, *survival.quantiles.tolist()), (1.0, *survival.probabilities.tolist())


def _share_ended(durations: Floats, is_over: Bools, limit_s: float) -> Interval | None:
    ended = int((is_over & (durations <= limit_s)).sum())
    known = ended + int((durations > limit_s).sum())
    return share(ended, known) if known >= MIN_EPISODES else None


def share(part: int, whole: int) -> Interval:
    """Return a share with Wilson's interval; `whole` is at least 1."""
    bounds = scipy.stats.binomtest(part, whole).proportion_ci(CONFIDENCE, method="wilson")
    return Interval(part / whole, float(bounds.low), float(bounds.high))


@dataclass(frozen=True)
class Skill:
    """Whether components that were slow some time ago are slow now.

    Attributes:
        lag_s: the time between the two bursts.
        pairs: number of compared states.
        base: share of slow states.
        after_slow: share of slow states of components that were slow before; None: none were.
        skill: 1 - share of slow states without the avoided components / `base`: 0 if the past does
            not help, 1 if avoiding them avoids all stragglers.
    """

    lag_s: float
    pairs: int
    base: float
    after_slow: float | None
    skill: Interval

    @property
    def is_useful(self) -> bool:
        """Whether avoiding slow components surely avoids some stragglers."""
        return self.skill.low > 0 and self.skill.high > USEFUL

    @property
    def is_useless(self) -> bool:
        """Whether the skill is surely below `USEFUL`."""
        return self.skill.high < USEFUL


def skills(series: pl.DataFrame) -> list[Skill]:
    """Compare "avoid components slow some minutes ago" with no information, for several lags.

    The earlier burst is the latest one at least a lag before, and at most half a lag older;
    components without a transfer in either are not compared. The interval resamples components
    (percentiles), whose states at different times are related.

    Args:
        series: see `states`.

    Returns:
        Nothing for lags without such bursts, with fewer than `MIN_COMPONENTS` components, or
        without slow states.
    """
    bursts, places = np.unique(series["burst"].to_numpy(), return_inverse=True)
    starts_s = np.zeros(bursts.size)
    starts_s[places] = series["start_s"].to_numpy()
    components = series["component"].rank("dense").to_numpy().astype(np.int64) - 1
    slow = series["slow"].to_numpy()
    counts = ((lag_s, _counts(components, places, slow, starts_s, lag_s)) for lag_s in LAGS_S)
    return [skill for lag_s, each in counts if (skill := _skill(each, lag_s))]


def _counts(components: Ints, bursts: Ints, slow: Bools, starts_s: Floats, lag_s: float) -> Floats:
    """Return sums by component: pairs, slow, without earlier slowness, and slow of these.

    Args:
        components: shape (n,), from 0, in ascending order.
        bursts: shape (n,), from 0; of a component in ascending order.
        slow: shape (n,).
        starts_s: start of each burst.
        lag_s: time between the compared bursts.
    """
    count = starts_s.size
    earlier = np.searchsorted(starts_s, starts_s - lag_s, side="right") - 1
    is_known = earlier >= 0
    age_s = starts_s - starts_s[earlier]
    is_known &= age_s <= (1 + _TOLERANCE) * lag_s
    keys = components * count + bursts
    wanted = components * count + earlier[bursts]
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    is_pair = is_known[bursts] & (keys[place] == wanted)
    now, kept = slow[is_pair], ~slow[place[is_pair]]
    columns = (np.ones(now.shape), now, kept, now & kept)
    size = int(components[-1]) + 1 if components.size else 0
    sums = np.stack(
        [np.bincount(components[is_pair], each, minlength=size) for each in columns], axis=1
    )
    compared: Floats = sums[sums[:, 0] > 0].astype(float)
    return compared


def _skill(counts: Floats, lag_s: float) -> Skill | None:
    if counts.shape[0] < MIN_COMPONENTS or not counts[:, 1].sum() or not counts[:, 2].sum():
        return None
    whole = counts.sum(axis=0)
    generator = np.random.default_rng(_SEED)
    components = counts.shape[0]
    weights = generator.multinomial(components, [1 / components] * components, size=_RESAMPLES)
    low, high = np.nanquantile(_skill_of(weights @ counts), (_TAIL, 1 - _TAIL)).tolist()
    pairs, slow, kept, slow_kept = whole.tolist()
    avoided = pairs - kept
    return Skill(
        lag_s,
        int(pairs),
        slow / pairs,
        (slow - slow_kept) / avoided if avoided else None,
        Interval(float(_skill_of(whole[None, :])[0]), low, high),
    )


def _skill_of(sums: Floats) -> Floats:
    """Return the skill of each row of pairs, slow, kept and slow_kept."""
    pairs, slow, kept, slow_kept = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        skill: Floats = 1 - slow_kept / kept / (slow / pairs)
    return skill
