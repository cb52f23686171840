"""What changed since a mail: a measure of the recipient's jobs before and after it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db.models import Q

from collectors.tables import UTC_US
from ioportal.alerts.outcomes import Outcome, is_lifted, outcome
from ioportal.analysis.metrics import Source
from ioportal.analysis.rules import BY_CODE
from ioportal.analysis.rules.evidence import JOB_EVIDENCE
from ioportal.flags import evidence
from ioportal.flags.group_evidence import LOOK_BACK
from ioportal.flags.models import Flag
from ioportal.jobs.models import Job, JobStatistics
from ioportal.jobs.runs import most_at_once
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
class Calm:
    """The time without findings on a case's jobs.

    Args:
        since: the time of the mail, or of the latest finding since then.
        jobs: that started since then and have ended, with good data.
        at_once: how many of them ran at the same time.
    """

    since: datetime
    jobs: int
    at_once: int


@dataclass(frozen=True)
class Effect:
    """Medians of figures of the case's jobs before and after a mail, and the calm since then.

    A job that ran when the mail was sent belongs to those before it: the mail could not change it.

    Args:
        mailed: the case and the time of the mail.
        jobs_before: with good data, within `BEFORE`.
        jobs_after: with good data.
        before: median of the measure; None: no jobs.
        after: the same of the jobs since the mail.
        operations: medians of the metadata operations of a job, before and after.
        calm: the time without findings.
    """

    mailed: Mailed
    jobs_before: int
    jobs_after: int
    before: float | None
    after: float | None
    operations: tuple[float | None, float | None]
    calm: Calm

    @property
    def outcome(self) -> Outcome:
        """What became of the problem."""
        return outcome(self.before, self.after, self.jobs_after)

    def is_lifted(self, now: datetime, after: timedelta) -> bool:
        """Return whether the request of the mail no longer applies, `after` a time of calm."""
        return is_lifted(self.outcome, self.calm.jobs, self.calm.since, now, after)

    @property
    def text(self) -> str:
        """The effect in words."""
        measure = self.mailed.measure
        changes = [self._change(measure, self.before, self.after)]
        if measure != _TOTAL:
            changes.append(self._change(_TOTAL, *self.operations))
        many = f"median of {self.jobs_before:,} before, {self.jobs_after:,} since then"
        return f"{'; '.join(changes)} ({many})"

    def _change(self, measure: str, before: float | None, after: float | None) -> str:
        unit = unit_by(self.mailed.rule, measure)
        if unit is None:
            return formatting.UNKNOWN
        was, is_now = (formatting.with_unit(value, unit) for value in (before, after))
        values = f"{was} → {is_now} a job"
        if before is None or not after or after >= before:
            return values
        return f"{values}, {formatting.significant(before / after)} times less"


def effects(mailed: Collection[Mailed], now: datetime) -> list[Effect]:
    """Return the effect of each mail on the jobs of its case, in the same order.

    A case's jobs are those of its owner, and of its application if it has one.
    """
    if not mailed:
        return []
    frame = _finished_jobs(
        {each.case.owner for each in mailed}, min(each.at for each in mailed) - BEFORE, now
    )
    found = _findings(mailed, now)
    return [_effect(each, frame, found[each.case.pk]) for each in mailed]


def _findings(
    mailed: Collection[Mailed], now: datetime
) -> dict[int, list[tuple[datetime, datetime]]]:
    """Return the findings of each case since its first mail: start of the job, latest data.

    A finding on a group of jobs still applies for `LOOK_BACK` after its cause: both times are that
    of the earliest possible cause.
    """
    first = min(each.at for each in mailed)
    flags = Flag.objects.counted().filter(
        Q(job=None) | Q(job__started_at__gte=first),
        case__in={each.case.pk for each in mailed},
        until__gt=first,
        since__lt=now,
    )
    found: dict[int, list[tuple[datetime, datetime]]] = defaultdict(list)
    rows = flags.order_by().values_list("case", "job__started_at", "since", "until")
    for case, started_at, since, until in rows:
        caused_at = max(since, min(until, now) - LOOK_BACK)
        found[case].append((started_at, min(until, now)) if started_at else (caused_at, caused_at))
    return found


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


def _effect(
    mailed: Mailed,
    jobs: pl.DataFrame,
    found: Collection[tuple[datetime, datetime]],
) -> Effect:
    case, measure = mailed.case, pl.col(mailed.measure)
    ended, started = pl.col("until"), pl.col("started")
    own = jobs.filter(pl.col("owner") == case.owner, measure.is_not_null())
    if case.application:
        own = own.filter(pl.col("application") == case.application)
    before = own.filter(ended >= mailed.at - BEFORE, started < mailed.at)
    after = own.filter(started >= mailed.at)
    since = max([mailed.at, *(until for at, until in found if at >= mailed.at)])
    calm = own.filter(started >= since)
    return Effect(
        mailed,
        len(before),
        len(after),
        _median(before[mailed.measure]),
        _median(after[mailed.measure]),
        operations=(_median(before[_TOTAL]), _median(after[_TOTAL])),
        calm=Calm(since, len(calm), most_at_once(calm.select("started", "until").iter_rows())),
    )


def _median(values: pl.Series) -> float | None:
    median: Any = values.median()
    return None if median is None else float(median)
