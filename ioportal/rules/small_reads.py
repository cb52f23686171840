"""Small reads: a job reads in many small requests."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("read_bytes") / pl.col("mean_read_bytes") >= thresholds["reads"],
        pl.col("mean_read_bytes") < thresholds["mean_read_bytes"],
    ).select(
        "subject",
        numbers=pl.struct(
            "mean_read_bytes", "read_bytes", reads=pl.col("read_bytes") / pl.col("mean_read_bytes")
        ),
    )


SMALL_READS = Rule(
    code="small-reads",
    version=1,
    title="Small reads",
    meaning=(
        "The job sent very many small read requests. The servers spend their time on requests "
        "instead of data."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS,
    severity=Severity.NOTICE,
    measure="reads",
    adds_up=True,
    thresholds={
        "reads": Threshold(500_000, "Reads", Unit.REQUESTS),
        "mean_read_bytes": Threshold(
            16_384, "Maximum mean read size", Unit.BYTES, minimum=1, is_ceiling=True
        ),
    },
    advice=(
        "{reads:,.0f} reads of {mean_read_bytes:B} on average (thresholds "
        "{threshold_reads:,.0f} reads and {threshold_mean_read_bytes:B}). Read in larger blocks "
        "(4 MiB buffer), coalesce reads of neighbouring branches, or copy the file to a RAM "
        "disk first."
    ),
    check=_check,
    example=Example(
        "job 1702241 (small reads, 14 nodes)",
        {"read_bytes": 8_410_347_387, "mean_read_bytes": 3_133},
    ),
    units={"read_bytes": Unit.BYTES},
)
