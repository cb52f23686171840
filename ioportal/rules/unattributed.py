"""Unattributed load: a large part of a filesystem's load has no known source."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules.rule import Example, Rule, Severity, Subject, Threshold, Thresholds


def _check(filesystems: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return filesystems.filter(
        pl.col("rpcs") >= thresholds["rpcs"],
        pl.col("unattributed_rpcs") / pl.col("rpcs") >= thresholds["unattributed_share"],
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
    title="Unattributed load",
    meaning=(
        "Within an hour a large part of the metadata RPCs came from NIDs of unregistered nodes. "
        "Their senders cannot be identified."
    ),
    subject=Subject.FILESYSTEM,
    source=Source.RPC_TRACE,
    severity=Severity.NOTICE,
    measure="unattributed_share",
    thresholds={
        "unattributed_share": Threshold(0.2, "Share of unattributed RPCs", Unit.SHARE, maximum=1),
        "rpcs": Threshold(500, "Metadata RPCs within the hour", Unit.RPCS),
    },
    advice=(
        "{unattributed_rpcs:,.0f} of {rpcs:,.0f} metadata RPCs within an hour came from "
        "unregistered NIDs ({unattributed_share:.0%}, threshold "
        "{threshold_unattributed_share:.0%}). Register their nodes, which are "
        "listed on Admin → Data → Unregistered NIDs."
    ),
    check=_check,
    example=Example(
        "a filesystem mounted by unregistered hosts", {"rpcs": 6_355, "unattributed_rpcs": 2_563}
    ),
    units={"unattributed_rpcs": Unit.RPCS},
    is_about_data=True,
)
