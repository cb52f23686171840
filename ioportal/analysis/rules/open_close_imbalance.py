"""A job opens far more often than it closes: most of its look-ups find nothing."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        pl.col("failures_counted"),
        pl.col("opens") - pl.col("closes") >= limits["failed_opens"],
        pl.col("opens") >= limits["open_close_ratio"] * pl.col("closes"),
    ).select(
        "subject",
        numbers=pl.struct(
            "opens", "closes", "open_close_ratio", failed_opens=pl.col("opens") - pl.col("closes")
        ),
    )


OPEN_CLOSE_IMBALANCE = Rule(
    code="open-close-imbalance",
    version=1,
    title="Failed look-ups",
    meaning=(
        "Servers up to Lustre 2.13 count opens that find nothing. A job that opens far more "
        "often than it closes searches paths: libraries along LD_LIBRARY_PATH, modules along "
        "PYTHONPATH, programs along PATH."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    measure="failed_opens",
    limits={
        "failed_opens": Limit(20_000, "Opens beyond closes", Unit.COUNT),
        "open_close_ratio": Limit(2.5, "Opens per close", Unit.RATIO),
    },
    advice=(
        "{failed_opens:,.0f} opens found nothing ({opens:,.0f} opens, {closes:,.0f} closes; "
        "limit {limit_failed_opens:,.0f}). Shorten PYTHONPATH, PATH and LD_LIBRARY_PATH, do not "
        "have the working directory searched first, and put software on a read-only NFS or "
        "CVMFS, or into a RAM disk."
    ),
    check=_check,
    example=Example(
        "job 1702180 (failed look-ups, 9 nodes)",
        {"opens": 81_885, "closes": 7_701, "failures_counted": True},
    ),
    abuse_times=10,
    units={"opens": Unit.COUNT, "closes": Unit.COUNT},
    caveat=(
        "Judged only where all servers of the job ran 2.13 or older while it ran: newer ones do "
        "not count opens that fail."
    ),
)
