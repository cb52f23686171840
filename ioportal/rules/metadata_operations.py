"""Metadata operations: a job does more than a server should bear."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules import capacity
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _per_node_hour() -> pl.Expr:
    return pl.col("metadata_operations_per_node") / (capacity.duration_s() / 3_600)


def _capacity_share() -> pl.Expr:
    return capacity.share_of_run(pl.col("metadata_operations"))


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("metadata_operations") >= thresholds["metadata_operations"],
        _per_node_hour() >= thresholds["operations_per_node_hour"],
        _capacity_share() >= thresholds["capacity_share"],
    ).select(
        "subject",
        numbers=pl.struct(
            "metadata_operations",
            "metadata_operations_per_node",
            "duration_s",
            "capacity_per_s",
            operations_per_node_hour=_per_node_hour(),
            capacity_share=_capacity_share(),
        ),
    )


METADATA_OPERATIONS = Rule(
    code="metadata-operations",
    version=2,
    title="Excessive metadata operations",
    meaning=(
        "The job did very many opens, stats, creates and other metadata operations, in total and "
        "for each hour of its nodes. Long runs at a low rate, and large jobs with few operations "
        "per node, are excluded. One centre contacted its users at two million operations per job."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    needs_harm=True,
    measure="metadata_operations",
    adds_up=True,
    thresholds={
        "metadata_operations": Threshold(2_000_000, "Metadata operations of the job", Unit.COUNT),
        "operations_per_node_hour": Threshold(
            1_000, "Metadata operations per node-hour", Unit.COUNT
        ),
        "capacity_share": capacity.threshold(0.004),
    },
    advice=(
        "{metadata_operations:,.0f} metadata operations in this job, "
        "{operations_per_node_hour:,.0f} per node-hour (thresholds "
        "{threshold_metadata_operations:,.0f} and {threshold_operations_per_node_hour:,.0f}). Keep "
        "software and its small files off Lustre (read-only NFS, CVMFS or a RAM disk), and pack "
        "small files into archives."
    ),
    check=_check,
    example=Example(
        "job 1702166 (too many operations, 64 nodes)",
        {
            "metadata_operations": 8_959_046,
            "metadata_operations_per_node": 140000.0,
            "duration_s": 7_200,
            "capacity_per_s": 5_000,
        },
    ),
    abuse_times=5,
    units={
        **capacity.UNITS,
        "metadata_operations_per_node": Unit.COUNT,
        "duration_s": Unit.SECONDS,
    },
)
