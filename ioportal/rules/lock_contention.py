"""Lock contention: the nodes of a job wait for each other's locks."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("peak_locks_s") >= thresholds["peak_locks_s"],
        pl.col("lock_share") >= thresholds["lock_share"],
        pl.col("lock_ratio") >= thresholds["lock_ratio"],
    ).select("subject", numbers=pl.struct("peak_locks_s", "lock_share", "lock_ratio"))


LOCK_CONTENTION = Rule(
    code="lock-contention",
    version=1,
    title="Lock contention",
    meaning=(
        "Within five minutes the job's lock enqueues occupied threads of the metadata server "
        "for a long time, and took far longer than other lock enqueues. Its nodes compete for "
        "one file or directory."
    ),
    subject=Subject.JOB,
    source=Source.RPC_TRACE,
    severity=Severity.WARNING,
    needs_harm=True,
    measure="peak_locks_s",
    thresholds={
        "peak_locks_s": Threshold(
            90, "Service time of lock enqueues within five minutes", Unit.SECONDS
        ),
        "lock_share": Threshold(
            0.3, "Share of lock enqueues among its RPCs", Unit.SHARE, maximum=1
        ),
        "lock_ratio": Threshold(
            50, "Service time relative to other enqueues", Unit.TIMES, minimum=1
        ),
    },
    advice=(
        "Lock enqueues of the job occupied server threads for {peak_locks_s:,.0f} s within five "
        "minutes (threshold {threshold_peak_locks_s:,.0f} s). Each took {lock_ratio:,.0f} times "
        "as long as other enqueues. Let each node write its own file in its own directory, and "
        "merge the results at the end."
    ),
    check=_check,
    example=Example(
        "job 1702205 (lock contention, 48 nodes)",
        {"peak_locks_s": 207.1, "lock_share": 0.6173, "lock_ratio": 552.4},
    ),
    abuse_times=5,
)
