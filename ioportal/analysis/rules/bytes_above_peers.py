"""A job reads far more than others of its name."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.evidence import OF_NAMESAKES
from ioportal.analysis.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("read_bytes") >= thresholds["read_bytes"],
        pl.col("namesakes") >= thresholds["fewest_peers"],
        pl.col("read_bytes") >= thresholds["times_peers"] * pl.col("namesakes_read_bytes"),
    ).select(
        "subject",
        numbers=pl.struct(
            "read_bytes",
            "namesakes",
            "namesakes_read_bytes",
            times_peers=pl.col("read_bytes") / pl.col("namesakes_read_bytes"),
            fewest_peers="namesakes",
        ),
    )


BYTES_ABOVE_PEERS = Rule(
    code="bytes-above-peers",
    version=1,
    title="Reads far above its peers",
    meaning=(
        "The job read far more bytes than jobs of the same name on the same cluster usually do: "
        "it may read the same data again and again."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS,
    severity=Severity.NOTICE,
    measure="read_bytes",
    thresholds={
        "read_bytes": Threshold(50e9, "Bytes read", Unit.BYTES),
        "times_peers": Threshold(10, "Times the median of its peers", Unit.RATIO, minimum=1),
        "fewest_peers": Threshold(20, "Peers, at least", Unit.JOBS, minimum=10),
    },
    advice=(
        "{read_bytes:B} read; half of {namesakes:,.0f} jobs of this name read less than "
        "{namesakes_read_bytes:B} (threshold {threshold_times_peers:,.0f} times). Look whether it "
        "reads the same input again and again: keep it in memory or in a RAM disk."
    ),
    check=_check,
    example=Example(
        "job 1702188 (reads above peers, 1 node)",
        {"read_bytes": 276_001_980_416, "namesakes": 255, "namesakes_read_bytes": 7_950_303_232},
    ),
    usual=OF_NAMESAKES,
    units={"namesakes": Unit.JOBS, "namesakes_read_bytes": Unit.BYTES},
)
