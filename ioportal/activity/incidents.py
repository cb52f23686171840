"""What is known of an interval of servers: told by its windows, or stored before they went."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db.models import Q

from ioportal.activity import baselines, impact
from ioportal.activity.models import Incident
from ioportal.analysis.impact import Impact, Slowdown
from ioportal.analysis.impact import impact as impact_of
from ioportal.analysis.impact import latency as latency_of
from ioportal.telemetry import levels, retention
from ioportal.telemetry.models import floor_to_window

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ioportal.telemetry.coverage import Interval


@dataclass(frozen=True)
class Judged:
    """Who carried the load and who suffered, how long RPCs took, and when servers were slow."""

    impact: Impact
    latency: pl.DataFrame  # columns of `analysis.impact.latency`
    slow: list[Slowdown]


def judge(server_ids: Collection[int], start: datetime, end: datetime) -> Judged | None:
    """Judge the windows of some servers that touch [start, end).

    None: there are none, or not all any more. Of a rest nobody is judged: who is missing would look
    harmless.
    """
    start = floor_to_window(start)
    if not retention.is_retained([levels.ATTRIBUTED_RPCS], start, end):
        return None
    windows = impact.windows(server_ids, start, end)
    if windows.is_empty():
        return None
    usual = baselines.usual(server_ids, start)
    return Judged(
        impact_of(windows, usual),
        latency_of(windows, usual),
        [] if usual.is_empty() else baselines.slowdowns(server_ids, start, end, usual),
    )


def of(incident: Incident) -> Judged | None:
    """Return what is known of an incident; None: nothing is."""
    if incident.figures is not None:
        return _restored(incident.figures)
    return judge([incident.server_id], incident.start, incident.end)


def remember(going: Sequence[Interval]) -> None:
    """Store what is known of incidents of which windows are about to be dropped.

    Up to then it is told by the windows themselves, late ones too.
    """
    touched = Q()
    for start, end in going:
        touched |= Q(start__lt=end, end__gt=start)
    for incident in Incident.objects.filter(touched, figures__isnull=True) if going else ():
        if judged := of(incident):
            incident.figures = _stored(judged)
            incident.save(update_fields=["figures"])


def _stored(judged: Judged) -> dict[str, Any]:
    return {
        "known_share": judged.impact.known_share,
        "principals": judged.impact.principals.to_dicts(),
        "latency": judged.latency.to_dicts(),
        "slow": [asdict(one) for one in judged.slow],
    }


def _restored(figures: dict[str, Any]) -> Judged:
    slow = (
        one | {name: datetime.fromisoformat(one[name]) for name in ("start", "end")}
        for one in figures["slow"]
    )
    return Judged(
        Impact(_frame(figures["principals"]), figures["known_share"]),
        _frame(figures["latency"]),
        [Slowdown(**one) for one in slow],
    )


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)
