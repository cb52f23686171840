"""A job asks for locks that no counted operation explains: look-ups that fail, most likely."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject


def _unexplained() -> pl.Expr:
    """Each operation but a close may ask for a lock; where not all was traced, more did."""
    return pl.col("counted_enqueues") - (pl.col("metadata_operations") - pl.col("closes"))


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        ~pl.col("failures_counted"),
        _unexplained() >= limits["unexplained_enqueues"],
        pl.col("counted_enqueues")
        >= limits["enqueues_per_operation"] * (pl.col("metadata_operations") - pl.col("closes")),
    ).select(
        "subject",
        numbers=pl.struct(
            "counted_enqueues",
            "metadata_operations",
            "opens",
            unexplained_enqueues=_unexplained(),
            enqueues_per_operation=pl.col("counted_enqueues")
            / (pl.col("metadata_operations") - pl.col("closes")),
        ),
    )


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
    measure="unexplained_enqueues",
    limits={
        "unexplained_enqueues": Limit(
            18_000, "Lock enqueues that no counted operation explains", Unit.RPCS
        ),
        "enqueues_per_operation": Limit(
            1.5, "Lock enqueues per operation that may ask for a lock", Unit.RATIO
        ),
    },
    advice=(
        "{unexplained_enqueues:,.0f} look-ups found nothing, as far as can be told (limit "
        "{limit_unexplained_enqueues:,.0f}; {counted_enqueues:,.0f} lock enqueues, "
        "{metadata_operations:,.0f} operations counted). Shorten PYTHONPATH, PATH and "
        "LD_LIBRARY_PATH, do not have the working directory searched first, and put software on a "
        "read-only NFS or CVMFS, or into a RAM disk."
    ),
    check=_check,
    example=Example(
        "job 1702226 (failed look-ups, 34 nodes)",
        {
            "metadata_operations": 8_015,
            "closes": 3_129,
            "counted_enqueues": 31_798,
            "failures_counted": False,
        },
    ),
    abuse_times=10,
    units={"counted_enqueues": Unit.RPCS, "metadata_operations": Unit.COUNT, "opens": Unit.COUNT},
    caveat="An inference: needs a trace and job_stats of the same time.",
)
