"""What changed since a mail: a measure of the recipient's jobs before and after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from collectors.tables import UTC_US
from ioportal.alerts.outcomes import Outcome, outcome
from ioportal.analysis.metrics import Source
from ioportal.analysis.rules import BY_CODE
from ioportal.analysis.rules.evidence import JOB_EVIDENCE
from ioportal.flags import evidence
from ioportal.jobs.models import Job, JobStatistics
from ioportal.reporting import formatting
from ioportal.reporting.flag_values import unit_by

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from ioportal.analysis.rules.rule import Rule
    from ioportal.flags.models import Case

BEFORE = timedelta(days=14)  # of the mail: jobs to compare with
# Of a rule about impact, which is null for calm jobs, and of a rule whose measure is not of jobs.
_LOAD, _TOTAL = "peak_metadata_rate", "metadata_operations"


@dataclass(frozen=True)
class Mailed:
    """A case that was mailed about.

    Args:
        case: the case.
        at: when the mail was sent.
    """

    case: Case
    at: datetime

    @property
    def rule(self) -> Rule | None:
        """The case's rule."""
        return BY_CODE.get(self.case.rule)

    @property
    def measure(self) -> str:
        """The figure of a job that is compared."""
        if self.rule and self.rule.source is Source.IMPACT:
            return _LOAD
        measure = self.rule.measure if self.rule else _TOTAL
        return measure if measure in JOB_EVIDENCE else _TOTAL


@dataclass(frozen=True)
class Effect:
    """Medians of a measure of the case's jobs before and after a mail.

    A job that ran when the mail was sent belongs to those before it: the mail could not change it.

    Args:
        mailed: the case and the time of the mail.
        jobs_before: with good data, within `BEFORE`.
        jobs_after: with good data.
        before: median; None: no jobs.
        after: median; None: no jobs.
    """

    mailed: Mailed
    jobs_before: int
    jobs_after: int
    before: float | None
    after: float | None

    @property
    def outcome(self) -> Outcome:
        """What became of the problem."""
        return outcome(self.before, self.after, self.jobs_after)

    @property
    def text(self) -> str:
        """The effect in words."""
        before, after = (self._in_words(value) for value in (self.before, self.after))
        many = f"median of {self.jobs_before:,} before, {self.jobs_after:,} since then"
        return f"{before} → {after} a job ({many})"

    def _in_words(self, value: float | None) -> str:
        unit = unit_by(self.mailed.rule, self.mailed.measure)
        return formatting.with_unit(value, unit) if unit else formatting.UNKNOWN


def effects(mailed: Collection[Mailed], now: datetime) -> list[Effect]:
    """Return the effect of each mail on the jobs of its case, in the same order.

    A case's jobs are those of its owner, and of its application if it has one.
    """
    if not mailed:
        return []
    frame = _finished_jobs(
        {each.case.owner for each in mailed}, min(each.at for each in mailed) - BEFORE, now
    )
    return [_effect(each, frame) for each in mailed]


def _finished_jobs(owners: Collection[str], start: datetime, end: datetime) -> pl.DataFrame:
    """Return the evidence of the good jobs of some users that ran and ended in [start, end).

    The column `started` is their start.
    """
    jobs = Job.objects.filter(owner__in=owners, ended_at__gte=start, ended_at__lt=end)
    starts = {str(key): at for key, at in jobs.values_list("pk", "started_at") if at}
    frame = evidence.for_jobs([int(key) for key in starts], usual_on=None).frame
    good = frame.filter(pl.col("quality") == JobStatistics.Quality.GOOD.value)
    return good.with_columns(
        started=pl.col("subject").replace_strict(starts, return_dtype=UTC_US, default=None)
    )


def _effect(mailed: Mailed, jobs: pl.DataFrame) -> Effect:
    case, measure = mailed.case, pl.col(mailed.measure)
    ended, started = pl.col("until"), pl.col("started")
    own = jobs.filter(pl.col("owner") == case.owner, measure.is_not_null())
    if case.application:
        own = own.filter(pl.col("application") == case.application)
    before = own.filter(ended >= mailed.at - BEFORE, started < mailed.at)[mailed.measure]
    after = own.filter(started >= mailed.at)[mailed.measure]
    return Effect(mailed, len(before), len(after), _median(before), _median(after))


def _median(values: pl.Series) -> float | None:
    median: Any = values.median()
    return None if median is None else float(median)
