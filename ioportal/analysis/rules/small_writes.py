"""A job writes in very many small pieces."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        pl.col("write_bytes") / pl.col("mean_write_bytes") >= limits["writes"],
        pl.col("mean_write_bytes") < limits["mean_write_bytes"],
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
        "The job asked the servers to write very many times, a little each time: the servers "
        "are busy with requests rather than with data."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS,
    severity=Severity.NOTICE,
    measure="writes",
    limits={
        "writes": Limit(500_000, "Writes", Unit.REQUESTS),
        "mean_write_bytes": Limit(
            16_384, "Mean size of a write, at most", Unit.BYTES, least=1, at_most=True
        ),
    },
    advice=(
        "{writes:,.0f} writes of {mean_write_bytes:B} on average (limit "
        "{limit_mean_write_bytes:B} from {limit_writes:,.0f} writes on). Buffer before "
        "writing, collect small files in one, and keep SQLite databases off Lustre (RAM disk, "
        "with copy-back)."
    ),
    check=_check,
    example=Example(
        "job 1702159 (small writes, 8 nodes)", {"write_bytes": 688_958_100, "mean_write_bytes": 401}
    ),
    units={"write_bytes": Unit.BYTES},
)
