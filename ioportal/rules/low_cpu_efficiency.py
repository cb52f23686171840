"""Low CPU efficiency: a job's processors idled during heavy I/O."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds

_HOUR_S = 3600


def _idle_core_hours() -> pl.Expr:
    return (1 - pl.col("cpu_efficiency")) * pl.col("core_count") * pl.col("duration_s") / _HOUR_S


def _io_bytes() -> pl.Expr:
    known = pl.col("read_bytes").is_not_null() | pl.col("write_bytes").is_not_null()
    return pl.when(known).then(pl.sum_horizontal("read_bytes", "write_bytes"))


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("has_ended"),
        pl.col("cpu_efficiency") <= thresholds["cpu_efficiency"],
        _idle_core_hours() >= thresholds["idle_core_hours"],
        (_io_bytes() >= thresholds["io_bytes"])
        | (pl.col("metadata_operations") >= thresholds["metadata_operations"]),
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
    title="Low CPU efficiency with heavy I/O",
    meaning=(
        "The job has ended, used little of its allocated processor time, and did heavy I/O. Its "
        "processors probably waited for the filesystem."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS,
    severity=Severity.NOTICE,
    measure="idle_core_hours",
    adds_up=True,
    thresholds={
        "idle_core_hours": Threshold(10, "Idle core-hours", Unit.CORE_HOURS),
        "cpu_efficiency": Threshold(
            0.08, "Maximum CPU efficiency", Unit.SHARE, maximum=1, is_ceiling=True
        ),
        "io_bytes": Threshold(5e11, "Bytes read and written", Unit.BYTES),
        "metadata_operations": Threshold(250_000, "Or: metadata operations", Unit.COUNT),
    },
    advice=(
        "{idle_core_hours:,.0f} idle core-hours (CPU efficiency {cpu_efficiency:.0%}, threshold "
        "{threshold_cpu_efficiency:.0%}) with {io_bytes:B} of I/O and "
        "{metadata_operations:,.0f} metadata operations. Use fewer nodes for this step, "
        "prefetch its input, or keep its small files on a RAM disk."
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
