"""A job makes others wait at a metadata server."""

import polars as pl

from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.rules.rule import Limit, Limits, Rule, Severity, Subject


def _check(jobs: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    return jobs.filter(
        pl.col("peak_impact_s") >= limits["peak_impact_s"],
    ).select("subject", numbers=pl.struct("peak_impact_s", "impact_s", "metadata_rpcs"))


IMPACT = Rule(
    code="impact",
    version=1,
    title="Others wait because of it",
    meaning=(
        "While the job kept a metadata server busy, the requests of others took longer than "
        "they usually do; this is its share of their waiting, in seconds."
    ),
    subject=Subject.JOB,
    source=Source.RPC_TRACE,
    severity=Severity.WARNING,
    measure="peak_impact_s",
    limits={
        "peak_impact_s": Limit(
            300, "Others' waiting because of it within five minutes", Unit.SECONDS
        ),
    },
    advice=(
        "Others waited {peak_impact_s:,.0f} s within five minutes because of this job (limit "
        "{limit_peak_impact_s:,.0f} s), {impact_s:,.0f} s altogether. Stop it or have it slowed "
        "down if others complain; run fewer of its kind at once, and look at what it opens."
    ),
    check=_check,
    abuse_times=5,
    units={"impact_s": Unit.SECONDS, "metadata_rpcs": Unit.RPCS},
    caveat=(
        "Needs a trace of the server, and a baseline: where it is not known what is usual, "
        "nobody's impact is."
    ),
)
