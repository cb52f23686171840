"""A host, or a process of no job, loads a metadata server."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject


def _check(hosts: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return hosts.filter(
        pl.col("rpcs") >= limits["rpcs"],
        pl.col("server_share") >= limits["server_share"],
    ).select("subject", numbers=pl.struct("rpcs", "server_share", "impact_s"))


HOST_OUTSIDE_JOBS = Rule(
    code="host-outside-jobs",
    version=1,
    title="Load from outside any job",
    meaning=(
        "Within five minutes a host without a job, such as a log-in node or a data mover, or a "
        "process that belongs to no job, sent many requests, and a notable part of all, to the "
        "filesystem's metadata servers."
    ),
    subject=Subject.HOST,
    source=Source.RPC_TRACE,
    severity=Severity.WARNING,
    measure="rpcs",
    limits={
        "rpcs": Limit(7_500, "Metadata RPCs within five minutes", Unit.RPCS),
        "server_share": Limit(0.05, "Share of the servers' RPCs", Unit.SHARE, most=1),
    },
    advice=(
        "{rpcs:,.0f} metadata RPCs within five minutes from outside any job, {server_share:.0%} "
        "of all (limits {limit_rpcs:,.0f} and {limit_server_share:.0%}). See who is logged in "
        "and what runs there; move copies, indexers and backups to hours and hosts that are "
        "meant for them."
    ),
    check=_check,
    example=Example(
        "a host that crawls through all directories", {"rpcs": 20_639, "server_share": 0.4498}
    ),
    abuse_times=5,
    units={"impact_s": Unit.SECONDS},
)
