"""The evidence of a flag: its figures with thresholds, its impact and its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ioportal.findings import flags
from ioportal.findings.flag_values import in_words, threshold_in_words, title_of
from ioportal.findings.models import FlagEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import User

    from ioportal.findings.flags import FlagSummary
    from ioportal.findings.models import Flag

_STAFF_EVENTS = {FlagEvent.Kind.SUPPRESSED}
_WITH_ADVICE = {FlagEvent.Kind.OPENED, FlagEvent.Kind.GREW}


@dataclass(frozen=True)
class Figure:
    """One of a flag's numbers as text, with its threshold."""

    title: str
    value: str
    threshold: str  # "": none
    is_measure: bool


def figures(flag: Flag) -> list[Figure]:
    """Return the measure, other numbers with thresholds in the rule's order, then the rest.

    A number without a threshold is left out if another one of the same title has a threshold.
    """
    titles = {title_of(flag, name) for name in flag.thresholds}
    # The database does not keep the order of JSON members.
    in_order = flag.definition.thresholds if flag.definition else ()
    names = dict.fromkeys([flag.measure, *in_order, *flag.thresholds, *flag.numbers])
    return [
        Figure(
            title_of(flag, name),
            in_words(flag, name, flag.numbers.get(name)),
            threshold_in_words(flag, name) if name in flag.thresholds else "",
            name == flag.measure,
        )
        for name in names
        if name in flag.thresholds or (name in flag.numbers and title_of(flag, name) not in titles)
    ]


def events(flag: Flag, user: User) -> Iterable[FlagEvent]:
    """Return a flag's events in order; only staff see when it was suppressed, and the advice."""
    rows = flag.events.order_by("pk")
    if user.is_staff:
        return rows
    public = list(rows.exclude(kind__in=_STAFF_EVENTS))
    for event in public:
        if event.kind in _WITH_ADVICE:
            event.text = ""
    return public


def facts(summary: FlagSummary, user: User) -> dict[str, Any]:
    """Return a flag and its evidence under stable names."""
    flag = summary.flag
    return {
        **{name: flags.fact(summary, name) for name in flags.columns(user)},
        "rule_version": flag.rule_version,
        "numbers": flag.numbers,
        "thresholds": flag.thresholds,
        "scope": flag.scope,
        "suppression_reasons": flag.suppression_reasons,
        "impact_s": sum(episode.impact_s for episode in summary.episodes_for(user)),
        "events": [
            {
                "at": event.at,
                "kind": event.kind,
                "text": event.text,
                "value": event.value,
            }
            for event in events(flag, user)
        ],
    }
