"""Unexplained lock enqueues: probably failed lookups on servers that do not count them."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _unexplained() -> pl.Expr:
    """Every operation except close may need a lock. Gaps in the trace lower the result."""
    return pl.col("counted_enqueues") - (pl.col("metadata_operations") - pl.col("closes"))


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        ~pl.col("failures_counted"),
        _unexplained() >= thresholds["unexplained_enqueues"],
        pl.col("counted_enqueues")
        >= thresholds["enqueues_per_operation"]
        * (pl.col("metadata_operations") - pl.col("closes")),
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
    version=2,
    title="Unexplained lock enqueues",
    meaning=(
        "Servers from Lustre 2.14 on do not count failed opens, but each needs a lock. If a "
        "trace shows far more lock enqueues than the counted operations can cause, the job "
        "probably searches paths. This is wasted work. Whether it slows down others is for other "
        "rules."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.NOTICE,
    measure="unexplained_enqueues",
    adds_up=True,
    thresholds={
        "unexplained_enqueues": Threshold(18_000, "Unexplained lock enqueues", Unit.RPCS),
        "enqueues_per_operation": Threshold(
            1.5, "Lock enqueues per operation that may need a lock", Unit.RATIO
        ),
    },
    advice=(
        "About {unexplained_enqueues:,.0f} failed lookups (threshold "
        "{threshold_unexplained_enqueues:,.0f}), inferred from {counted_enqueues:,.0f} lock "
        "enqueues and {metadata_operations:,.0f} counted operations. Shorten PYTHONPATH, PATH "
        "and LD_LIBRARY_PATH. Do not search the working directory first. Put software on "
        "read-only NFS, CVMFS or a RAM disk."
    ),
    check=_check,
    example=Example(
        "job 1702226 (failed lookups, 34 nodes)",
        {
            "metadata_operations": 8_015,
            "closes": 3_129,
            "counted_enqueues": 31_798,
            "failures_counted": False,
        },
    ),
    units={"counted_enqueues": Unit.RPCS, "metadata_operations": Unit.COUNT, "opens": Unit.COUNT},
    caveat="An inference. Needs a trace and job_stats of the same time.",
)
