"""Stat storm: a job queries file attributes continuously."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules import capacity
from ioportal.rules.evidence import PEAK_SPAN
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("peak_stats") >= thresholds["peak_stats"],
        pl.col("peak_stats") >= thresholds["stats_share"] * pl.col("peak_operations"),
        capacity.share("peak_stats", PEAK_SPAN) >= thresholds["capacity_share"],
    ).select(
        "subject",
        numbers=pl.struct(
            "peak_stats",
            "capacity_per_s",
            stats_share=pl.col("peak_stats") / pl.col("peak_operations"),
            capacity_share=capacity.share("peak_stats", PEAK_SPAN),
        ),
    )


STAT_STORM = Rule(
    code="stat-storm",
    version=2,
    title="Stat storm",
    meaning=(
        "Within five minutes the job queried the attributes of very many files and did little "
        "else. It lists or polls directories."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    needs_harm=True,
    measure="peak_stats",
    thresholds={
        "peak_stats": Threshold(240_000, "Stats within five minutes", Unit.COUNT),
        "stats_share": Threshold(
            0.6, "Share of stats among its metadata operations", Unit.SHARE, maximum=1
        ),
        "capacity_share": capacity.threshold(0.04),
    },
    advice=(
        "{peak_stats:,.0f} stats within five minutes (threshold {threshold_peak_stats:,.0f}), "
        "{stats_share:.0%} of its metadata operations. Do not poll files or list large "
        "directories in a loop (`ls -l`, `find`, `du`). Query the policy engine, or use `lfs "
        "find`, which needs no stat."
    ),
    check=_check,
    example=Example(
        "job 1702171 (stat storm, 30 nodes)",
        {"peak_operations": 632_447, "peak_stats": 518_606, "capacity_per_s": 5_000},
    ),
    abuse_times=5,
    units=capacity.UNITS,
)
