"""Short-lived files: a job creates and removes many files."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules import capacity
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _churn() -> pl.Expr:
    return pl.min_horizontal("count_mknod", "count_unlink")


def _capacity_share() -> pl.Expr:
    return capacity.share_of_run(pl.col("count_mknod") + pl.col("count_unlink"))


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("count_mknod").is_not_null() & pl.col("count_unlink").is_not_null(),
        _churn() >= thresholds["churned_files"],
        _churn() / pl.col("node_count") >= thresholds["churn_per_node"],
        _capacity_share() >= thresholds["capacity_share"],
    ).select(
        "subject",
        numbers=pl.struct(
            "count_mknod",
            "count_unlink",
            "capacity_per_s",
            churned_files=_churn(),
            churn_per_node=_churn() / pl.col("node_count"),
            capacity_share=_capacity_share(),
        ),
    )


CREATE_UNLINK_CHURN = Rule(
    code="create-unlink-churn",
    version=2,
    title="Short-lived files",
    meaning=(
        "The job created and removed many files, in total and on each of its nodes: temporary "
        "files, lock files or SQLite journals. Checkpoints with one file per node are excluded."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    needs_harm=True,
    measure="churned_files",
    adds_up=True,
    thresholds={
        "churned_files": Threshold(60_000, "Files created and removed", Unit.COUNT),
        "churn_per_node": Threshold(500, "Files created and removed per node", Unit.COUNT),
        "capacity_share": capacity.threshold(0.002),
    },
    advice=(
        "{churned_files:,.0f} files created and removed, {churn_per_node:,.0f} on each node "
        "(thresholds {threshold_churned_files:,.0f} and {threshold_churn_per_node:,.0f}). Keep "
        "temporary files and SQLite databases on a RAM disk or local disk, and copy results "
        "back at the end. Use stripe count 1 for directories of many small files."
    ),
    check=_check,
    example=Example(
        "job 1702160 (temporary files, 9 nodes)",
        {
            "node_count": 9,
            "count_mknod": 257_762,
            "count_unlink": 255_210,
            "duration_s": 3_600,
            "capacity_per_s": 5_000,
        },
    ),
    abuse_times=5,
    units={**capacity.UNITS, "count_mknod": Unit.COUNT, "count_unlink": Unit.COUNT},
)
