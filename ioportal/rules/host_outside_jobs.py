"""Load from outside jobs: a host or process without a job loads a metadata server."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules import capacity
from ioportal.rules.evidence import PEAK_SPAN
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(hosts: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return hosts.filter(
        pl.col("rpcs") >= thresholds["rpcs"],
        pl.col("server_share") >= thresholds["server_share"],
        capacity.share("rpcs", PEAK_SPAN) >= thresholds["capacity_share"],
    ).select(
        "subject",
        numbers=pl.struct(
            "rpcs",
            "server_share",
            "impact_s",
            "capacity_per_s",
            capacity_share=capacity.share("rpcs", PEAK_SPAN),
        ),
    )


HOST_OUTSIDE_JOBS = Rule(
    code="host-outside-jobs",
    version=3,
    title="Load from outside jobs",
    meaning=(
        "Within five minutes a host or process outside any job sent many metadata RPCs, and a "
        "notable share of all metadata RPCs of the filesystem. Typical hosts are login nodes "
        "and data movers. RPCs with job ids that no job explains after ten minutes count for their "
        "host, separately, if it never runs jobs."
    ),
    subject=Subject.HOST,
    source=Source.RPC_TRACE,
    severity=Severity.WARNING,
    needs_harm=True,
    measure="rpcs",
    thresholds={
        "rpcs": Threshold(7_500, "Metadata RPCs within five minutes", Unit.RPCS),
        "server_share": Threshold(0.05, "Share of all metadata RPCs", Unit.SHARE, maximum=1),
        "capacity_share": capacity.threshold(0.01),
    },
    advice=(
        "{rpcs:,.0f} metadata RPCs within five minutes from outside jobs, {server_share:.0%} of "
        "all (thresholds {threshold_rpcs:,.0f} and {threshold_server_share:.0%}). Check who is "
        "logged in and which processes run. Move copies, indexers and backups to dedicated "
        "hosts and quiet hours."
    ),
    check=_check,
    example=Example(
        "a host that crawls all directories",
        {"rpcs": 20_639, "server_share": 0.4498, "capacity_per_s": 5_000},
    ),
    abuse_times=5,
    units={**capacity.UNITS, "impact_s": Unit.SECONDS_OF_WAITING},
)
