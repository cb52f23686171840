"""What changed since a mail: jobs like the flagged ones, before and after a change.

The jobs have the case's owner and application, and the size class of a flagged job. The
change is the latest with a measured effect: the mail itself, an answer "It is fixed", or a
mitigation. Periods, weights and tests are the same as in comparisons (docs/comparisons.md).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from django.conf import settings
from django.db.models import Q

from collectors.tables import UTC_US
from ioportal.alerts.compared_jobs import Log, compared, day_of
from ioportal.alerts.outcomes import Outcome, is_clear, is_lifted, outcome
from ioportal.changes.analysis.periods import LONGEST
from ioportal.core.units import Source
from ioportal.core.visible_text import visible
from ioportal.findings.evidence import subject_evidence
from ioportal.findings.evidence.group_evidence import LOOK_BACK
from ioportal.findings.models import Flag
from ioportal.jobs.expressions import most_at_once
from ioportal.jobs.models import Job, JobStatistics
from ioportal.jobs.populations.population_values import local_days, size_classes
from ioportal.metrics import BY_NAME, Metric
from ioportal.rules import BY_CODE
from ioportal.rules.evidence import JOB_EVIDENCE

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime, timedelta

    from ioportal.alerts.compared_jobs import Changes, Compared
    from ioportal.findings.models import Case
    from ioportal.rules.rule import Rule

    Findings = Collection[tuple[datetime, datetime]]  # start of the job, latest data

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

    @property
    def metrics(self) -> list[Metric]:
        """The measure, and metadata operations."""
        return [self._metric(name) for name in dict.fromkeys([self.measure, _TOTAL])]

    def _metric(self, name: str) -> Metric:
        if name in BY_NAME:
            return BY_NAME[name]
        assert self.rule  # noqa: S101  (it is the measure of the rule)
        threshold = self.rule.thresholds[name]
        return Metric(name, threshold.title, threshold.unit, self.rule.source, "")


@dataclass(frozen=True)
class Effect:
    """What changed in jobs like the flagged ones since a mail, and the calm since then.

    Args:
        mailed: the case and the time of the mail.
        compared: the jobs before and after the latest change with an effect.
        recurrences: findings on jobs since this change.
        calm_since: end of the change, or the latest finding since then.
        calm_jobs: like the flagged ones, that started since then and have ended, with good data.
        at_once: how many of these ran at the same time.
    """

    mailed: Mailed
    compared: Compared
    recurrences: int
    calm_since: datetime
    calm_jobs: int
    at_once: int

    @property
    def title(self) -> str:
        """The finding."""
        return visible(self.mailed.case.title)

    @property
    def causes(self) -> list[str]:
        """Events between the jobs before and after, earliest first."""
        return [visible(each.text) for each in self.compared.causes]

    @property
    def link(self) -> str:
        """The address of the case's page."""
        return f"{settings.PORTAL_URL}/cases/{self.mailed.case.pk}/"

    @property
    def safe_number(self) -> str:
        """How many of its jobs ran in parallel without a finding, and since when."""
        return (
            f"Safe up to {self.at_once:,} of these jobs in parallel, the highest number seen since "
            f"{day_of(self.calm_since)}: {self.calm_jobs:,} jobs ran without such a finding. "
            "If you run more, please increase the number step by step."
        )

    @property
    def outcome(self) -> Outcome:
        """What became of the problem."""
        return outcome(self.compared.main, self.recurrences)

    def is_lifted(self, now: datetime, after: timedelta) -> bool:
        """Return whether the request of the mail no longer applies, `after` a time of calm."""
        return is_lifted(self.outcome, self.calm_jobs, self.calm_since, now, after)

    @property
    def text(self) -> str:
        """The effect in words."""
        if self.outcome is not Outcome.RECURRED:
            return self.compared.text
        times = "once" if self.recurrences == 1 else f"{self.recurrences:,} times"
        return f"found again {times} since then; {self.compared.text}"


