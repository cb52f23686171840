"""Measured effects of past mitigations on a case's page and in mails.

A comparison takes seconds. Neither waits for it: a task measures the mitigations, and caches the
results.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db.models import Exists, OuterRef
from django.http import QueryDict
from django.utils import timezone

from ioportal.changes import mitigation_effects
from ioportal.changes.expectations import together
from ioportal.changes.models import Mitigation
from ioportal.core.units import Source
from ioportal.core.visible_text import visible
from ioportal.findings.models import Case
from ioportal.jobs.analysis.anonymity import MIN_GROUP
from ioportal.jobs.analysis.comparison.results import Scale, Verdict
from ioportal.jobs.analysis.remedies import MIN_SHARE
from ioportal.jobs.populations import scopes
from ioportal.metrics import ANY_BY_NAME, BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.contrib.auth.models import User

    from ioportal.changes.before_after import Neighbour
    from ioportal.changes.mitigation_effects import MeasuredEffect
    from ioportal.jobs.analysis.comparison.results import Effect

_KEY = "mitigation-effect-5"  # to be changed with `PastEffect`
_CACHED = timedelta(days=30)
_MEASURED_AGAIN = timedelta(days=1)  # while data arrives
_TRIED_AGAIN = timedelta(hours=1)  # if there is no effect yet
_LISTED = 10
_QUOTED = 2
_METADATA = {Source.JOB_STATS_MDT, Source.RPC_TRACE, Source.IMPACT, Source.EXPORTS}
# Kinds of metadata operations that metrics count, and that mitigations reduce.
_OF_METRICS: dict[str, tuple[str, ...]] = {
    "opens": ("open",),
    "closes": ("close",),
    "open_close_ratio": ("open",),
}
_OF_KINDS: dict[str, tuple[str, ...]] = {
    Mitigation.Kind.SOFTWARE: ("open", "getattr"),
    Mitigation.Kind.ENVIRONMENT: ("open", "getattr"),
    Mitigation.Kind.PLACEMENT: ("open", "mknod", "unlink"),
}
_OF_STAFF = {Mitigation.Kind.SERVER, Mitigation.Kind.SCHEDULING, Mitigation.Kind.OTHER}


@dataclass(frozen=True)
class PastEffect:
    """The measured effect of a mitigation, as it is cached.

    Args:
        text: the effect as a sentence, or why there is none.
        missing: gaps in the data, and unknown values.
        together: other events that contribute to the effect.
        has_helped: whether the expected metric changed significantly, as expected.
        direction: the effect without figures.
        hides_owners: whether its figures reveal no owner of the jobs before and after.
        strength: ratio of the larger to the smaller median; 1: unknown.
        facts: of the mitigation, on which the effect depends.
        measured_at: seconds since the epoch.
    """

    text: str
    missing: tuple[str, ...] = ()
    together: tuple[Neighbour, ...] = ()
    has_helped: bool = False
    direction: str = ""
    hides_owners: bool = False
    strength: float = 1.0
    facts: tuple[object, ...] = ()
    measured_at: float = 0.0


_NOT_MEASURED = PastEffect("Not measured yet.")


def measure_next(limit: int) -> int:
    """Measure some mitigations without a recent effect, the latest first; return how many."""
    mitigations = Mitigation.objects.exclude(metric="").order_by("-started_at", "-pk")
    stored = _stored(mitigations)
    now = timezone.now().timestamp()

    def is_due(effect: PastEffect) -> bool:
        valid = _TRIED_AGAIN if effect.strength == 1.0 else _MEASURED_AGAIN
        return effect.measured_at < now - valid.total_seconds()

    due = [each for each in mitigations if each.pk not in stored or is_due(stored[each.pk])][:limit]
    staff = get_user_model()(is_staff=True)
    for measured in mitigation_effects.measure(due, staff):
        mitigation = measured.mitigation
        result = PastEffect(
            measured.text,
            tuple(measured.missing),
            measured.periods.together,
            _has_helped(measured),
            _direction(measured),
            _hides_owners(measured),
            _strength(measured.effect),
            _facts(mitigation),
            now,
        )
        cache.set(_key(mitigation), result, _CACHED.total_seconds())
    return len(due)


def for_case(case: Case) -> list[tuple[Mitigation, PastEffect]]:
    """Return past mitigations of the same kind of finding, or of the case's owner, for staff.

    Mitigations that helped come first, the strongest effect first.
    """
    relevant = [each for each in _past(case) if _fits(case, each) or _is_of_owner(case, each)]
    return _with_effects(relevant)[:_LISTED]


def that_helped(
    case: Case, operations: Mapping[str, float], at_once: int, reader: User
) -> list[str]:
    """Return what helped with the same kind of finding, at most two, without names of users.

    Args:
        case: the case.
        operations: metadata operations of its jobs by kind: fixes of others are no help.
        at_once: how many of its jobs ran at the same time.
        reader: who reads it: figures that could reveal another user's jobs are left out.

    Only significant effects on at least ten jobs before and after count. Other mitigations that
    were measured together are named by their titles if all users may see these.
    """
    fit = [
        each
        for each in _past(case)
        if _fits(case, each)
        and each.kind not in _OF_STAFF
        and each.reverted_at is None
        and _concerns(each, operations, at_once)
    ]
    helped: dict[str, tuple[Mitigation, PastEffect]] = {}
    for mitigation, effect in _with_effects(fit):
        if effect.has_helped:  # changes that were measured together have the same effect
            helped.setdefault(effect.text, (mitigation, effect))
    lines = (_quoted(*pair, reader) for pair in helped.values())
    return list(islice(dict.fromkeys(lines), _QUOTED))


def _quoted(mitigation: Mitigation, effect: PastEffect, reader: User) -> str:
    """Return what helped, with titles that all users may see."""
    causes = f" {together(_for_all_users(effect.together))}" if effect.together else ""
    is_visible = effect.hides_owners or _is_of_reader(mitigation, reader)
    text = effect.text if is_visible else effect.direction
    return visible(f"{mitigation.get_kind_display().capitalize()}{causes}: {text}")


def _is_of_reader(mitigation: Mitigation, reader: User) -> bool:
    """Return whether a mitigation concerns only the jobs of its reader."""
    return set(QueryDict(mitigation.scope).getlist("user")) == {reader.get_username()}


def _for_all_users(others: Iterable[Neighbour]) -> list[Neighbour]:
    """Return events without the titles of mitigations that not all users may see."""
    keys = [other.key for other in others if other.key]
    public = set(
        Mitigation.objects.filter(pk__in=keys, is_public=True).values_list("pk", flat=True)
    )
    return [
        other
        if other.key is None or other.key in public
        else replace(other, event=replace(other.event, text=""))
        for other in others
    ]


def _past(case: Case) -> Iterable[Mitigation]:
    """Return earlier mitigations with an expected metric; `of_rule`: from a case of its rule."""
    from_case = Case.objects.filter(pk=OuterRef("case_key"), rule=case.rule)
    past = Mitigation.objects.exclude(metric="").filter(started_at__lt=timezone.now())
    return past.annotate(of_rule=Exists(from_case))


def _fits(case: Case, mitigation: Mitigation) -> bool:
    """Return whether a mitigation is about the same kind of finding as a case."""
    annotated: Any = mitigation
    rule, metric = case.definition, BY_NAME.get(mitigation.metric)
    if annotated.of_rule:
        return True
    if rule is None or metric is None:
        return False
    return metric.source is rule.source or {metric.source, rule.source} <= _METADATA


def _concerns(mitigation: Mitigation, operations: Mapping[str, float], at_once: int) -> bool:
    """Return whether a mitigation is about something that some jobs do."""
    if mitigation.kind == Mitigation.Kind.CONCURRENCY and at_once <= 1:
        return False
    total = sum(operations.values())
    return all(
        sum(operations.get(kind, 0) for kind in kinds) >= MIN_SHARE * total
        for kinds in (_OF_METRICS.get(mitigation.metric), _OF_KINDS.get(mitigation.kind))
        if kinds
    )


def _is_of_owner(case: Case, mitigation: Mitigation) -> bool:
    """Return whether a mitigation concerned jobs of the case's owner and application."""
    if not case.owner or "user" not in QueryDict(mitigation.scope):
        return False
    names = {"user": case.owner, "name": case.application}
    own = urlencode({name: value for name, value in names.items() if value})
    return scopes.may_overlap(mitigation.scope, own)


