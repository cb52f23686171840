"""A job keeps a high metadata rate on each of its nodes."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Limit, Limits, Rule, Severity, Subject


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        pl.col("peak_operations") >= limits["peak_operations"],
        pl.col("peak_operations") / pl.col("node_count") >= limits["peak_per_node"],
    ).select(
        "subject",
        numbers=pl.struct(
            "peak_operations", peak_per_node=pl.col("peak_operations") / pl.col("node_count")
        ),
    )


METADATA_RATE = Rule(
    code="metadata-rate",
    version=1,
    title="Sustained metadata rate",
    meaning=(
        "Within five minutes the job did very many metadata operations, and very many on each "
        "of its nodes: it is not large, but each process asks without pause. Large jobs that do "
        "a little on every node are not meant."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    measure="peak_operations",
    limits={
        "peak_operations": Limit(300_000, "Metadata operations within five minutes", Unit.COUNT),
        "peak_per_node": Limit(10_000, "The same, for each node", Unit.COUNT),
    },
    advice=(
        "{peak_operations:,.0f} metadata operations within five minutes, {peak_per_node:,.0f} "
        "on each node (limits {limit_peak_operations:,.0f} and {limit_peak_per_node:,.0f}). "
        "Keep files open instead of opening them for each piece of work, do not poll files in a "
        "loop, and run fewer such jobs at once."
    ),
    check=_check,
    abuse_times=5,
)
