"""Thresholds by place: a rule's defaults, overridden by the sets (`models/thresholds.py`)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import polars as pl
from django.db import transaction
from django.db.models import Q

from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.findings.models import Case, Flag, ThresholdSet
from ioportal.jobs.models import DirtyEvidence, Job
from ioportal.load.impact import job_groups
from ioportal.rules.evidence import EVIDENCE
from ioportal.rules.rule import GROUPS, PROJECT_GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ioportal.rules.rule import Rule


def finding_numbers(rule: Rule) -> list[str]:
    """Return the names of the numbers in a rule's findings."""
    no_subjects = pl.DataFrame(schema=EVIDENCE[rule.subject])
    numbers = rule.check(no_subjects, rule.defaults).schema["numbers"]
    return [field.name for field in cast("pl.Struct", numbers).fields]


@transaction.atomic
def apply_thresholds(threshold_set: ThresholdSet) -> bool:
    """Store a threshold set and request evaluation of the subjects that it may affect.

    Hosts and filesystems need no request: every round evaluates them.

    Returns:
        False if the set changes nothing (a form submitted twice); it is not stored then.
    """
    hold(Lock.FLAG_CREATION)  # no evaluation may use the previous thresholds afterwards
    previous = ThresholdSet.objects.same_scope(threshold_set).first()
    if previous is None and threshold_set.is_withdrawn:
        return False
    if previous is not None and previous.has_same_content(threshold_set):
        return False
    threshold_set.save()
    DirtyEvidence.objects.mark(_affected_jobs(threshold_set.rule))
    return True


def _affected_jobs(rule: str) -> set[int]:
    """Return running jobs, flagged jobs, and one job of each flagged user and project."""
    # Lower thresholds may reopen cases that the evaluation resolved.
    reopenable = Q(case__state=Case.State.RESOLVED, case__resolved_until=None)
    unresolved = ~Q(case__state=Case.State.RESOLVED)
    flagged = Flag.objects.filter(unresolved | reopenable, rule=rule)
    running = Job.objects.filter(started_at__isnull=False, ended_at=None)
    # A job's evaluation includes its groups: one job each is enough.
    users = flagged.filter(subject_kind__in=GROUPS).values("owner")
    jobs_of_users = Job.objects.filter(owner__in=users, statistics__isnull=False).exclude(owner="")
    latest = jobs_of_users.order_by("owner", "-started_at").distinct("owner")
    of_projects = flagged.filter(subject_kind__in=PROJECT_GROUPS)
    projects = {
        job_groups.project_of(kind, text)
        for kind, text in of_projects.values_list("subject_kind", "subject")
    }
    jobs_of_projects = Job.objects.filter(project__in=projects, statistics__isnull=False)
    latest_of_projects = jobs_of_projects.order_by("project", "-started_at").distinct("project")
    return {
        *flagged.filter(job__isnull=False).values_list("job", flat=True),
        *running.values_list("pk", flat=True),
        *latest.values_list("pk", flat=True),
        *latest_of_projects.values_list("pk", flat=True),
    }


@dataclass(frozen=True)
class Place:
    """The part of the site that a subject is in; None: unknown, or several."""

    cluster: int | None = None
    filesystem: int | None = None
    queue: str | None = None


@dataclass(frozen=True)
class EffectiveThresholds:
    """The thresholds, advice and status of a rule at a place."""

    thresholds: dict[str, float]
    advice: str
    is_on: bool
    scope: str  # in words: the narrowest part of the site that sets any of these


class ThresholdBook:
    """The current threshold sets of all rules. Narrower parts of the site take precedence.

    A queue precedes its cluster, and a cluster a filesystem. A job is in all three: its cluster,
    its queue, and the filesystem with most operations at its peak.
    """

    def __init__(self, sets: Iterable[ThresholdSet] | None = None) -> None:
        if sets is None:
            sets = ThresholdSet.objects.current().select_related("cluster", "filesystem")
        self._by_rule: dict[str, list[ThresholdSet]] = defaultdict(list)
        for threshold_set in sorted(sets, key=precedence):
            self._by_rule[threshold_set.rule].append(threshold_set)

    def at(self, rule: Rule, place: Place) -> EffectiveThresholds:
        """Return the effective thresholds of a rule at a place."""
        thresholds, advice, is_on, scope = rule.defaults, rule.advice, True, "rule defaults"
        for threshold_set in self._by_rule[rule.code]:
            if not _covers(threshold_set, place):
                continue
            names = threshold_set.thresholds.keys() & rule.thresholds.keys()
            thresholds |= {name: threshold_set.thresholds[name] for name in names}
            advice = threshold_set.advice or advice
            is_on = is_on if threshold_set.is_on is None else threshold_set.is_on
            if not threshold_set.is_withdrawn:
                scope = threshold_set.scope
        return EffectiveThresholds(thresholds, advice, is_on, scope)


def precedence(threshold_set: ThresholdSet) -> tuple[bool, bool, bool]:
    """Return the sort key of a set: wide parts of the site first."""
    return (
        bool(threshold_set.queue),
        threshold_set.cluster_id is not None,
        threshold_set.filesystem_id is not None,
    )


def _covers(threshold_set: ThresholdSet, place: Place) -> bool:
    return (
        threshold_set.cluster_id in {None, place.cluster}
        and threshold_set.filesystem_id in {None, place.filesystem}
        and threshold_set.queue in {"", place.queue}
    )
