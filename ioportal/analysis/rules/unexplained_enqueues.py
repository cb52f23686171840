"""A job asks for locks that no counted operation explains: look-ups that fail, most likely."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Limit, Limits, Rule, Severity, Subject


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        ~pl.col("failures_counted"),
        pl.col("peak_unexplained") >= limits["peak_unexplained"],
    ).select("subject", numbers=pl.struct("peak_unexplained", "metadata_rpcs", "opens"))


UNEXPLAINED_ENQUEUES = Rule(
    code="unexplained-enqueues",
    version=1,
    title="Look-ups that nothing explains",
    meaning=(
        "Servers from Lustre 2.14 on do not count opens that find nothing, but each asks for a "
        "lock. Where a trace shows far more lock enqueues than counted operations could cause, "
        "the job most likely searches paths. This is an inference."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    measure="peak_unexplained",
    limits={
        "peak_unexplained": Limit(
            30_000, "Enqueues that no counted operation explains, within five minutes", Unit.RPCS
        ),
    },
    advice=(
        "{peak_unexplained:,.0f} look-ups within five minutes found nothing, as far as can be "
        "told (limit {limit_peak_unexplained:,.0f}). Shorten PYTHONPATH, PATH and "
        "LD_LIBRARY_PATH, do not have the working directory searched first, and put software on "
        "a read-only NFS or CVMFS, or into a RAM disk."
    ),
    check=_check,
    abuse_times=10,
    units={"metadata_rpcs": Unit.RPCS, "opens": Unit.COUNT},
    caveat="An inference: needs a trace and job_stats of the same time.",
)
