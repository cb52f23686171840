"""Campaign: many jobs of one user add up."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(users: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return users.filter(
        pl.col("metadata_operations") >= thresholds["metadata_operations"],
        pl.col("jobs") >= thresholds["jobs"],
        pl.col("largest_job_operations")
        <= thresholds["largest_share"] * pl.col("metadata_operations"),
    ).select(
        "subject",
        numbers=pl.struct(
            "metadata_operations",
            "jobs",
            largest_share=pl.col("largest_job_operations") / pl.col("metadata_operations"),
        ),
    )


CAMPAIGN = Rule(
    code="campaign",
    version=1,
    title="Campaign of one user",
    meaning=(
        "All jobs of one user that ran within a day did as many metadata operations in total as "
        "several abusive jobs, although no single job stands out."
    ),
    subject=Subject.USER,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    measure="metadata_operations",
    thresholds={
        "metadata_operations": Threshold(
            20_000_000, "Metadata operations of all jobs within a day", Unit.COUNT
        ),
        "jobs": Threshold(20, "Minimum number of jobs", Unit.JOBS, minimum=2),
        "largest_share": Threshold(
            0.2, "Maximum share of the largest job", Unit.SHARE, maximum=1, is_ceiling=True
        ),
    },
    advice=(
        "{metadata_operations:,.0f} metadata operations of {jobs:,.0f} jobs within a day "
        "(threshold {threshold_metadata_operations:,.0f}). Run fewer jobs concurrently, and "
        "reduce the metadata operations of each."
    ),
    check=_check,
    example=Example(
        "a user who submits many jobs",
        {"jobs": 33, "metadata_operations": 28_465_974, "largest_job_operations": 1_380_153},
    ),
    abuse_times=5,
)
