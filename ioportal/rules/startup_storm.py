"""Start-up storm: many nodes load software simultaneously when a job begins."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules import capacity
from ioportal.rules.evidence import PEAK_SPAN
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _share() -> pl.Expr:
    # Statistics may be a minute older than the peaks.
    done = pl.max_horizontal("metadata_operations", "startup_operations")
    return pl.col("startup_operations") / done


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("startup_operations") >= thresholds["startup_operations"],
        pl.col("startup_operations") / pl.col("node_count") >= thresholds["startup_per_node"],
        pl.col("node_count") >= thresholds["startup_nodes"],
        pl.col("startup_opens") >= thresholds["startup_opens_share"] * pl.col("startup_operations"),
        _share() >= thresholds["startup_share_so_far"],
        capacity.share("startup_operations", PEAK_SPAN) >= thresholds["capacity_share"],
    ).select(
        "subject",
        numbers=pl.struct(
            "startup_operations",
            "startup_opens",
            "node_count",
            "capacity_per_s",
            startup_per_node=pl.col("startup_operations") / pl.col("node_count"),
            startup_nodes="node_count",
            startup_opens_share=pl.col("startup_opens") / pl.col("startup_operations"),
            startup_share_so_far=_share(),
            capacity_share=capacity.share("startup_operations", PEAK_SPAN),
        ),
    )


STARTUP_STORM = Rule(
    code="startup-storm",
    version=2,
    title="Start-up storm",
    meaning=(
        "In its first five minutes the job opened very many files from many nodes. All nodes "
        "load the same software at the same time; the rest of the run is quiet."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    needs_harm=True,
    measure="startup_operations",
    adds_up=True,
    thresholds={
        "startup_operations": Threshold(
            150_000, "Metadata operations in the first five minutes", Unit.COUNT
        ),
        "startup_per_node": Threshold(
            500, "Metadata operations per node in the first five minutes", Unit.COUNT
        ),
        "startup_nodes": Threshold(16, "Nodes", Unit.NODES),
        "startup_opens_share": Threshold(0.38, "Share of opens among these", Unit.SHARE, maximum=1),
        "startup_share_so_far": Threshold(
            0.7, "Share of all its metadata operations so far", Unit.SHARE, maximum=1
        ),
        "capacity_share": capacity.threshold(0.02),
    },
    advice=(
        "{startup_operations:,.0f} metadata operations in the first five minutes from "
        "{node_count:,.0f} nodes, {startup_per_node:,.0f} per node (thresholds "
        "{threshold_startup_operations:,.0f} and {threshold_startup_per_node:,.0f}). Put the "
        "software on read-only NFS or CVMFS, or copy it to a RAM disk once per node. Stagger "
        "the start of jobs."
    ),
    check=_check,
    example=Example(
        "job 1702203 (start-up, 96 nodes)",
        {
            "node_count": 96,
            "startup_operations": 931_724,
            "startup_opens": 391_320,
            "capacity_per_s": 5_000,
        },
    ),
    abuse_times=5,
    units={**capacity.UNITS, "startup_opens": Unit.COUNT, "node_count": Unit.NODES},
)