def _with_effects(mitigations: list[Mitigation]) -> list[tuple[Mitigation, PastEffect]]:
    stored = _stored(mitigations)
    rows = [(each, stored.get(each.pk, _NOT_MEASURED)) for each in mitigations]
    return sorted(rows, key=lambda row: (row[1].has_helped, row[1].strength), reverse=True)


def _stored(mitigations: Iterable[Mitigation]) -> dict[int, PastEffect]:
    """Return the cached effects of mitigations that did not change since then, by key."""
    by_key = {_key(each): each for each in mitigations}
    cached: dict[str, PastEffect] = cache.get_many(by_key)
    return {
        by_key[key].pk: effect
        for key, effect in cached.items()
        if effect.facts == _facts(by_key[key])
    }


def _key(mitigation: Mitigation) -> str:
    return f"{_KEY}:{mitigation.pk}"


def _facts(mitigation: Mitigation) -> tuple[object, ...]:
    names = ("scope", "metric", "factor", "direction")
    times = ("started_at", "completed_at", "reverted_at")
    return tuple(getattr(mitigation, name) for name in (*names, *times))


def _has_helped(measured: MeasuredEffect) -> bool:
    effect, expected = measured.effect, measured.mitigation.expected
    if effect is None or effect.verdict is not Verdict.CHANGED or effect.estimate is None:
        return False
    metric = BY_NAME.get(measured.mitigation.metric)
    if expected is None and (metric is None or metric.source not in _METADATA):
        return False  # better may be more or less
    if expected and expected.is_no_change:
        return False
    should_fall = expected is None or expected.is_fall
    has_fallen = effect.estimate < (1 if effect.scale is Scale.RATIO else 0)
    if metric and metric.source in _METADATA and not has_fallen:
        return False  # more load is no help, even if it was expected
    return should_fall == has_fallen and min(measured.jobs) >= MIN_GROUP


def _direction(measured: MeasuredEffect) -> str:
    if measured.effect is None or measured.effect.estimate is None:
        return ""
    has_fallen = measured.effect.estimate < (1 if measured.effect.scale is Scale.RATIO else 0)
    return f"{ANY_BY_NAME[measured.mitigation.metric].title} {'fell' if has_fallen else 'rose'}."


def _hides_owners(measured: MeasuredEffect) -> bool:
    """Return whether other users may read the figures: of the compared jobs of each period."""
    figures = measured.figures
    return figures is not None and all(arm.hides_owners for arm in figures.arms)


def _strength(effect: Effect | None) -> float:
    if effect is None or effect.scale is not Scale.RATIO or not effect.estimate:
        return 1.0
    return max(effect.estimate, 1 / effect.estimate)
