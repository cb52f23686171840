"""A job makes others wait at a metadata server."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Example, Limit, Limits, Rule, Severity, Subject


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        pl.col("peak_impact_s") >= limits["peak_impact_s"],
        pl.col("impact_times") >= limits["impact_times"],
        pl.col("impact_share") >= limits["impact_share"],
    ).select(
        "subject",
        numbers=pl.struct("peak_impact_s", "impact_times", "impact_share", "impact_s"),
    )


IMPACT = Rule(
    code="impact",
    version=1,
    title="Others wait because of it",
    meaning=(
        "While the job kept a metadata server busy, the requests of others took several times as "
        "long as they usually do. Its share of their waiting is told in seconds: on a server that "
        "hardly anybody else uses, even a storm costs few."
    ),
    subject=Subject.JOB,
    source=Source.RPC_TRACE,
    severity=Severity.WARNING,
    measure="peak_impact_s",
    limits={
        "peak_impact_s": Limit(
            3, "Others' waiting because of it within five minutes", Unit.SECONDS
        ),
        "impact_times": Limit(
            5, "Times as long as usual that others' RPCs took meanwhile", Unit.RATIO, least=1
        ),
        "impact_share": Limit(0.3, "Its share of the server's work meanwhile", Unit.SHARE, most=1),
    },
    advice=(
        "Others waited {peak_impact_s:,.0f} s within five minutes because of this job (limit "
        "{limit_peak_impact_s:,.0f} s), {impact_s:,.0f} s altogether: their requests took "
        "{impact_times:,.0f} times as long as usual, while it had {impact_share:.0%} of the "
        "server. Stop it or have it slowed down if others complain; run fewer of its kind at "
        "once, and look at what it opens."
    ),
    check=_check,
    example=Example(
        "job 1702221 (storm, 48 nodes)",
        {
            "peak_impact_s": 23720.0,
            "impact_s": 23720.0,
            "impact_share": 0.8392,
            "impact_times": 105400.0,
        },
    ),
    abuse_times=100,
    units={"impact_s": Unit.SECONDS},
    caveat=(
        "Needs a trace of the server, and a baseline: where it is not known what is usual, "
        "nobody's impact is."
    ),
)
