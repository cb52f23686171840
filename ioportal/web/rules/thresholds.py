"""Thresholds of a rule as its page shows them: by part of the site, with their history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ioportal.findings.models import ThresholdSet
from ioportal.findings.thresholds import Place, ThresholdBook, precedence
from ioportal.rules.rule import Subject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ioportal.core.units import Unit
    from ioportal.findings.models.thresholds import ThresholdSetQuerySet
    from ioportal.findings.thresholds import EffectiveThresholds
    from ioportal.rules.rule import Rule

# The parts of the site that a subject belongs to; thresholds of other parts would not apply.
PARTS = {
    Subject.JOB: ("cluster", "queue", "filesystem"),
    Subject.USER: (),
    Subject.HOST: ("filesystem",),
    Subject.FILESYSTEM: ("filesystem",),
}
_STATUS = {True: "on", False: "off", None: "inherited"}


class Value(NamedTuple):
    """A threshold that applies in a part of the site."""

    value: float
    unit: Unit
    is_own: bool  # set for this part, not inherited


@dataclass(frozen=True)
class Scope:
    """The thresholds that apply in a part of the site."""

    title: str
    values: list[Value]
    effective: EffectiveThresholds
    set: ThresholdSet | None  # None: the rule's defaults


class Change(NamedTuple):
    """A change by a threshold set; None: inherited."""

    title: str
    unit: Unit | None  # None: the values are text
    before: float | str | None
    after: float | str | None


@dataclass(frozen=True)
class Revision:
    """A threshold set in the history of a rule."""

    set: ThresholdSet
    changes: list[Change]


def scopes(rule: Rule, sets: Iterable[ThresholdSet]) -> list[Scope]:
    """Return the thresholds of each part of the site, widest first, from the current sets."""
    own = [each for each in sets if each.rule == rule.code]
    book = ThresholdBook(own)
    active = sorted((each for each in own if not each.is_withdrawn), key=precedence)
    everywhere = next((each for each in active if each.is_everywhere), None)
    parts = (each for each in active if not each.is_everywhere)
    return [_scope(rule, book, each) for each in (everywhere, *parts)]


def _scope(rule: Rule, book: ThresholdBook, own: ThresholdSet | None) -> Scope:
    place = Place(own.cluster_id, own.filesystem_id, own.queue or None) if own else Place()
    effective = book.at(rule, place)
    values = [
        Value(effective.thresholds[name], threshold.unit, bool(own and name in own.thresholds))
        for name, threshold in rule.thresholds.items()
    ]
    return Scope(own.scope if own else "everywhere", values, effective, own)


def narrower_scopes(than: ThresholdSet, sets: ThresholdSetQuerySet) -> list[str]:
    """Return the narrower parts of the site that have their own thresholds, as text."""
    active = (
        each
        for each in sets.current().select_related("cluster", "filesystem")
        if (each.thresholds or each.is_on is not None) and precedence(each) > precedence(than)
    )
    return [each.scope for each in sorted(active, key=precedence) if each.overlaps(than)]


def history(rule: Rule, sets: Iterable[ThresholdSet]) -> list[Revision]:
    """Return the changes by each set to the previous one of the same part, latest first."""
    previous: dict[tuple[int | None, int | None, str], ThresholdSet] = {}
    revisions = []
    for each in sorted(sets, key=lambda each: each.pk):
        scope = (each.cluster_id, each.filesystem_id, each.queue)
        revisions.append(
            Revision(each, _changes(rule, previous.get(scope) or ThresholdSet(), each))
        )
        previous[scope] = each
    return revisions[::-1]


def _changes(rule: Rule, before: ThresholdSet, after: ThresholdSet) -> list[Change]:
    inherited = rule.defaults if after.is_everywhere else {}
    changes = []
    for name in dict.fromkeys([*rule.thresholds, *before.thresholds, *after.thresholds]):
        values = [each.thresholds.get(name, inherited.get(name)) for each in (before, after)]
        if values[0] != values[1]:
            threshold = rule.thresholds.get(name)
            if threshold:
                changes.append(Change(threshold.title, threshold.unit, *values))
            else:  # of an earlier version of the rule
                changes.append(Change(name, None, *(v if v is None else str(v) for v in values)))
    if before.is_on != after.is_on:
        changes.append(Change("Status", None, _STATUS[before.is_on], _STATUS[after.is_on]))
    if before.advice != after.advice:
        changes.append(Change("Advice", None, before.advice or None, after.advice or None))
    return changes
