"""A job reads in very many small pieces."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        pl.col("read_bytes") / pl.col("mean_read_bytes") >= limits["reads"],
        pl.col("mean_read_bytes") < limits["mean_read_bytes"],
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
        "The job asked the servers to read very many times, a little each time: the servers are "
        "busy with requests rather than with data."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS,
    severity=Severity.NOTICE,
    measure="reads",
    limits={
        "reads": Limit(500_000, "Reads", Unit.REQUESTS),
        "mean_read_bytes": Limit(
            16_384, "Mean size of a read, at most", Unit.BYTES, least=1, at_most=True
        ),
    },
    advice=(
        "{reads:,.0f} reads of {mean_read_bytes:B} on average (limit "
        "{limit_mean_read_bytes:B} from {limit_reads:,.0f} reads on). Read ahead in "
        "larger pieces (a buffer of 4 MiB), coalesce reads of neighbouring branches, or copy "
        "the file into a RAM disk first."
    ),
    check=_check,
    example=Example(
        "job 1702241 (small reads, 14 nodes)",
        {"read_bytes": 8_410_347_387, "mean_read_bytes": 3_133},
    ),
    units={"read_bytes": Unit.BYTES},
)
