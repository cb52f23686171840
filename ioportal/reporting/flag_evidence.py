"""The evidence of a flag: its figures with thresholds, its impact intervals and its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ioportal.analysis.rules.evidence import DAY, PEAK_SPAN
from ioportal.analysis.rules.rule import GROUPS, Subject
from ioportal.flags.models import FlagEvent
from ioportal.reporting import flags
from ioportal.reporting.flag_values import in_words, title_of
from ioportal.site.models import Server
from ioportal.telemetry import coverage, levels
from ioportal.telemetry.models import ImpactWindow, JobGroup

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.flags.models import Flag
    from ioportal.reporting.flags import FlagSummary

_STAFF_EVENTS = {FlagEvent.Kind.SUPPRESSED}


@dataclass(frozen=True)
class Figure:
    """One of a flag's numbers as text, with its threshold."""

    title: str
    value: str
    threshold: str  # "": none
    is_measure: bool


@dataclass(frozen=True)
class ImpactInterval:
    """An interval in which a principal slowed down others at a server."""

    server: str
    filesystem: str
    start: datetime
    end: datetime
    impact_s: float


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
            in_words(flag, name, flag.thresholds[name]) if name in flag.thresholds else "",
            name == flag.measure,
        )
        for name in names
        if name in flag.thresholds or (name in flag.numbers and title_of(flag, name) not in titles)
    ]


def impact_intervals(flag: Flag) -> list[ImpactInterval]:
    """Return the intervals of impact of a flag's principal, largest impact first."""
    if flag.subject_kind in GROUPS:
        group = JobGroup.objects.filter(
            kind=JobGroup.Kind[flag.subject_kind.upper()], text=flag.subject
        )
        rows = ImpactWindow.objects.filter(kind__in=JobGroup.Kind.values).between(
            flag.since - DAY, flag.until
        )
        rows = rows.filter(principal_id__in=group.values("pk"))
    elif principal := flags.principal(flag):
        kind, key = principal
        rows = ImpactWindow.objects.filter(kind=kind, principal_id=key)
    else:
        return []
    if flag.subject_kind == Subject.HOST:  # flagged for one filesystem and time alone
        servers = Server.objects.filter(filesystem=flag.filesystem_id)
        rows = rows.between(flag.since - PEAK_SPAN, flag.until)
        rows = rows.filter(server_id__in=servers.values("pk"))
    windows = rows.order_by("server_id", "start").values_list("server_id", "start", "impact_us")
    return sorted(_joined(windows), key=lambda interval: -interval.impact_s)


def _joined(windows: Iterable[tuple[int, datetime, int]]) -> list[ImpactInterval]:
    """Join adjacent windows of a server; the windows are ordered by server and time."""
    servers = Server.objects.select_related("filesystem").in_bulk()
    intervals: list[tuple[int, datetime, datetime, int]] = []
    for server, start, impact_us in windows:
        end = start + levels.IMPACT.width
        if (
            intervals
            and intervals[-1][0] == server
            and start - intervals[-1][2] <= coverage.SHORTEST_GAP
        ):
            _, first, _, total_us = intervals.pop()
            intervals.append((server, first, end, total_us + impact_us))
        else:
            intervals.append((server, start, end, impact_us))
    return [
        ImpactInterval(servers[key].name, servers[key].filesystem.name, start, end, us / 1e6)
        for key, start, end, us in intervals
    ]


def events(flag: Flag, user: User) -> Iterable[FlagEvent]:
    """Return a flag's events in order; only staff see when it was suppressed."""
    rows = flag.events.order_by("pk")
    return rows if user.is_staff else rows.exclude(kind__in=_STAFF_EVENTS)


def facts(summary: FlagSummary, user: User) -> dict[str, Any]:
    """Return a flag and its evidence under stable names."""
    flag = summary.flag
    return {
        **{name: flags.fact(summary, name) for name in flags.COLUMNS},
        "rule_version": flag.rule_version,
        "numbers": flag.numbers,
        "thresholds": flag.thresholds,
        "scope": flag.scope,
        "suppression_reasons": flag.suppression_reasons,
        "impact_s": sum(interval.impact_s for interval in impact_intervals(flag)),
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
