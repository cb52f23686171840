"""A job does more metadata operations than a server should bear."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        pl.col("metadata_operations") >= limits["metadata_operations"],
    ).select(
        "subject",
        numbers=pl.struct("metadata_operations", "metadata_operations_per_node", "duration_s"),
    )


METADATA_OPERATIONS = Rule(
    code="metadata-operations",
    version=1,
    title="Very many metadata operations",
    meaning=(
        "The job did so many opens, stats, creates and other metadata operations that it is "
        "felt by everybody who shares the metadata server, however slowly it did them. Two "
        "million a job is what the centre of the seeds complained about."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    measure="metadata_operations",
    limits={
        "metadata_operations": Limit(2_000_000, "Metadata operations of the job", Unit.COUNT),
    },
    advice=(
        "{metadata_operations:,.0f} metadata operations in this job, "
        "{metadata_operations_per_node:,.0f} a node (limit {limit_metadata_operations:,.0f} a "
        "job). Keep software and its small files off Lustre (a read-only NFS or CVMFS, or a RAM "
        "disk), and pack many small files into a few."
    ),
    check=_check,
    example=Example(
        "job 1702166 (too many operations, 64 nodes)",
        {"metadata_operations": 8_959_046, "metadata_operations_per_node": 140000.0},
    ),
    abuse_times=5,
    units={"metadata_operations_per_node": Unit.COUNT, "duration_s": Unit.SECONDS},
)
