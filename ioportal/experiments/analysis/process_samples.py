"""Samples of a run's processes: rates of counters, levels, and totals.

Counters are sums over living and ended processes. In old versions of prmon they fall when a process
vanishes: only increases count, so that totals are lower bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from collectors.tables import PROCESS_LEVELS, PROCESS_TOTALS

MOST_POINTS = 500  # of a curve
CORES = "cores"  # column: CPU time per time
_CPU = ("utime_s", "stime_s")


def curves(samples: pl.DataFrame, most_points: int = MOST_POINTS) -> pl.DataFrame:
    """Return levels and rates over time.

    Args:
        samples: columns of `tables.PROCESS_SAMPLES` except ``line``, in any order; null: unknown.
        most_points: neighbouring samples are joined beyond this number.

    Returns:
        Columns ``elapsed_s`` (end of the interval), each of `PROCESS_LEVELS` (the highest of the
        joined samples), a rate per second of each of `PROCESS_TOTALS`, and ``cores``. The first
        row has no rates. A fall of a counter counts as no increase.
    """
    ordered = samples.sort("elapsed_s").unique("elapsed_s", keep="last", maintain_order=True)
    every = max(-(-ordered.height // most_points), 1)
    increases = ordered.select(
        "elapsed_s",
        *PROCESS_LEVELS,
        *(pl.col(name).diff().clip(lower_bound=0) for name in PROCESS_TOTALS),
        seconds=pl.col("elapsed_s").diff(),
    )
    joined = increases.group_by(
        part=(pl.int_range(pl.len()) + every - 1) // every, maintain_order=True
    ).agg(
        pl.col("elapsed_s").last(),
        pl.col(*PROCESS_LEVELS).max(),
        # A sum of unknown values is unknown, not 0.
        *(
            pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()).alias(name)
            for name in PROCESS_TOTALS
        ),
        pl.col("seconds").sum(),
    )
    rates = [
        pl.when(pl.col("seconds") > 0).then(pl.col(name) / pl.col("seconds")).alias(name)
        for name in PROCESS_TOTALS
    ]
    return joined.select("elapsed_s", *PROCESS_LEVELS, *rates).with_columns(
        pl.sum_horizontal(_CPU, ignore_nulls=False).alias(CORES)
    )


@dataclass(frozen=True)
class Totals:
    """Figures of a run; None: not sampled."""

    samples: int
    seconds: float  # since the start, at the last sample
    highest: dict[str, float | None]  # by level
    totals: dict[str, float | None]  # by counter: sum of increases, with the first value
    falls: dict[str, int]  # number of decreases, of counters that fall

    @property
    def cores(self) -> float | None:
        """Mean number of busy cores."""
        user_s, system_s = (self.totals[name] for name in _CPU)
        if user_s is None or system_s is None or not self.seconds:
            return None
        return (user_s + system_s) / self.seconds


def totals(samples: pl.DataFrame) -> Totals:
    """Return the figures of a run.

    Args:
        samples: as in `curves`.
    """
    ordered = samples.sort("elapsed_s")
    summed, falls = {}, {}
    for name in PROCESS_TOTALS:
        known = ordered[name].drop_nulls()
        steps = known.diff().drop_nulls()
        summed[name] = float(known[0] + steps.clip(lower_bound=0).sum()) if known.len() else None
        if fell := int((steps < 0).sum()):
            falls[name] = fell
    return Totals(
        samples.height,
        float(ordered["elapsed_s"].max() or 0),  # type: ignore[arg-type]  # a column of floats
        {name: _maximum(samples[name]) for name in PROCESS_LEVELS},
        summed,
        falls,
    )


def _maximum(values: pl.Series) -> float | None:
    highest = values.max()
    return None if highest is None else float(highest)  # type: ignore[arg-type]  # a float
