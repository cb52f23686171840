"""Outlier: a job does far more metadata operations per node than similar jobs."""

from collections.abc import Mapping
from math import expm1, log1p

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds

# Median absolute deviation / standard deviation of a normal distribution.
_MAD_PER_DEVIATION = 0.6745
_MIN_DEVIATION = 0.1  # of logarithms: among equal jobs, 10 % more is no outlier


def _z_score() -> pl.Expr:
    distance = (pl.col("metadata_operations_per_node") + 1).log() - (
        pl.col("usual_operations") + 1
    ).log()
    return _MAD_PER_DEVIATION * distance / pl.max_horizontal("usual_deviation", _MIN_DEVIATION)


def _times_usual() -> pl.Expr:
    return pl.col("metadata_operations_per_node") / pl.max_horizontal("usual_operations", 1)


def score_at(per_node: pl.Expr, numbers: Mapping[str, float]) -> pl.Expr:
    """Return the score of some metadata operations per node, by the numbers of a finding."""
    usual, actual = _logarithms(numbers)
    return numbers["z_score"] * ((per_node + 1).log() - usual) / (actual - usual)


def at_threshold(numbers: Mapping[str, float], thresholds: Thresholds) -> float:
    """Return the metadata operations per node whose score is the threshold."""
    usual, actual = _logarithms(numbers)
    return expm1(usual + (actual - usual) * thresholds["z_score"] / numbers["z_score"])


def _logarithms(numbers: Mapping[str, float]) -> tuple[float, float]:
    return log1p(numbers["usual_operations"]), log1p(numbers["metadata_operations_per_node"])


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("similar_jobs") >= thresholds["similar_jobs"],
        pl.col("metadata_operations") >= thresholds["metadata_operations"],
        _times_usual() >= thresholds["times_usual"],
        pl.col("metadata_operations_per_node") >= thresholds["times_high"] * pl.col("usual_high"),
        _z_score() >= thresholds["z_score"],
    ).select(
        "subject",
        numbers=pl.struct(
            "metadata_operations_per_node",
            "metadata_operations",
            "similar_jobs",
            "usual_operations",
            "usual_high",
            z_score=_z_score(),
            times_usual=_times_usual(),
            times_high=pl.col("metadata_operations_per_node") / pl.max_horizontal("usual_high", 1),
        ),
    )


OUTLIER = Rule(
    code="outlier",
    version=2,
    title="Outlier among similar jobs",
    meaning=(
        "The job's metadata operations per node far exceed the usual value, by a robust z-score: "
        "the distance from the median of similar jobs over their median deviation, of logarithms. "
        "They also exceed the 95th percentile several times: a site has several kinds of work, "
        "and the less frequent kind is no outlier."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.NOTICE,
    measure="z_score",
    plain_measure="times_usual",
    thresholds={
        "z_score": Threshold(2.5, "Robust z-score", Unit.RATIO, minimum=2),
        "times_usual": Threshold(
            27, "Operations per node relative to usual", Unit.RATIO, minimum=1
        ),
        "times_high": Threshold(
            5, "Operations per node relative to the 95th percentile", Unit.RATIO, minimum=1
        ),
        "metadata_operations": Threshold(100_000, "Metadata operations of the job", Unit.COUNT),
        "similar_jobs": Threshold(20, "Minimum number of similar jobs", Unit.JOBS, minimum=10),
    },
    advice=(
        "{metadata_operations_per_node:,.0f} metadata operations per node; the median of "
        "{similar_jobs:,.0f} similar jobs is {usual_operations:,.0f} (robust z-score "
        "{z_score:.1f}, threshold {threshold_z_score:.1f}). Compare its input, software paths and "
        "temporary files with similar jobs."
    ),
    check=_check,
    example=Example(
        "job 1702208 (outlier, 2 nodes)",
        {
            "metadata_operations": 182_997,
            "metadata_operations_per_node": 91500.0,
            "similar_jobs": 493,
            "usual_operations": 1_270,
            "usual_high": 6_300,
            "usual_deviation": 0.5265,
        },
    ),
    usual=("similar_jobs", "usual_operations", "usual_high", "usual_deviation"),
    units={
        "metadata_operations_per_node": Unit.COUNT,
        "usual_operations": Unit.COUNT,
        "usual_high": Unit.COUNT,
    },
)
