"""The evaluation stage: evaluates changed evidence with all rules and updates the flags.

Evaluation runs in one transaction at a time, behind a lock. Its result depends only on stored data
and existing flags: repeating it changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection, transaction
from django.db.models import Min
from django.utils import timezone

from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.core.units import Source
from ioportal.findings import latest_data
from ioportal.findings.cases import case_lifecycle, reassignment
from ioportal.findings.evidence import group_evidence, job_peaks, load_evidence, subject_evidence
from ioportal.findings.evidence.claims import without_claims
from ioportal.findings.evidence.group_evidence import Groups
from ioportal.findings.evidence.harm import with_harm
from ioportal.findings.flags import flag_lifecycle
from ioportal.findings.models import Flag
from ioportal.findings.thresholds import Place, ThresholdBook
from ioportal.jobs.models import DirtyEvidence, Job
from ioportal.load.impact import impact_windows, job_groups
from ioportal.rules import RULES
from ioportal.rules.rule import PROJECT_GROUPS, Subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from ioportal.findings.evidence.subject_evidence import Evidence
    from ioportal.findings.thresholds import EffectiveThresholds
    from ioportal.rules.rule import Rule

_PLACE = ["cluster", "filesystem", "queue"]  # fields of `Place`, columns of evidence


def evaluate_round(limit: int = 500) -> int:
    """Evaluate hosts and filesystems, then a slice of the pending jobs; return how many."""
    evaluate_current()
    return evaluate_pending(limit)


def evaluate_pending(limit: int = 500) -> int:
    """Claim jobs with changed evidence and evaluate them and their users; return how many.

    The caller repeats it until it returns 0. Safe to repeat and to run concurrently.
    """
    with transaction.atomic():
        hold(Lock.FLAG_CREATION)
        intervals = impact_windows.compute_pending(limit)
        latest_data.record_evaluated()
        claimed = _claim(limit)
        jobs = set(Job.objects.filter(pk__in=claimed).values_list("pk", flat=True))
        job_peaks.refresh({job: since for job, since in claimed.items() if since and job in jobs})
        current = subject_evidence.for_jobs(jobs)
        reassignment.reassign(current.frame)
        book = ThresholdBook()
        evaluate(current, book)
        for until, jobs_of_day in subject_evidence.by_day(current.frame):
            groups = Groups.of_jobs(_places(jobs_of_day))
            if until.date() == timezone.now().astimezone(UTC).date():
                _evaluate_groups(groups, until, book)
            else:
                _evaluate_past_day(groups, until, book)
        _reevaluate_flagged_groups(Groups.of_jobs(_places(current.frame)), book)
        return intervals + len(claimed)


def _places(jobs: pl.DataFrame) -> Iterable[tuple[str, str]]:
    """Return the owners and projects of jobs."""
    keys = jobs["subject"].cast(pl.Int64).to_list()
    return Job.objects.filter(pk__in=keys).values_list("owner", "project").distinct()


def _evaluate_past_day(groups: Groups, moment: datetime, book: ThresholdBook) -> None:
    """Evaluate groups when all their jobs of a past day are known.

    A day is loaded in slices, and each of them alone shows too few operations.
    """
    complete = subject_evidence.complete_groups(*groups, moment)
    if not complete.is_empty():
        until: Any = complete["until"].max()
        pairs = complete.select("owner", "project").iter_rows()
        _evaluate_groups(Groups.of_jobs(pairs), until, book)


def _evaluate_groups(groups: Groups, until: datetime, book: ThresholdBook) -> None:
    for subjects in group_evidence.for_groups(groups, until):
        evaluate(subjects, book)


def _reevaluate_flagged_groups(groups: Groups, book: ThresholdBook) -> None:
    """Evaluate flagged groups by their latest jobs: an older day must not leave a flag open."""
    flags = Flag.objects.current()
    of_owners = flags.filter(
        subject_kind__in=(Subject.APPLICATION, Subject.USER), owner__in=groups.owners
    )
    of_projects: dict[str, datetime] = {}
    for kind, text, until in flags.filter(subject_kind__in=PROJECT_GROUPS).values_list(
        "subject_kind", "subject", "until"
    ):
        project = job_groups.project_of(kind, text)
        if project in groups.projects:
            of_projects[project] = min(until, of_projects.get(project, until))
    latest = subject_evidence.latest_of_groups(
        dict(of_owners.order_by().values_list("owner").annotate(Min("until"))),
        of_projects,
    )
    for until, rows in subject_evidence.by_day(latest):
        _evaluate_groups(Groups.of_jobs(rows.select("owner", "project").iter_rows()), until, book)


def evaluate_current() -> None:
    """Evaluate filesystems and hosts outside jobs by the latest data, and expire old cases."""
    with transaction.atomic():
        hold(Lock.FLAG_CREATION)
        book = ThresholdBook()
        traced = latest_data.traced_until()
        polled = latest_data.polled_until()
        for filesystem in traced.keys() | polled.keys():
            ends = (end[filesystem] for end in (traced, polled) if filesystem in end)
            evaluate(load_evidence.for_hosts(filesystem, max(ends)), book)
        for filesystem, until in latest_data.counted_until().items():
            if filesystem not in traced:  # a trace shows each process with its impact
                evaluate(load_evidence.for_processes(filesystem, until), book)
        for filesystem, until in traced.items():
            evaluate(load_evidence.for_filesystem(filesystem, until), book)
        case_lifecycle.expire(timezone.now(), latest_data.observed_until())


def evaluate(subjects: Evidence, book: ThresholdBook) -> None:
    """Evaluate subjects with all rules of their kind, and update their flags and cases.

    Rules about impact are first: other findings on the subjects that they flag are notices.
    """
    if subjects.frame.is_empty():
        return
    subjects = without_claims(replace(subjects, frame=with_harm(subjects.frame)))
    subjects = _with_flagged_harm(subjects, set())
    flags = flag_lifecycle.lock_current(subjects.kind, subjects.frame)
    changes = flag_lifecycle.Changes()
    for rule in RULES:
        if subjects.kind in rule.subjects:
            for effective, frame in by_thresholds(rule, subjects, book):
                changes.add(
                    flag_lifecycle.evaluate_rule(
                        rule, effective, subjects.kind, frame, flags.get(rule.code, {})
                    )
                )
            if rule.source is Source.IMPACT:
                subjects = _with_flagged_harm(subjects, changes.flagged_subjects())
    flag_lifecycle.store(changes)


def _with_flagged_harm(subjects: Evidence, flagged: set[str]) -> Evidence:
    """Add the column harm_is_flagged: whether a rule about impact flags each subject."""
    is_flagged = pl.col("subject").is_in(list(flagged))
    return replace(subjects, frame=subjects.frame.with_columns(harm_is_flagged=is_flagged))


def by_thresholds(
    rule: Rule, subjects: Evidence, book: ThresholdBook
) -> Iterator[tuple[EffectiveThresholds, pl.DataFrame]]:
    """Group subjects by the effective thresholds of their place.

    Most sites have many queues and set few thresholds: places with equal thresholds are one group.
    """
    places = subjects.frame.select(_PLACE).unique()
    effective = [book.at(rule, Place(*place)) for place in places.iter_rows()]
    distinct = [each for n, each in enumerate(effective) if each not in effective[:n]]
    for thresholds in distinct:
        is_member = pl.Series([each == thresholds for each in effective], dtype=pl.Boolean)
        members = places.filter(is_member)
        yield thresholds, subjects.frame.join(members, on=_PLACE, how="semi", nulls_equal=True)


# Claims all pending rows of a job together: changed windows, statistics and impact.
_CLAIM = """
WITH claimed AS (
    DELETE FROM jobs_dirtyevidence WHERE job_id = ANY(%s::bigint[]) RETURNING job_id, since
)
SELECT job_id, min(since) FROM claimed GROUP BY 1
"""


def _claim(limit: int) -> dict[int, datetime | None]:
    """Claim pending jobs; return the start of the changed windows of each."""
    jobs = {row.job_id for row in DirtyEvidence.objects.next(limit)}
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, [list(jobs)])
        return dict(cursor.fetchall())
