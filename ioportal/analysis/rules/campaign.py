"""One user's many jobs add up."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject


def _check(users: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return users.filter(
        pl.col("metadata_operations") >= limits["metadata_operations"],
        pl.col("jobs") >= limits["jobs"],
        pl.col("largest_job_operations") <= limits["largest_share"] * pl.col("metadata_operations"),
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
        "The jobs of one user that ran within a day did together, over all of their runs, as many "
        "metadata operations as several abusive jobs, though no single one stands out."
    ),
    subject=Subject.USER,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    measure="metadata_operations",
    limits={
        "metadata_operations": Limit(
            20_000_000, "Metadata operations of the user's jobs within a day", Unit.COUNT
        ),
        "jobs": Limit(20, "Jobs, at least", Unit.JOBS, least=2),
        "largest_share": Limit(
            0.2, "Share of the largest job, at most", Unit.SHARE, most=1, at_most=True
        ),
    },
    advice=(
        "{metadata_operations:,.0f} metadata operations of {jobs:,.0f} jobs within a day (limit "
        "{limit_metadata_operations:,.0f}). Submit fewer of them at once, and fix what they "
        "have in common: each does too many."
    ),
    check=_check,
    example=Example(
        "a user who submits many jobs",
        {"jobs": 33, "metadata_operations": 28_465_974, "largest_job_operations": 1_380_153},
    ),
    abuse_times=5,
)