def effects(mailed: Collection[Mailed], now: datetime) -> list[Effect]:
    """Return the effect of each mail on the jobs of its case, in the same order."""
    if not mailed:
        return []
    cases = [each.case for each in mailed]
    jobs = _finished_jobs(
        {case.owner for case in cases}, min(each.at for each in mailed) - LONGEST, now
    )
    sizes, found, log = _flagged_sizes(cases), _findings(mailed, now), Log(cases)
    return [
        _effect(
            each,
            _like_flagged(jobs, each, sizes[each.case.pk]),
            found[each.case.pk],
            log.changes(each.case, each.at, now),
            now,
        )
        for each in mailed
    ]


def _flagged_sizes(cases: Collection[Case]) -> dict[int, set[int]]:
    """Return the size classes of the flagged jobs of each case."""
    sizes: dict[int, set[int]] = defaultdict(set)
    flags = Flag.objects.counted().filter(case__in={case.pk for case in cases}, job__isnull=False)
    rows = list(flags.order_by().values_list("case", "job__node_count").distinct())
    classes = size_classes(np.array([nodes for _, nodes in rows])).tolist()
    for (case, _), size in zip(rows, classes, strict=True):
        sizes[case].add(size)
    return sizes


def _findings(
    mailed: Collection[Mailed], now: datetime
) -> dict[int, list[tuple[datetime, datetime]]]:
    """Return the findings of each case since its first mail: start of the job, latest data.

    A finding on a group of jobs still applies for `LOOK_BACK` after its cause: both times are then
    the earliest possible time of the cause.
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

    More columns: `started`, `day` (number of the local day of the start), and `size` (class).
    """
    jobs = Job.objects.filter(owner__in=owners, ended_at__gte=start, ended_at__lt=end)
    starts = {str(key): at for key, at in jobs.values_list("pk", "started_at") if at}
    frame = subject_evidence.for_jobs([int(key) for key in starts], usual_on=None).frame
    good = frame.filter(pl.col("quality") == JobStatistics.Quality.GOOD.value).with_columns(
        started=pl.col("subject").replace_strict(starts, return_dtype=UTC_US, default=None)
    )
    return good.with_columns(
        day=pl.Series(local_days(good["started"].dt.epoch("us").to_numpy())),
        size=pl.Series(size_classes(good["node_count"].fill_null(0).cast(pl.Int64).to_numpy())),
    )


def _like_flagged(jobs: pl.DataFrame, mailed: Mailed, sizes: set[int]) -> pl.DataFrame:
    """Return the jobs of a case's owner and application, of sizes that were flagged."""
    like = jobs.filter(pl.col("owner") == mailed.case.owner, pl.col(mailed.measure).is_not_null())
    if mailed.case.application:
        like = like.filter(pl.col("application") == mailed.case.application)
    return like.filter(pl.col("size").is_in(list(sizes))) if sizes else like


def _effect(
    mailed: Mailed, like: pl.DataFrame, found: Findings, possible: Changes, now: datetime
) -> Effect:
    result = _measured(mailed, like, possible, now)
    since = max([result.since, *(until for at, until in found if at >= mailed.at)])
    calm = like.filter(pl.col("started") >= since)
    at_once = most_at_once(calm.select("started", "until").iter_rows())
    return Effect(
        mailed,
        result,
        sum(at >= result.since for at, _ in found),
        since,
        len(calm),
        at_once,
    )


def _measured(mailed: Mailed, like: pl.DataFrame, possible: Changes, now: datetime) -> Compared:
    """Return the latest change with an effect, else the latest with a clear result, else any.

    A later change without an effect leaves the effect of an earlier one as it is.
    """
    results = [
        compared(like, mailed.metrics, possible, change, now) for change in possible.candidates
    ]
    clear = [each for each in results if is_clear(each.main)]
    changed = [each for each in clear if each.main and each.main.effects[0].is_change]
    return [*changed, *clear, *results][0]
