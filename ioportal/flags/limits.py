"""Which limits hold where: the rule's own, and those that the site set for a part of itself."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import polars as pl
from django.db import transaction
from django.db.models import Q

from ioportal.analysis.rules.evidence import OF_SUBJECT
from ioportal.analysis.rules.rule import Subject
from ioportal.flags import locks
from ioportal.flags.models import Flag, LimitSet
from ioportal.jobs.models import Job, StaleEvidence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ioportal.analysis.rules.rule import Rule


def numbers_of(rule: Rule) -> list[str]:
    """Return the names of the numbers that a rule's findings have."""
    nobody = pl.DataFrame(schema=OF_SUBJECT[rule.subject])
    numbers = rule.check(nobody, rule.defaults).schema["numbers"]
    return [field.name for field in cast("pl.Struct", numbers).fields]


@transaction.atomic
def put_in_force(limits: LimitSet) -> bool:
    """Store limits, and have those judged anew whom they may concern.

    Returns whether anything changes: what holds already (a form sent twice) is not stored again.
    Hosts and filesystems are judged in any case when judging comes round.
    """
    locks.opening()  # nobody is judged by what held before, once this holds
    before = LimitSet.objects.of_place(limits).first()
    if limits.is_withdrawn if before is None else before.says(limits):
        return False
    limits.save()
    # (what lower limits would bring back: not what somebody has dealt with, or what rests)
    fell = Q(state=Flag.State.RESOLVED, resolved_by="", rests=False)
    flagged = Flag.objects.filter(~Q(state=Flag.State.RESOLVED) | fell, rule=limits.rule)
    running = Job.objects.filter(started_at__isnull=False, ended_at=None)
    # Users are judged with their jobs: one of each will do.
    users = flagged.filter(subject_kind=Subject.USER).values("subject")
    known = Job.objects.filter(owner__in=users, statistics__isnull=False)
    newest = known.order_by("owner", "-started_at").distinct("owner")
    StaleEvidence.objects.ask_for(
        {
            *flagged.filter(job__isnull=False).values_list("job", flat=True),
            *running.values_list("pk", flat=True),
            *newest.values_list("pk", flat=True),
        }
    )
    return True


@dataclass(frozen=True)
class Place:
    """Where a subject is, as far as limits are concerned; None: not known, or no one place."""

    cluster: int | None = None
    filesystem: int | None = None
    queue: str | None = None


@dataclass(frozen=True)
class InForce:
    """What holds at a place."""

    limits: dict[str, float]
    advice: str
    is_on: bool
    scope: str  # in words: the narrowest part that says anything


class Book:
    """All limits that are in force now; narrower parts go before wider ones.

    A queue goes before its cluster, and a cluster before a filesystem. A job is in all three: that
    of its cluster and queue, and the filesystem on which it did most within five minutes.
    """

    def __init__(self, sets: Iterable[LimitSet] | None = None) -> None:
        if sets is None:
            sets = LimitSet.objects.in_force().select_related("cluster", "filesystem")
        self._of_rule: dict[str, list[LimitSet]] = defaultdict(list)
        for one in sorted(sets, key=width):
            self._of_rule[one.rule].append(one)

    def at(self, rule: Rule, place: Place) -> InForce:
        """Return what holds at a place for a rule."""
        limits, advice, is_on, scope = rule.defaults, rule.advice, True, "the rule's own"
        for one in self._of_rule[rule.code]:
            if not _covers(one, place):
                continue
            limits |= {name: one.limits[name] for name in rule.limits if name in one.limits}
            advice = one.advice or advice
            is_on = is_on if one.is_on is None else one.is_on
            if not one.is_withdrawn:
                scope = one.scope
        return InForce(limits, advice, is_on, scope)


def width(one: LimitSet) -> tuple[bool, bool, bool]:
    """Return by what sets are sorted, wide parts first."""
    return bool(one.queue), one.cluster_id is not None, one.filesystem_id is not None


def _covers(one: LimitSet, place: Place) -> bool:
    return (
        one.cluster_id in {None, place.cluster}
        and one.filesystem_id in {None, place.filesystem}
        and one.queue in {"", place.queue}
    )
