"""Impact analysis of an interval of servers, from its windows or stored before they expired."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db.models import Q

from ioportal.activity import baselines, job_groups, principal_windows
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
class Analysis:
    """Load and impact by principal, RPC times, and slow intervals."""

    impact: Impact
    latency: pl.DataFrame  # columns of `analysis.impact.latency`
    slow: list[Slowdown]


def analyse(server_ids: Collection[int], start: datetime, end: datetime) -> Analysis | None:
    """Analyse the windows of servers that overlap [start, end).

    None if there are none, or some have expired: missing principals would look harmless.
    """
    start = floor_to_window(start)
    if not retention.is_retained([levels.ATTRIBUTED_RPCS], start, end):
        return None
    windows = principal_windows.windows(server_ids, start, end)
    if windows.is_empty():
        return None
    baseline = baselines.at_time(server_ids, start)
    return Analysis(
        impact_of(windows, baseline, principal_windows.members(windows)),
        latency_of(windows, baseline),
        [] if baseline.is_empty() else baselines.slowdowns(server_ids, start, end, baseline),
    )


def analyse_incident(incident: Incident) -> Analysis | None:
    """Return the analysis of an incident; None if its windows expired before it was saved."""
    if incident.figures is not None:
        return _restored(incident.figures)
    return analyse([incident.server_id], incident.start, incident.end)


def store_figures(expiring: Sequence[Interval]) -> None:
    """Store the analyses of incidents whose windows are about to be dropped.

    Until then incidents are analysed from their windows, so that late data counts.
    """
    overlaps = Q()
    for start, end in expiring:
        overlaps |= Q(start__lt=end, end__gt=start)
    for incident in Incident.objects.filter(overlaps, figures__isnull=True) if expiring else ():
        if analysis := analyse_incident(incident):
            incident.figures = _figures(analysis)
            incident.save(update_fields=["figures"])


def _figures(analysis: Analysis) -> dict[str, Any]:
    return {
        "known_share": analysis.impact.known_share,
        "waited_s": analysis.impact.waited_s,
        "principals": analysis.impact.principals.to_dicts(),
        "groups": _stored_groups(analysis.impact.groups).to_dicts(),
        "latency": analysis.latency.to_dicts(),
        "slow": [asdict(interval) for interval in analysis.slow],
    }


def _restored(figures: dict[str, Any]) -> Analysis:
    slow = (
        interval | {name: datetime.fromisoformat(interval[name]) for name in ("start", "end")}
        for interval in figures["slow"]
    )
    principals = figures["principals"]
    waited_s = sum(row["suffered_s"] for row in principals)  # of figures stored without it
    return Analysis(
        Impact(
            _frame(principals),
            _restored_groups(_frame(figures.get("groups", []))),
            figures["known_share"],
            figures.get("waited_s", waited_s),
        ),
        _frame(figures["latency"]),
        [Slowdown(**interval) for interval in slow],
    )


def _stored_groups(groups: pl.DataFrame) -> pl.DataFrame:
    """Replace names of groups by keys: figures contain no names of users."""
    accountable = groups.filter(pl.col("impact_s") > 0)
    keys = job_groups.stored(accountable.select("kind", "key").rows())
    keyed = accountable.join(keys, on=["kind", "key"], maintain_order="left")
    return keyed.drop("kind", "key", "kind_id")


def _restored_groups(groups: pl.DataFrame) -> pl.DataFrame:
    if groups.is_empty():
        return groups
    names = job_groups.by_key(groups["principal_id"])
    return groups.join(names, on="principal_id", maintain_order="left")


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)
