"""Back-tests: past findings by proposed thresholds, compared with current thresholds.

Jobs are evaluated once, with their evidence at their end; users by day, hosts by five minutes and
filesystems by hour. As in evaluation, only findings on good data count. One back-test runs at a
time, in steps, and stores its progress; it restarts if its worker dies.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any

import polars as pl
import structlog
from django.db import connection, transaction

from ioportal.findings.evaluation import by_thresholds
from ioportal.findings.evidence import group_evidence, load_evidence, subject_evidence, usual_values
from ioportal.findings.evidence.group_evidence import Groups
from ioportal.findings.flags import flag_lifecycle
from ioportal.findings.models import BackTest, ThresholdSet
from ioportal.findings.thresholds import Place, ThresholdBook
from ioportal.jobs.models import Job
from ioportal.rules import BY_CODE
from ioportal.rules.evidence import DAY
from ioportal.rules.rule import Subject
from ioportal.site.models import Filesystem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.findings.evidence.subject_evidence import Evidence
    from ioportal.findings.evidence.usual_values import UsualOn
    from ioportal.findings.thresholds import EffectiveThresholds
    from ioportal.rules.rule import Rule

log = structlog.get_logger()

MAX_LISTED = 500  # subjects stored by name
_STEPS = 30
_HOUR = timedelta(hours=1)
_PARAMETERS = ("rule", "thresholds", "cluster", "filesystem", "queue", "start", "end")
_FLAGGED = {
    "subject": pl.String(),
    "owner": pl.String(),
    "filesystem": pl.Int64(),
    "application": pl.String(),
    "value": pl.Float64(),  # of the rule's measure
    "until": subject_evidence.CONTEXT["until"],
    "is_good": pl.Boolean(),  # data quality; otherwise the finding is suppressed
}


@dataclass
class _Result:
    """Findings by the current and by the proposed thresholds; a subject may recur."""

    evaluated: int = 0
    current: list[pl.DataFrame] = field(default_factory=list)
    proposed: list[pl.DataFrame] = field(default_factory=list)

    def add(
        self, rule: Rule, subjects: Evidence, current: ThresholdBook, proposed: ThresholdBook
    ) -> None:
        """Evaluate some subjects with both sets of thresholds."""
        self.evaluated += subjects.frame.height
        for book, findings in ((current, self.current), (proposed, self.proposed)):
            groups = by_thresholds(rule, subjects, book)
            findings += [_flagged(rule, effective, frame) for effective, frame in groups]


def _flagged(rule: Rule, effective: EffectiveThresholds, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of evidence that the rule flags."""
    if not effective.is_on:
        return pl.DataFrame(schema=_FLAGGED)
    # A host has a row for each five minutes: the check gets row numbers as subjects.
    rows = frame.with_columns(row=pl.int_range(pl.len()).cast(pl.String))
    findings = rule.check(rows.with_columns(subject="row"), effective.thresholds)
    value = pl.col("numbers").struct.field(rule.measure).cast(pl.Float64).fill_null(0)
    context = rows.with_columns(
        pl.col("owner", "application").fill_null(""), is_good=flag_lifecycle.has_good_data(rule)
    )
    return findings.select(row="subject", value=value).join(context, on="row").select(*_FLAGGED)


def _worst(findings: list[pl.DataFrame]) -> pl.DataFrame:
    """Return the worst finding of each subject, preferring good data."""
    rows = pl.concat([pl.DataFrame(schema=_FLAGGED), *findings])
    order = rows.sort("is_good", "value", "subject", descending=[True, True, False])
    return order.unique("subject", keep="first", maintain_order=True)


@transaction.atomic
def request(test: BackTest) -> BackTest:
    """Store a back-test, or return an equal unfinished one (a form submitted twice)."""
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE findings_backtest IN SHARE ROW EXCLUSIVE MODE")
    parameters = {name: getattr(test, name) for name in _PARAMETERS}
    pending = BackTest.objects.unfinished().filter(**parameters).first()
    if pending is None:
        test.save()
    return pending or test


def run_next() -> int:
    """Run the oldest unfinished back-test; return the number of back-tests run: 1 or 0."""
    test = BackTest.objects.unfinished().order_by("pk").first()
    if test is None:
        return 0
    _store(test, state=BackTest.State.RUNNING, done_share=0)
    started = monotonic()
    try:
        if _run(test):
            took_s = monotonic() - started
            _store(test, state=BackTest.State.DONE, done_share=1, took_s=took_s)
    except Exception as error:
        log.exception("back_test_failed", back_test=test.pk)
        text = f"{type(error).__name__}: {error}"[:500]
        _store(test, state=BackTest.State.FAILED, error=text)
    return 1


