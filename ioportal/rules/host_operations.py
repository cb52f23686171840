"""Operations from outside jobs: a host without a job and without a trace loads an MDT."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules import capacity
from ioportal.rules.evidence import PEAK_SPAN
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(hosts: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return hosts.filter(
        pl.col("rpcs").is_null(),  # otherwise a trace shows them: host-outside-jobs
        pl.col("operations") >= thresholds["operations"],
        pl.col("operations_share") >= thresholds["operations_share"],
        capacity.share("operations", PEAK_SPAN) >= thresholds["capacity_share"],
    ).select(
        "subject",
        numbers=pl.struct(
            "operations",
            "operations_share",
            "capacity_per_s",
            capacity_share=capacity.share("operations", PEAK_SPAN),
        ),
    )


HOST_OPERATIONS = Rule(
    code="host-operations",
    version=1,
    title="Operations from outside jobs",
    meaning=(
        "Without an RPC trace: within five minutes a host outside any job caused many metadata "
        "operations, and a notable share of all metadata operations of the filesystem. Typical "
        "hosts are login nodes and data movers."
    ),
    subject=Subject.HOST,
    source=Source.EXPORTS,
    severity=Severity.WARNING,
    needs_harm=True,
    measure="operations",
    thresholds={
        "operations": Threshold(7_500, "Metadata operations within five minutes", Unit.COUNT),
        "operations_share": Threshold(
            0.05, "Share of all metadata operations", Unit.SHARE, maximum=1
        ),
        "capacity_share": capacity.threshold(0.01),
    },
    advice=(
        "{operations:,.0f} metadata operations within five minutes from outside jobs, "
        "{operations_share:.0%} of all (thresholds {threshold_operations:,.0f} and "
        "{threshold_operations_share:.0%}). Check who is logged in and which processes run. Move "
        "copies, indexers and backups to dedicated hosts and quiet hours."
    ),
    check=_check,
    example=Example(
        "a login node that crawls all directories",
        {"operations": 20_639, "operations_share": 0.4498, "capacity_per_s": 5_000},
    ),
    abuse_times=5,
    caveat="A node whose job is not known yet counts as a host until its record arrives.",
    units=capacity.UNITS,
)
