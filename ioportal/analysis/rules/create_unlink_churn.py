"""A job makes and removes files all the time."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Limit, Limits, Rule, Severity, Subject


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        pl.col("peak_churn") >= limits["peak_churn"],
        pl.col("peak_churn") / pl.col("node_count") >= limits["churn_per_node"],
    ).select(
        "subject",
        numbers=pl.struct("peak_churn", churn_per_node=pl.col("peak_churn") / pl.col("node_count")),
    )


CREATE_UNLINK_CHURN = Rule(
    code="create-unlink-churn",
    version=1,
    title="Files made and removed",
    meaning=(
        "Within five minutes the job made and removed very many files: temporary files, lock "
        "files, or the journals of SQLite."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    measure="peak_churn",
    limits={
        "peak_churn": Limit(15_000, "Files made and removed within five minutes", Unit.COUNT),
        "churn_per_node": Limit(300, "The same, for each node", Unit.COUNT),
    },
    advice=(
        "{peak_churn:,.0f} files made and removed within five minutes, {churn_per_node:,.0f} on "
        "each node (limits {limit_peak_churn:,.0f} and {limit_churn_per_node:,.0f}). Keep "
        "temporary files and SQLite databases in a RAM disk or on a local disk, and copy back "
        "what is to stay; stripe count 1 for directories of many small files."
    ),
    check=_check,
    abuse_times=5,
)
