"""A job keeps a high metadata rate on each of its nodes."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        pl.col("sustained_operations") / pl.col("node_count") >= limits["sustained_per_node"],
        pl.col("sustained_operations") >= limits["sustained_operations"],
    ).select(
        "subject",
        numbers=pl.struct(
            "sustained_operations",
            sustained_per_node=pl.col("sustained_operations") / pl.col("node_count"),
        ),
    )


METADATA_RATE = Rule(
    code="metadata-rate",
    version=1,
    title="Sustained metadata rate",
    meaning=(
        "Within ten minutes the job did very many metadata operations on each of its nodes: it is "
        "not large, but each process asks without pause. A hurry of a minute or two is not meant, "
        "nor are large jobs that do a little on every node."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    measure="sustained_per_node",
    limits={
        "sustained_per_node": Limit(
            60_000, "Metadata operations within ten minutes, for each node", Unit.COUNT
        ),
        "sustained_operations": Limit(150_000, "The same, of all nodes", Unit.COUNT),
    },
    advice=(
        "{sustained_per_node:,.0f} metadata operations on each node within ten minutes, "
        "{sustained_operations:,.0f} altogether (limits {limit_sustained_per_node:,.0f} and "
        "{limit_sustained_operations:,.0f}). Keep files open instead of opening them for each "
        "piece of work, do not poll files in a loop, and run fewer such jobs at once."
    ),
    check=_check,
    example=Example(
        "job 1702210 (sustained rate, 6 nodes)", {"node_count": 6, "sustained_operations": 619_566}
    ),
    abuse_times=5,
)
