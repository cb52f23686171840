"""Impact of many jobs: together, the jobs of a group slow down others at a metadata server."""

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules.impact import CAVEAT
from ioportal.rules.rule import (
    HARM_S,
    HARM_SHARE,
    Example,
    Rule,
    Severity,
    Subject,
    Threshold,
    Thresholds,
    is_explained,
)


def _check(groups: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return groups.filter(
        pl.col("impact_s") >= thresholds["impact_s"],
        pl.col("peak_impact_s") >= thresholds["peak_impact_s"],
        pl.col("impact_times") >= thresholds["impact_times"],
        pl.col("impact_share") >= thresholds["impact_share"],
        ~is_explained(),
    ).select(
        "subject",
        numbers=pl.struct(
            "peak_impact_s", "impact_times", "impact_share", "impact_s", "impact_is_estimated"
        ),
    )


IMPACT_OF_MANY_JOBS = Rule(
    code="impact-of-many-jobs",
    version=5,
    title="Many jobs slow down others",
    meaning=(
        "While the jobs of one application of a user or a project, of one user or of one project "
        "kept a metadata server busy, RPCs of others took much longer than usual. No single job "
        "or narrower group explains half of the impact, nor do flagged ones together."
    ),
    subject=Subject.USER,
    source=Source.IMPACT,
    severity=Severity.WARNING,
    needs_harm=True,
    measure="peak_impact_s",
    thresholds={
        "peak_impact_s": Threshold(
            10,
            "Extra wait of others within five minutes",
            Unit.SECONDS_OF_WAITING,
            goal="the extra wait of other users is below {} in any five minutes",
        ),
        "impact_s": Threshold(HARM_S, "Extra wait of others within a day", Unit.SECONDS_OF_WAITING),
        "impact_times": Threshold(
            2,
            "Time of others' RPCs within these five minutes, relative to usual",
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
        "The extra wait of others because of these jobs was {peak_impact_s:,.0f} s within five "
        "minutes ({impact_is_estimated:E}; threshold {threshold_peak_impact_s:,.0f} s), "
        "{impact_s:,.0f} s "
        "within a day (threshold {threshold_impact_s:,.0f} s). Limit the "
        "number of jobs that run at the same time, and check which files they open."
    ),
    check=_check,
    example=Example(
        "700 jobs of one node",
        {
            "peak_impact_s": 198755.0,
            "impact_s": 198755.0,
            "impact_share": 0.9231,
            "impact_is_estimated": 0.0,
            "impact_times": 20190.0,
            "parts_impact_s": 0.0,
        },
    ),
    abuse_times=30,
    units={"impact_is_estimated": Unit.YES_NO},
    caveat=CAVEAT,
)