def _store(test: BackTest, **fields: Any) -> bool:
    """Store fields of a back-test; return False if it was stopped."""
    return BackTest.objects.unfinished().filter(pk=test.pk).update(**fields) == 1


def _run(test: BackTest) -> bool:
    """Evaluate the period; return False if the back-test was stopped."""
    if test.rule not in BY_CODE:
        raise ValueError(f"The rule {test.rule} no longer exists.")
    rule = BY_CODE[test.rule]
    sets = list(ThresholdSet.objects.current().select_related("cluster", "filesystem"))
    proposed_set = ThresholdSet(
        rule=rule.code,
        cluster=test.cluster,
        filesystem=test.filesystem,
        queue=test.queue,
        thresholds=test.thresholds,
        is_on=True,
    )
    other_sets = [each for each in sets if not each.replaces(proposed_set)]
    current, proposed = ThresholdBook(sets), ThresholdBook([*other_sets, proposed_set])
    place = Place(test.cluster_id, test.filesystem_id, test.queue)
    if not _store(test, current_thresholds=current.at(rule, place).thresholds):
        return False
    result = _Result()
    for done_share, subjects in _evidence(rule, test.start, test.end):
        result.add(rule, subjects, current, proposed)
        if not _store(test, done_share=done_share, evaluated=result.evaluated):
            return False
    worst = _worst(result.current), _worst(result.proposed)
    return _store(test, subjects=_listed(*worst), counts=_counts(rule, *worst))


def _evidence(rule: Rule, start: datetime, end: datetime) -> Iterator[tuple[float, Evidence]]:
    """Yield the evidence of a period in steps, each with the completed share of the period."""
    step = DAY if rule.subject is Subject.USER else min(max((end - start) / _STEPS, _HOUR), DAY)
    usual_on = usual_values.MovingWindow().on if rule.usual else None
    step_start = start
    while step_start < end:
        step_end = min(step_start + step, end)
        for subjects in _step_evidence(rule, usual_on, step_start, step_end):
            yield (step_end - start) / (end - start), subjects
        step_start = step_end


def _step_evidence(
    rule: Rule, usual_on: UsualOn | None, start: datetime, end: datetime
) -> Iterator[Evidence]:
    if rule.subject is Subject.JOB:
        yield subject_evidence.for_ended_jobs(start, end, usual_on)
    elif rule.subject is Subject.USER:
        jobs = Job.objects.overlapping(end - DAY, end)
        groups = Groups.of_jobs(jobs.values_list("owner", "project").distinct())
        for subjects in group_evidence.for_groups(groups, end, with_accused=False):
            yield _with_kinds(subjects)
    else:
        by_kind = (load_evidence.for_filesystem_between, load_evidence.for_hosts_between)
        collect = by_kind[rule.subject is Subject.HOST]
        for filesystem in Filesystem.objects.values_list("pk", flat=True):
            yield collect(filesystem, start, end)


def _with_kinds(groups: Evidence) -> Evidence:
    """Prepend the kind: users and projects may have the same name."""
    subject = pl.format("{} {}", pl.lit(groups.kind.value), "subject")
    return replace(groups, frame=groups.frame.with_columns(subject=subject))


def _counts(rule: Rule, current: pl.DataFrame, proposed: pl.DataFrame) -> dict[str, int]:
    counts = {}
    is_of_job = rule.subject is Subject.JOB
    # As `case_lifecycle.key_of`.
    case = ["owner" if is_of_job else "subject", "filesystem", "application"]
    flagged, owners = {}, {}
    for name, frame in (("current", current), ("proposed", proposed)):
        good = frame.filter("is_good")
        flagged[name] = set(good["subject"])
        owners[name] = set(good["owner"]) - {""}
        counts[name] = good.height
        counts[f"cases_{name}"] = good.select(case).n_unique()
        counts[f"owners_{name}"] = len(owners[name])
        counts[f"suppressed_{name}"] = frame.height - good.height
    return counts | {
        "both": len(flagged["current"] & flagged["proposed"]),
        "only_current": len(flagged["current"] - flagged["proposed"]),
        "only_proposed": len(flagged["proposed"] - flagged["current"]),
    }


def _listed(current: pl.DataFrame, proposed: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the flagged subjects: differences first, then by value."""
    good = [frame.filter("is_good") for frame in (current, proposed)]
    is_current, is_proposed = (pl.col("subject").is_in(each["subject"].implode()) for each in good)
    rows = _worst(good).with_columns(current=is_current, proposed=is_proposed)
    differs = pl.col("current") != pl.col("proposed")
    order = [differs, pl.col("value"), pl.col("subject")]
    listed = rows.sort(order, descending=[True, True, False]).head(MAX_LISTED)
    return [
        {**row, "until": row["until"].isoformat()}
        for row in listed.drop("is_good", "filesystem", "application").iter_rows(named=True)
    ]
