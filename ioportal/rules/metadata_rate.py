"""Metadata rate: a job keeps a high metadata rate on each node."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules import capacity
from ioportal.rules.evidence import SUSTAINED_SPAN
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("sustained_operations") / pl.col("node_count") >= thresholds["sustained_per_node"],
        pl.col("sustained_operations") >= thresholds["sustained_operations"],
        capacity.share("sustained_operations", SUSTAINED_SPAN) >= thresholds["capacity_share"],
    ).select(
        "subject",
        numbers=pl.struct(
            "sustained_operations",
            "capacity_per_s",
            sustained_per_node=pl.col("sustained_operations") / pl.col("node_count"),
            capacity_share=capacity.share("sustained_operations", SUSTAINED_SPAN),
        ),
    )


METADATA_RATE = Rule(
    code="metadata-rate",
    version=2,
    title="Sustained metadata rate",
    meaning=(
        "Within ten minutes the job did very many metadata operations on each of its nodes. "
        "Short bursts and large jobs with little activity per node are excluded."
    ),
    subject=Subject.JOB,
    source=Source.JOB_STATS_MDT,
    severity=Severity.WARNING,
    needs_harm=True,
    measure="sustained_per_node",
    thresholds={
        "sustained_per_node": Threshold(
            60_000, "Metadata operations per node within ten minutes", Unit.COUNT
        ),
        "sustained_operations": Threshold(
            150_000, "Metadata operations within ten minutes", Unit.COUNT
        ),
        "capacity_share": capacity.threshold(0.02),
    },
    advice=(
        "{sustained_per_node:,.0f} metadata operations per node within ten minutes, "
        "{sustained_operations:,.0f} in total (thresholds {threshold_sustained_per_node:,.0f} "
        "and {threshold_sustained_operations:,.0f}). Keep files open between accesses, and "
        "do not poll files in a loop."
    ),
    check=_check,
    example=Example(
        "job 1702210 (sustained rate, 6 nodes)",
        {"node_count": 6, "sustained_operations": 619_566, "capacity_per_s": 5_000},
    ),
    abuse_times=5,
    units=capacity.UNITS,
)
