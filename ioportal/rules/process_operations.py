"""Operations of processes: outside jobs, processes without a trace load an MDT."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules import capacity
from ioportal.rules.evidence import PEAK_SPAN
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(hosts: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    share = capacity.share("process_operations", PEAK_SPAN)
    return hosts.filter(
        pl.col("process_operations") >= thresholds["process_operations"],
        pl.col("process_operations_share") >= thresholds["process_operations_share"],
        share >= thresholds["capacity_share"],
    ).select(
        "subject",
        numbers=pl.struct(
            "process_operations",
            "process_operations_share",
            "capacity_per_s",
            capacity_share=share,
        ),
    )


PROCESS_OPERATIONS = Rule(
    code="process-operations",
    version=1,
    title="Operations of processes outside jobs",
    meaning=(
        "Without an RPC trace: within five minutes the processes of a user outside any job caused "
        "many metadata operations, and a notable share of all metadata operations of the "
        "filesystem. All processes with the same user id count together; a process whose name has "
        "no user id counts alone."
    ),
    subject=Subject.HOST,
    source=Source.JOB_STATS_MDT,
    severity=Severity.NOTICE,
    measure="process_operations",
    thresholds={
        "process_operations": Threshold(
            7_500, "Metadata operations within five minutes", Unit.COUNT
        ),
        "process_operations_share": Threshold(
            0.05, "Share of all metadata operations", Unit.SHARE, maximum=1
        ),
        "capacity_share": capacity.threshold(0.01),
    },
    advice=(
        "{process_operations:,.0f} metadata operations within five minutes from processes outside "
        "jobs, {process_operations_share:.0%} of all (thresholds "
        "{threshold_process_operations:,.0f} and {threshold_process_operations_share:.0%}). Check "
        "what these processes do. Move copies, indexers and backups to dedicated hosts and quiet "
        "hours."
    ),
    check=_check,
    example=Example(
        "a user's du and find over all directories",
        {
            "process_operations": 20_639,
            "process_operations_share": 0.4498,
            "capacity_per_s": 5_000,
        },
    ),
    caveat=(
        "Always a notice: job_stats do not show whether others waited. Where job ids come from the "
        "environment, any user can invent the name of a process."
    ),
    units=capacity.UNITS,
)
