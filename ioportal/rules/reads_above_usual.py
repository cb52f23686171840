"""Reads above usual: a job reads far more than similar jobs."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _times(usual: str) -> pl.Expr:
    known = pl.col(usual).is_not_null()
    return pl.when(known).then(pl.col("read_bytes") / pl.max_horizontal(usual, 1))


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("read_bytes") >= thresholds["read_bytes"],
        pl.col("similar_jobs_with_bytes") >= thresholds["similar_jobs"],
        _times("usual_read_bytes") >= thresholds["times_usual"],
        _times("usual_read_high") >= thresholds["times_high"],
    ).select(
        "subject",
        numbers=pl.struct(
            "read_bytes",
            "usual_read_bytes",
            "usual_read_high",
            times_high=_times("usual_read_high"),
            times_usual=_times("usual_read_bytes"),
            similar_jobs="similar_jobs_with_bytes",
        ),
    )


READS_ABOVE_USUAL = Rule(
    code="reads-above-usual",
    version=2,
    title="Reads far above usual",
    meaning=(
        "The job read far more bytes than similar jobs usually read, and several times their 95th "
        "percentile. It may read the same data repeatedly."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS,
    severity=Severity.NOTICE,
    measure="read_bytes",
    adds_up=True,
    thresholds={
        "read_bytes": Threshold(50e9, "Bytes read", Unit.BYTES),
        "times_usual": Threshold(
            10, "Bytes read relative to the median of similar jobs", Unit.RATIO, minimum=1
        ),
        "times_high": Threshold(
            10, "Bytes read relative to the 95th percentile", Unit.RATIO, minimum=1
        ),
        "similar_jobs": Threshold(20, "Minimum number of similar jobs", Unit.JOBS, minimum=10),
    },
    advice=(
        "{read_bytes:B} read. The median of {similar_jobs:,.0f} similar jobs is "
        "{usual_read_bytes:B} (threshold {threshold_times_usual:,.0f} times). Check whether the "
        "job reads the same input repeatedly. Keep it in memory or on a RAM disk."
    ),
    check=_check,
    example=Example(
        "job 1702188 (reads above usual, 1 node)",
        {
            "read_bytes": 276_001_980_416,
            "similar_jobs_with_bytes": 255,
            "usual_read_bytes": 7_950_303_232,
            "usual_read_high": 19_000_000_000,
        },
    ),
    usual=("similar_jobs_with_bytes", "usual_read_bytes", "usual_read_high"),
    units={"usual_read_bytes": Unit.BYTES, "usual_read_high": Unit.BYTES},
)
