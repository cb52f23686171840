"""Impact: a job, or the jobs of a group together, slow down others at a metadata server."""

from dataclasses import replace

import polars as pl

from ioportal.core.units import Source, Unit
from ioportal.rules.rule import (
    HARM_S,
    Example,
    Rule,
    Severity,
    Subject,
    Threshold,
    Thresholds,
    is_explained,
)


def _check(jobs: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return jobs.filter(
        pl.col("impact_s") >= thresholds["impact_s"],
        pl.col("peak_impact_s") >= thresholds["peak_impact_s"],
        pl.col("impact_times") >= thresholds["impact_times"],
    ).select(
        "subject",
        numbers=pl.struct(
            "peak_impact_s", "impact_times", "impact_share", "impact_s", "impact_is_estimated"
        ),
    )


IMPACT = Rule(
    code="impact",
    version=7,
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
            goal="the extra wait of other users is below {} in every five minutes",
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
    abuse_share="impact_share",
    units={"impact_share": Unit.SHARE, "impact_is_estimated": Unit.YES_NO},
    caveat=(
        "Measured where the server was traced and has a baseline. Elsewhere it is estimated from "
        "mds_stats and job_stats: in simulated sets, 60 % of the estimates were within a factor of "
        "2. Without both, impact is unknown."
    ),
)


def _check_groups(groups: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    return _check(groups.filter(~is_explained()), thresholds)


def _of_others(name: str, title: str) -> dict[str, Threshold]:
    return {name: replace(IMPACT.thresholds[name], title=title)}


IMPACT_OF_MANY_JOBS = replace(
    IMPACT,
    code="impact-of-many-jobs",
    title="Many jobs slow down others",
    meaning=(
        "While the jobs of one application of a user or a project, of one user or of one project "
        "kept a metadata server busy, RPCs of others took much longer than usual. No single job "
        "or narrower group explains half of the impact, nor do flagged ones together."
    ),
    subject=Subject.USER,
    thresholds={
        **IMPACT.thresholds,
        **_of_others("peak_impact_s", "Extra wait of others within five minutes"),
        **_of_others("impact_s", "Extra wait of others within a day"),
        **_of_others(
            "impact_times", "Time of others' RPCs within these five minutes, relative to usual"
        ),
    },
    advice=(
        "The extra wait of others because of these jobs was {peak_impact_s:,.0f} s within five "
        "minutes ({impact_is_estimated:E}; threshold {threshold_peak_impact_s:,.0f} s), "
        "{impact_s:,.0f} s within a day (threshold {threshold_impact_s:,.0f} s). Limit the number "
        "of jobs that run at the same time, and check which files they open."
    ),
    check=_check_groups,
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
)
