"""Impact: a job slows down other users at a metadata server."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules.rule import (
    HARM_S,
    HARM_SHARE,
    Example,
    Rule,
    Severity,
    Subject,
    Threshold,
    Thresholds,
)

CAVEAT = (
    "Measured where the server was traced and has a baseline. Elsewhere it is estimated from "
    "mds_stats and job_stats: in simulated sets, two in three estimates were within a factor of 2. "
    "Without both, impact is unknown."
)


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("impact_s") >= thresholds["impact_s"],
        pl.col("peak_impact_s") >= thresholds["peak_impact_s"],
        pl.col("impact_times") >= thresholds["impact_times"],
        pl.col("impact_share") >= thresholds["impact_share"],
    ).select(
        "subject",
        numbers=pl.struct(
            "peak_impact_s", "impact_times", "impact_share", "impact_s", "impact_is_estimated"
        ),
    )


IMPACT = Rule(
    code="impact",
    version=5,
    title="Slows down other jobs",
    meaning=(
        "While the job kept a metadata server busy, RPCs of other users took much longer than "
        "usual. The impact is their total extra wait because of the job. On a server with few "
        "other users, even a storm causes little extra wait."
    ),
    subject=Subject.JOB,
    source=Source.IMPACT,
    severity=Severity.WARNING,
    needs_harm=True,
    measure="peak_impact_s",
    thresholds={
        "peak_impact_s": Threshold(
            10,
            "Extra wait of other users within five minutes",
            Unit.SECONDS_OF_WAITING,
            goal="the extra wait of other users is below {} in any five minutes",
        ),
        "impact_s": Threshold(
            HARM_S, "Extra wait of other users over the run", Unit.SECONDS_OF_WAITING
        ),
        "impact_times": Threshold(
            2,
            "Time of other users' RPCs within these five minutes, relative to usual",
            Unit.TIMES,
            minimum=1,
        ),
        "impact_share": Threshold(
            HARM_SHARE,
            "Share of the server's work within these five minutes",
            Unit.SHARE,
            maximum=1,
        ),
    },
    advice=(
        "The extra wait of other users because of this job was {peak_impact_s:,.0f} s within five "
        "minutes ({impact_is_estimated:E}; threshold {threshold_peak_impact_s:,.0f} s), "
        "{impact_s:,.0f} s over its run (threshold {threshold_impact_s:,.0f} s). "
        "Check which files it opens, and spread its requests over a longer time."
    ),
    check=_check,
    example=Example(
        "job 1702221 (storm, 48 nodes)",
        {
            "peak_impact_s": 23720.0,
            "impact_s": 23720.0,
            "impact_share": 0.8392,
            "impact_is_estimated": 0.0,
            "impact_times": 105400.0,
        },
    ),
    abuse_times=30,
    units={"impact_is_estimated": Unit.YES_NO},
    caveat=CAVEAT,
)
