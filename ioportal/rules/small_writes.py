"""Small writes: a job writes in many small requests."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("write_bytes") / pl.col("mean_write_bytes") >= thresholds["writes"],
        pl.col("mean_write_bytes") < thresholds["mean_write_bytes"],
    ).select(
        "subject",
        numbers=pl.struct(
            "mean_write_bytes",
            "write_bytes",
            writes=pl.col("write_bytes") / pl.col("mean_write_bytes"),
        ),
    )


SMALL_WRITES = Rule(
    code="small-writes",
    version=1,
    title="Small writes",
    meaning=(
        "The job sent very many small write requests. The servers spend their time on requests "
        "instead of data."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS,
    severity=Severity.NOTICE,
    measure="writes",
    adds_up=True,
    thresholds={
        "writes": Threshold(500_000, "Writes", Unit.REQUESTS),
        "mean_write_bytes": Threshold(
            16_384, "Maximum mean write size", Unit.BYTES, minimum=1, is_ceiling=True
        ),
    },
    advice=(
        "{writes:,.0f} writes of {mean_write_bytes:B} on average (thresholds "
        "{threshold_writes:,.0f} writes and {threshold_mean_write_bytes:B}). Buffer writes, "
        "combine small files into one, and keep SQLite databases off Lustre (RAM disk, with a "
        "copy at the end)."
    ),
    check=_check,
    example=Example(
        "job 1702159 (small writes, 8 nodes)", {"write_bytes": 688_958_100, "mean_write_bytes": 401}
    ),
    units={"write_bytes": Unit.BYTES},
)
