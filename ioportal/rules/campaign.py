"""Campaign: many jobs of an application, a user or a project add up."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules import capacity
from ioportal.rules.evidence import DAY
from ioportal.rules.rule import PART_SHARE, Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(groups: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    is_flagged_as_part = _is_campaign(
        "part_operations", "part_jobs", "part_largest_job_operations", thresholds
    ) & (pl.col("part_operations") >= PART_SHARE * pl.col("metadata_operations"))
    return groups.filter(
        _is_campaign("metadata_operations", "jobs", "largest_job_operations", thresholds),
        ~is_flagged_as_part.fill_null(value=False),
        capacity.share("metadata_operations", DAY) >= thresholds["capacity_share"],
    ).select(
        "subject",
        numbers=pl.struct(
            "metadata_operations",
            "jobs",
            "capacity_per_s",
            capacity_share=capacity.share("metadata_operations", DAY),
            largest_share=pl.col("largest_job_operations") / pl.col("metadata_operations"),
        ),
    )


def _is_campaign(operations: str, jobs: str, largest: str, thresholds: Thresholds) -> pl.Expr:
    return (
        (pl.col(operations) >= thresholds["metadata_operations"])
        & (pl.col(jobs) >= thresholds["jobs"])
        & (pl.col(largest) <= thresholds["largest_share"] * pl.col(operations))
    )


CAMPAIGN = Rule(
    code="campaign",
    version=3,
    title="Campaign of many jobs",
    meaning=(
        "Within 24 hours, the jobs of one application of a user or a project, of one user or of "
        "one project did as many metadata operations in total as several abusive jobs, although "
        "none stands out. The narrowest group with at least half of the operations is flagged."
    ),
    subject=Subject.USER,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    needs_harm=True,
    measure="metadata_operations",
    thresholds={
        "metadata_operations": Threshold(
            20_000_000, "Metadata operations of all jobs within 24 hours", Unit.COUNT, 1e6
        ),
        "jobs": Threshold(20, "Minimum number of jobs", Unit.JOBS, minimum=2),
        "largest_share": Threshold(
            0.2, "Maximum share of the largest job", Unit.SHARE, maximum=1, is_ceiling=True
        ),
        "capacity_share": capacity.threshold(0.004),
    },
    advice=(
        "{metadata_operations:,.0f} metadata operations of {jobs:,.0f} jobs within 24 hours "
        "(threshold {threshold_metadata_operations:,.0f}). Run fewer jobs concurrently, and "
        "reduce the metadata operations of each."
    ),
    check=_check,
    example=Example(
        "a user who submits many jobs",
        {
            "jobs": 33,
            "metadata_operations": 28_465_974,
            "largest_job_operations": 1_380_153,
            "capacity_per_s": 5_000,
        },
    ),
    abuse_times=5,
    units=capacity.UNITS,
)
