"""A job's processors idled while it did heavy input or output."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject

_HOUR_S = 3600


def _idle_core_hours() -> pl.Expr:
    return (1 - pl.col("cpu_efficiency")) * pl.col("core_count") * pl.col("duration_s") / _HOUR_S


def _io_bytes() -> pl.Expr:
    known = pl.col("read_bytes").is_not_null() | pl.col("write_bytes").is_not_null()
    return pl.when(known).then(pl.sum_horizontal("read_bytes", "write_bytes"))


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        pl.col("has_ended"),
        pl.col("cpu_efficiency") <= limits["cpu_efficiency"],
        _idle_core_hours() >= limits["idle_core_hours"],
        (_io_bytes() >= limits["io_bytes"])
        | (pl.col("metadata_operations") >= limits["metadata_operations"]),
    ).select(
        "subject",
        numbers=pl.struct(
            "cpu_efficiency",
            "metadata_operations",
            io_bytes=_io_bytes(),
            idle_core_hours=_idle_core_hours(),
        ),
    )


LOW_CPU_EFFICIENCY = Rule(
    code="low-cpu-efficiency",
    version=1,
    title="Idle processors beside heavy I/O",
    meaning=(
        "The job has ended, used little of the processor time that it held, and did heavy input "
        "or output: most likely its processors waited for the filesystem."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS,
    severity=Severity.NOTICE,
    measure="idle_core_hours",
    limits={
        "idle_core_hours": Limit(10, "Core-hours that idled", Unit.CORE_HOURS),
        "cpu_efficiency": Limit(0.08, "CPU efficiency, at most", Unit.SHARE, most=1, at_most=True),
        "io_bytes": Limit(5e11, "Bytes read and written", Unit.BYTES),
        "metadata_operations": Limit(
            250_000, "Metadata operations, if not so many bytes", Unit.COUNT
        ),
    },
    advice=(
        "{idle_core_hours:,.0f} core-hours idled (CPU efficiency {cpu_efficiency:.0%}, limit "
        "{limit_cpu_efficiency:.0%}) beside {io_bytes:B} and "
        "{metadata_operations:,.0f} metadata operations. Use fewer nodes for this step, or have "
        "its input read ahead and its small files in a RAM disk."
    ),
    check=_check,
    example=Example(
        "job 1702168 (idle processors, 14 nodes)",
        {
            "core_count": 224,
            "duration_s": 1_200,
            "cpu_efficiency": 0.02792,
            "write_bytes": 1_063_801_323_520,
            "metadata_operations": 9_693,
            "has_ended": True,
        },
    ),
)
