"""A job does far more on each node than all others of its size."""

from collections.abc import Mapping
from math import expm1, log1p

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.evidence import OF_PEERS
from ioportal.analysis.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds

# Of a normal distribution, the median absolute deviation is this part of the standard deviation.
_OF_DEVIATION = 0.6745
_LEAST_DEVIATION = 0.1  # of logarithms: where peers are all alike, a tenth more is no outlier


def _z_score() -> pl.Expr:
    distance = (pl.col("metadata_operations_per_node") + 1).log() - pl.col("peers_median")
    return _OF_DEVIATION * distance / pl.max_horizontal("peers_deviation", _LEAST_DEVIATION)


def _times_usual() -> pl.Expr:
    usual = pl.max_horizontal(pl.col("peers_median").exp() - 1, 1)
    return pl.col("metadata_operations_per_node") / usual


def score_of(per_node: pl.Expr, numbers: Mapping[str, float]) -> pl.Expr:
    """Return the score of metadata operations a node among the peers of a finding: its numbers."""
    usual, found = _logarithms(numbers)
    return numbers["z_score"] * ((per_node + 1).log() - usual) / (found - usual)


def at_threshold(numbers: Mapping[str, float], thresholds: Thresholds) -> float:
    """Return the metadata operations per node that have the threshold score."""
    usual, found = _logarithms(numbers)
    return expm1(usual + (found - usual) * thresholds["z_score"] / numbers["z_score"])


def _logarithms(numbers: Mapping[str, float]) -> tuple[float, float]:
    return log1p(numbers["usual_per_node"]), log1p(numbers["metadata_operations_per_node"])


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("peers") >= thresholds["fewest_peers"],
        pl.col("metadata_operations") >= thresholds["metadata_operations"],
        _times_usual() >= thresholds["times_usual"],
        _z_score() >= thresholds["z_score"],
    ).select(
        "subject",
        numbers=pl.struct(
            "metadata_operations_per_node",
            "metadata_operations",
            "peers",
            usual_per_node=pl.col("peers_median").exp() - 1,
            z_score=_z_score(),
            times_usual=_times_usual(),
            fewest_peers="peers",
        ),
    )


OUTLIER = Rule(
    code="outlier",
    version=1,
    title="Outlier among jobs of its size",
    meaning=(
        "The job's metadata operations per node are far beyond those of jobs of its size: of the "
        "month before, on its cluster, on node counts between the same powers of two (robust "
        "z-score: distance from their median over their median deviation, of logarithms)."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.NOTICE,
    measure="z_score",
    thresholds={
        "z_score": Threshold(2.5, "Robust z-score", Unit.RATIO, minimum=2),
        "times_usual": Threshold(27, "Times what is usual on a node", Unit.RATIO, minimum=1),
        "metadata_operations": Threshold(20_000, "Metadata operations of the job", Unit.COUNT),
        "fewest_peers": Threshold(20, "Peers, at least", Unit.JOBS, minimum=10),
    },
    advice=(
        "{metadata_operations_per_node:,.0f} metadata operations a node, where "
        "{usual_per_node:,.0f} are usual among {peers:,.0f} jobs of its size (robust z-score "
        "{z_score:.1f}, threshold {threshold_z_score:.1f}). Compare its input, its software, "
        "and its temporary files with those of other jobs."
    ),
    check=_check,
    example=Example(
        "job 1702208 (outlier, 2 nodes)",
        {
            "metadata_operations": 182_997,
            "metadata_operations_per_node": 91500.0,
            "peers": 493,
            "peers_median": 7.147,
            "peers_deviation": 0.5265,
        },
    ),
    usual=OF_PEERS,
    units={
        "metadata_operations_per_node": Unit.COUNT,
        "peers": Unit.JOBS,
        "usual_per_node": Unit.COUNT,
    },
)
