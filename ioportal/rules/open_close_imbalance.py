"""Failed lookups: a job opens far more often than it closes."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("failures_counted"),
        pl.col("opens") - pl.col("closes") >= thresholds["failed_opens"],
        pl.col("opens") >= thresholds["open_close_ratio"] * pl.col("closes"),
    ).select(
        "subject",
        numbers=pl.struct(
            "opens", "closes", "open_close_ratio", failed_opens=pl.col("opens") - pl.col("closes")
        ),
    )


OPEN_CLOSE_IMBALANCE = Rule(
    code="open-close-imbalance",
    version=2,
    title="Failed lookups",
    meaning=(
        "Servers up to Lustre 2.13 count opens that fail. A job that opens far more often than "
        "it closes searches paths: libraries in LD_LIBRARY_PATH, modules in PYTHONPATH, "
        "programs in PATH. This is wasted work. Whether it slows down others is for other rules."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.NOTICE,
    measure="failed_opens",
    adds_up=True,
    thresholds={
        "failed_opens": Threshold(20_000, "Opens without a close", Unit.COUNT),
        "open_close_ratio": Threshold(2.5, "Opens per close", Unit.RATIO),
    },
    advice=(
        "{failed_opens:,.0f} failed opens ({opens:,.0f} opens, {closes:,.0f} closes; threshold "
        "{threshold_failed_opens:,.0f}). Shorten PYTHONPATH, PATH and LD_LIBRARY_PATH. Do not "
        "search the working directory first. Put software on read-only NFS, CVMFS or a RAM "
        "disk."
    ),
    check=_check,
    example=Example(
        "job 1702180 (failed lookups, 9 nodes)",
        {"opens": 81_885, "closes": 7_701, "failures_counted": True},
    ),
    units={"opens": Unit.COUNT, "closes": Unit.COUNT},
    caveat=(
        "Evaluated only if all servers of the job ran Lustre 2.13 or older: newer servers do "
        "not count failed opens."
    ),
)
