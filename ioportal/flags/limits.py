"""Which limits hold where: the rule's own, and those that the site set for a part of itself."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import polars as pl
from django.db import transaction

from ioportal.analysis.rules.evidence import OF_SUBJECT
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
def put_in_force(limits: LimitSet) -> None:
    """Store limits, and have those judged anew whom they may concern."""
    limits.save()
    flagged = Flag.objects.unresolved().filter(rule=limits.rule, job__isnull=False)
    running = Job.objects.filter(started_at__isnull=False, ended_at=None)
    jobs = {*flagged.values_list("job", flat=True), *running.values_list("pk", flat=True)}
    StaleEvidence.objects.ask_for(jobs)


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
    """All limits that are in force now; narrower parts go before wider ones."""

    def __init__(self, sets: Iterable[LimitSet] | None = None) -> None:
        if sets is None:
            sets = LimitSet.objects.in_force().select_related("cluster", "filesystem")
        self._of_rule: dict[str, list[LimitSet]] = defaultdict(list)
        for one in sorted(sets, key=_width):
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
            if one.limits or one.advice or one.is_on is not None:
                scope = one.scope
        return InForce(limits, advice, is_on, scope)


def _width(one: LimitSet) -> tuple[bool, bool, bool]:
    """Sort wide parts first: a queue is narrower than a cluster, and that than a filesystem."""
    return bool(one.queue), one.cluster_id is not None, one.filesystem_id is not None


def _covers(one: LimitSet, place: Place) -> bool:
    return (
        one.cluster_id in {None, place.cluster}
        and one.filesystem_id in {None, place.filesystem}
        and one.queue in {"", place.queue}
    )
