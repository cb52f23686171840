"""Many nodes load software at once when a job begins."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject


def _share() -> pl.Expr:
    # (statistics may be a minute older than the peaks)
    done = pl.max_horizontal("metadata_operations", "startup_operations")
    return pl.col("startup_operations") / done


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        pl.col("startup_operations") >= limits["startup_operations"],
        pl.col("startup_operations") / pl.col("node_count") >= limits["startup_per_node"],
        pl.col("node_count") >= limits["startup_nodes"],
        pl.col("startup_opens") >= limits["startup_opens_share"] * pl.col("startup_operations"),
        _share() >= limits["startup_share_so_far"],
    ).select(
        "subject",
        numbers=pl.struct(
            "startup_operations",
            "startup_opens",
            "node_count",
            startup_per_node=pl.col("startup_operations") / pl.col("node_count"),
            startup_nodes="node_count",
            startup_opens_share=pl.col("startup_opens") / pl.col("startup_operations"),
            startup_share_so_far=_share(),
        ),
    )


STARTUP_STORM = Rule(
    code="startup-storm",
    version=1,
    title="Start-up storm",
    meaning=(
        "In its first five minutes the job opened very many files from very many nodes: all of "
        "them load the same software at the same moment, and go on quietly."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    measure="startup_operations",
    limits={
        "startup_operations": Limit(
            150_000, "Metadata operations in the first five minutes", Unit.COUNT
        ),
        "startup_per_node": Limit(500, "The same, for each node", Unit.COUNT),
        "startup_nodes": Limit(16, "Nodes", Unit.NODES),
        "startup_opens_share": Limit(0.38, "Share of opens among them", Unit.SHARE, most=1),
        "startup_share_so_far": Limit(
            0.7, "Share of all that it has done so far", Unit.SHARE, most=1
        ),
    },
    advice=(
        "{startup_operations:,.0f} metadata operations in the first five minutes from "
        "{node_count:,.0f} nodes, {startup_per_node:,.0f} each (limits "
        "{limit_startup_operations:,.0f} and {limit_startup_per_node:,.0f}). Put the software "
        "on a read-only NFS or CVMFS, or copy it into a RAM disk once for each node, and start "
        "jobs one after another."
    ),
    check=_check,
    example=Example(
        "job 1702203 (start-up, 96 nodes)",
        {"node_count": 96, "startup_operations": 931_724, "startup_opens": 391_320},
    ),
    abuse_times=5,
    units={"startup_opens": Unit.COUNT, "node_count": Unit.NODES},
)
