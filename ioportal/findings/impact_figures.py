"""Figures about impact from sums of `ImpactWindow`s, of jobs and of groups alike."""

from __future__ import annotations

import polars as pl

AMOUNTS = (
    "impact_us",
    "work_us",
    "all_work_us",
    "others_us",
    "others_usual_us",
    "estimated_us",  # the part of the impact that is estimated
)
FIGURES = {  # of sums of `AMOUNTS`
    "peak_impact_s": pl.col("impact_us") / 1e6,
    "impact_share": pl.col("work_us") / pl.col("all_work_us"),
    "impact_times": (pl.col("others_us") / pl.col("others_usual_us")).fill_nan(None),
    "impact_is_estimated": pl.col("estimated_us") > pl.col("impact_us") / 2,
}
