"""Much of a filesystem's load cannot be told whose it is."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject


def _check(filesystems: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return filesystems.filter(
        pl.col("rpcs") >= limits["rpcs"],
        pl.col("unattributed_rpcs") / pl.col("rpcs") >= limits["unattributed_share"],
    ).select(
        "subject",
        numbers=pl.struct(
            "rpcs",
            "unattributed_rpcs",
            unattributed_share=pl.col("unattributed_rpcs") / pl.col("rpcs"),
        ),
    )


UNATTRIBUTED = Rule(
    code="unattributed",
    version=1,
    title="Load that is nobody's",
    meaning=(
        "Within an hour a large part of the metadata RPCs came from NIDs that belong to no "
        "registered node: whoever sends them can be found by nobody here."
    ),
    subject=Subject.FILESYSTEM,
    source=Source.RPC_TRACE,
    severity=Severity.NOTICE,
    measure="unattributed_share",
    limits={
        "unattributed_share": Limit(0.2, "Share of RPCs that are nobody's", Unit.SHARE, most=1),
        "rpcs": Limit(500, "Metadata RPCs within the hour", Unit.RPCS),
    },
    advice=(
        "{unattributed_rpcs:,.0f} of {rpcs:,.0f} metadata RPCs within an hour came from NIDs of "
        "no registered node ({unattributed_share:.0%}, limit {limit_unattributed_share:.0%}). "
        "Register their nodes: Ingest, NIDs lists them."
    ),
    check=_check,
    example=Example(
        "a filesystem that unregistered machines mount", {"rpcs": 6_355, "unattributed_rpcs": 2_563}
    ),
    units={"unattributed_rpcs": Unit.RPCS},
    is_about_data=True,
)
