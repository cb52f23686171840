"""A job makes and removes files all the time."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject


def _churn() -> pl.Expr:
    return pl.min_horizontal("count_mknod", "count_unlink")


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        pl.col("count_mknod").is_not_null() & pl.col("count_unlink").is_not_null(),
        _churn() >= limits["churned_files"],
        _churn() / pl.col("node_count") >= limits["churn_per_node"],
    ).select(
        "subject",
        numbers=pl.struct(
            "count_mknod",
            "count_unlink",
            churned_files=_churn(),
            churn_per_node=_churn() / pl.col("node_count"),
        ),
    )


CREATE_UNLINK_CHURN = Rule(
    code="create-unlink-churn",
    version=1,
    title="Files made and removed",
    meaning=(
        "The job made and removed very many files, and many on each of its nodes: temporary files, "
        "lock files, or the journals of SQLite. Checkpoints of large jobs, a file for each node, "
        "are not meant."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    measure="churned_files",
    limits={
        "churned_files": Limit(60_000, "Files that were made, and as many removed", Unit.COUNT),
        "churn_per_node": Limit(500, "The same, for each node", Unit.COUNT),
    },
    advice=(
        "{churned_files:,.0f} files made and removed, {churn_per_node:,.0f} on each node (limits "
        "{limit_churned_files:,.0f} and {limit_churn_per_node:,.0f}). Keep temporary files and "
        "SQLite databases in a RAM disk or on a local disk, and copy back what is to stay; stripe "
        "count 1 for directories of many small files."
    ),
    check=_check,
    example=Example(
        "job 1702160 (temporary files, 9 nodes)",
        {"node_count": 9, "count_mknod": 257_762, "count_unlink": 255_210},
    ),
    abuse_times=5,
    units={"count_mknod": Unit.COUNT, "count_unlink": Unit.COUNT},
)
