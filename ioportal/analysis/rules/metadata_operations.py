"""Metadata operations: a job does more than a server should bear."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("metadata_operations") >= thresholds["metadata_operations"],
    ).select(
        "subject",
        numbers=pl.struct("metadata_operations", "metadata_operations_per_node", "duration_s"),
    )


METADATA_OPERATIONS = Rule(
    code="metadata-operations",
    version=1,
    title="Excessive metadata operations",
    meaning=(
        "The job did so many opens, stats, creates and other metadata operations that everyone "
        "who shares the metadata server is affected, however slowly it did them. One centre "
        "contacted its users at two million operations per job."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    measure="metadata_operations",
    adds_up=True,
    thresholds={
        "metadata_operations": Threshold(2_000_000, "Metadata operations of the job", Unit.COUNT),
    },
    advice=(
        "{metadata_operations:,.0f} metadata operations in this job, "
        "{metadata_operations_per_node:,.0f} per node (threshold "
        "{threshold_metadata_operations:,.0f} per job). Keep software and its small files off "
        "Lustre (read-only NFS, CVMFS or a RAM disk), and pack small files into archives."
    ),
    check=_check,
    example=Example(
        "job 1702166 (too many operations, 64 nodes)",
        {"metadata_operations": 8_959_046, "metadata_operations_per_node": 140000.0},
    ),
    abuse_times=5,
    units={"metadata_operations_per_node": Unit.COUNT, "duration_s": Unit.SECONDS},
)
