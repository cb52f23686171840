"""Contradicted job ids: a job or host sends RPCs with the job ids of other jobs.

`ioportal.ingest.attribution.rpc_claims` compares job ids with nodes and users.
"""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(hosts: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return hosts.filter(pl.col("contradicted_rpcs") >= thresholds["contradicted_rpcs"]).select(
        "subject", numbers=pl.struct("contradicted_rpcs", hosts="contradicted_hosts")
    )


CONTRADICTED_JOB_IDS = Rule(
    code="contradicted-job-ids",
    version=2,
    title="Job ids of other jobs",
    meaning=(
        "Within five minutes a job or host sent many metadata RPCs with the id of a job that does "
        "not run there, that belongs to another user, or that has no record. These RPCs are not "
        "counted for that job. "
        "All nodes of the job that sent them count together; a host without a job, or with "
        "several, counts alone. RPCs are evaluated ten minutes later, because the records of "
        "running jobs may be late."
    ),
    subject=Subject.HOST,
    source=Source.RPC_TRACE,
    severity=Severity.WARNING,
    measure="contradicted_rpcs",
    thresholds={
        "contradicted_rpcs": Threshold(
            3_000, "Metadata RPCs with contradicted job ids within five minutes", Unit.RPCS
        ),
    },
    advice=(
        "{contradicted_rpcs:,.0f} metadata RPCs within five minutes had the id of another host's "
        "job, of another user's job or of no job (threshold "
        "{threshold_contradicted_rpcs:,.0f}; hosts: {hosts:,.0f}). Find what sets the job-id "
        "variable there. If a host forwards the I/O of others, register it as a forwarding node. "
        "If it belongs to the job with that id, correct its NID."
    ),
    check=_check,
    example=Example(
        "a host that uses the id of another user's job",
        {"contradicted_rpcs": 41_000, "contradicted_hosts": 1},
    ),
    units={"hosts": Unit.NODES},
)
