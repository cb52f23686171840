"""The thresholds of a rule as its page tells them: what holds where, and who changed what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ioportal.analysis.rules.rule import Subject
from ioportal.flags.models import ThresholdSet
from ioportal.flags.thresholds import Place, ThresholdBook, precedence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ioportal.analysis.metrics import Unit
    from ioportal.analysis.rules.rule import Rule
    from ioportal.flags.models.thresholds import ThresholdSetQuerySet
    from ioportal.flags.thresholds import EffectiveThresholds

# Which parts of the site subjects are in: thresholds of others would concern nobody.
PARTS = {
    Subject.JOB: ("cluster", "queue", "filesystem"),
    Subject.USER: (),
    Subject.HOST: ("filesystem",),
    Subject.FILESYSTEM: ("filesystem",),
}
_ON = {True: "on", False: "off", None: "as the wider part says"}


class Held(NamedTuple):
    """A threshold at a place."""

    value: float
    unit: Unit
    is_own: bool  # set there, not for a wider part


@dataclass(frozen=True)
class Scope:
    """What holds in a part of the site."""

    words: str
    thresholds: list[Held]
    effective: EffectiveThresholds
    set: ThresholdSet | None  # what says so; None: the rule itself


class Change(NamedTuple):
    """One thing that a set of thresholds changed; values are None where a wider part says them."""

    title: str
    unit: Unit | None  # None: they are words
    before: float | str | None
    after: float | str | None


@dataclass(frozen=True)
class Step:
    """A set of thresholds in a rule's history."""

    set: ThresholdSet
    changes: list[Change]


def scopes(rule: Rule, sets: Iterable[ThresholdSet]) -> list[Scope]:
    """Return what holds where, widest first, from the sets in force."""
    known = [one for one in sets if one.rule == rule.code]
    book = ThresholdBook(known)
    saying = sorted((one for one in known if not one.is_withdrawn), key=precedence)
    everywhere = next((one for one in saying if one.is_everywhere), None)
    narrower = (one for one in saying if not one.is_everywhere)
    return [_scope(rule, book, one) for one in (everywhere, *narrower)]


def _scope(rule: Rule, book: ThresholdBook, one: ThresholdSet | None) -> Scope:
    place = Place(one.cluster_id, one.filesystem_id, one.queue or None) if one else Place()
    effective = book.at(rule, place)
    own = one.thresholds if one else {}
    held = [
        Held(effective.thresholds[name], threshold.unit, name in own)
        for name, threshold in rule.thresholds.items()
    ]
    return Scope(one.scope if one else "everywhere", held, effective, one)


def narrower(than: ThresholdSet, sets: ThresholdSetQuerySet) -> list[str]:
    """Return the narrower parts of the site with thresholds of their own, in words."""
    saying = (
        one
        for one in sets.current().select_related("cluster", "filesystem")
        if (one.thresholds or one.is_on is not None) and precedence(one) > precedence(than)
    )
    return [one.scope for one in sorted(saying, key=precedence) if one.overlaps(than)]


def history(rule: Rule, sets: Iterable[ThresholdSet]) -> list[Step]:
    """Return what each set changed of what was said for the same part, newest first."""
    before: dict[tuple[int | None, int | None, str], ThresholdSet] = {}
    steps = []
    for one in sorted(sets, key=lambda one: one.pk):
        scope = (one.cluster_id, one.filesystem_id, one.queue)
        steps.append(Step(one, _changes(rule, before.get(scope) or ThresholdSet(), one)))
        before[scope] = one
    return steps[::-1]


def _changes(rule: Rule, before: ThresholdSet, after: ThresholdSet) -> list[Change]:
    wider = rule.defaults if after.is_everywhere else {}
    changes = []
    for name in dict.fromkeys([*rule.thresholds, *before.thresholds, *after.thresholds]):
        values = [one.thresholds.get(name, wider.get(name)) for one in (before, after)]
        if values[0] != values[1]:
            threshold = rule.thresholds.get(name)
            if threshold:
                changes.append(Change(threshold.title, threshold.unit, *values))
            else:  # the rule had it once
                changes.append(Change(name, None, *(v if v is None else str(v) for v in values)))
    if before.is_on != after.is_on:
        changes.append(Change("The rule", None, _ON[before.is_on], _ON[after.is_on]))
    if before.advice != after.advice:
        changes.append(Change("Advice", None, before.advice or None, after.advice or None))
    return changes
