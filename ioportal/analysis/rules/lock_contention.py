"""The nodes of a job wait for each other's locks."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        pl.col("peak_locks_s") >= limits["peak_locks_s"],
        pl.col("lock_share") >= limits["lock_share"],
        pl.col("lock_ratio") >= limits["lock_ratio"],
    ).select("subject", numbers=pl.struct("peak_locks_s", "lock_share", "lock_ratio"))


LOCK_CONTENTION = Rule(
    code="lock-contention",
    version=1,
    title="Lock contention",
    meaning=(
        "Within five minutes the job's lock enqueues occupied threads of the metadata server "
        "for long, and took far longer than those of everybody else: its nodes fight for one "
        "file or directory."
    ),
    subject=Subject.JOB,
    source=Source.RPC_TRACE,
    severity=Severity.WARNING,
    measure="peak_locks_s",
    limits={
        "peak_locks_s": Limit(
            90, "Service time of its lock enqueues within five minutes", Unit.SECONDS
        ),
        "lock_share": Limit(0.3, "Share of enqueues among its RPCs", Unit.SHARE, most=1),
        "lock_ratio": Limit(50, "Times as long as others' enqueues", Unit.RATIO, least=1),
    },
    advice=(
        "Its lock enqueues kept the server's threads busy for {peak_locks_s:,.0f} s within five "
        "minutes (limit {limit_peak_locks_s:,.0f} s), {lock_ratio:,.0f} times as long each as "
        "others'. Let each node write a file and a directory of its own, and collect the "
        "results at the end."
    ),
    check=_check,
    example=Example(
        "job 1702205 (lock contention, 48 nodes)",
        {"peak_locks_s": 207.1, "lock_share": 0.6173, "lock_ratio": 552.4},
    ),
    abuse_times=5,
)
