"""Impact analysis of an interval of servers, from its windows or stored before they expired."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db.models import Q

from ioportal.load import baselines
from ioportal.load.analysis.replay.impact_by_group import PARTS, QUEUES
from ioportal.load.analysis.waiting import GROUPS, REQUESTS, Impact, Slowdown
from ioportal.load.analysis.waiting import impact as impact_of
from ioportal.load.analysis.waiting import latency as latency_of
from ioportal.load.analysis.waiting import requests as requests_of
from ioportal.load.impact import impact_estimates, job_groups, principal_windows, replays
from ioportal.load.impact.impact_estimates import Estimate
from ioportal.load.models import Incident
from ioportal.telemetry import levels, retention
from ioportal.telemetry.models import ceil_to_window, floor_to_window

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ioportal.load.impact.replays import Replay
    from ioportal.telemetry.coverage import Interval

# Levels of which analyses are made.
LEVELS = (levels.ATTRIBUTED_RPCS, levels.IO_WINDOWS, levels.SERVICE_SNAPSHOTS)


@dataclass(frozen=True)
class Analysis:
    """Load and impact by principal, RPC times, and slow intervals."""

    source: str  # of the impact: measured, estimated, partly estimated or unknown
    impact: Impact
    latency: pl.DataFrame  # columns of `load.analysis.waiting.latency`
    slow: list[Slowdown]
    requests: (
        pl.DataFrame
    )  # who is behind latency and slow intervals: `load.analysis.waiting.REQUESTS`
    queues: (
        pl.DataFrame
    )  # of traced servers: column server and `load.analysis.replay.impact_by_group.QUEUES`
    queue_parts: pl.DataFrame  # column server and `load.analysis.replay.impact_by_group.PARTS`


def analyse(server_ids: Collection[int], start: datetime, end: datetime) -> Analysis | None:
    """Analyse the windows of servers that overlap [start, end).

    None if there are none, or some have expired: missing principals would look harmless. Where a
    server was not traced, its slow windows are estimated.
    """
    start, end = floor_to_window(start), ceil_to_window(end)
    if not retention.is_retained(LEVELS, start, end):
        return None
    usual = baselines.at_time(server_ids, start)
    estimates = _estimates(server_ids, start, end, usual)
    measured = principal_windows.windows(server_ids, start, end)
    for estimate in estimates:
        measured = measured.filter(~estimate.includes())
    if measured.is_empty() and not estimates:
        return None
    baseline = pl.concat([usual, *(each.baseline for each in estimates)])
    parts = [measured, *(each.slow_windows for each in estimates)]
    windows = pl.concat(parts, how="vertical_relaxed")
    members = principal_windows.members(windows)
    replayed = {server: replays.of_server(server, start, end) for server in server_ids}
    impacts = _impacts(replayed, estimates)
    impact = impact_of(windows, baseline, members, impacts)
    source = _source(measured, estimates, replayed.values())
    if not all(replay.is_known for replay in replayed.values()):
        impact = _without_zeros(impact)
        source = source if impacts["impact_us"].sum() else "unknown"
    slow = _slowdowns(server_ids, start, end, usual, estimates)
    return Analysis(
        source,
        replace(impact, known_share=1.0) if windows.is_empty() else impact,
        latency_of(windows, baseline),
        slow,
        requests_of(windows, baseline, slow),
        *(
            pl.concat([*_with_server(frames), pl.DataFrame(schema=schema)], how="diagonal_relaxed")
            for frames, schema in (
                ({server: replay.queues for server, replay in replayed.items()}, QUEUES),
                ({server: replay.parts for server, replay in replayed.items()}, PARTS),
            )
        ),
    )


def _with_server(frames: Mapping[int, pl.DataFrame]) -> list[pl.DataFrame]:
    return [frame.with_columns(server=pl.lit(server)) for server, frame in frames.items()]


def _impacts(replayed: Mapping[int, Replay], estimates: list[Estimate]) -> pl.DataFrame:
    """Return the impact of groups, measured and estimated: columns kind, key and impact_us."""
    impacts = {
        server: pl.concat([each.impact.impacts, each.partly_traced.impacts])
        for server, each in replayed.items()
    }
    frames = _with_server(impacts)
    for estimate in estimates:
        frames = [frame.filter(~estimate.includes()) for frame in frames]
        frames.append(estimate.impact.impacts)
    return pl.concat(frame.select("kind", "key", "impact_us") for frame in frames)


def slowdowns(server_ids: Collection[int], start: datetime, end: datetime) -> list[Slowdown]:
    """Return slow intervals of servers in [start, end) by their latest baselines, worst first."""
    start, end = floor_to_window(start), ceil_to_window(end)
    usual = baselines.at_time(server_ids, end)
    return _slowdowns(server_ids, start, end, usual, _estimates(server_ids, start, end, usual))


def _slowdowns(
    server_ids: Collection[int],
    start: datetime,
    end: datetime,
    usual: pl.DataFrame,
    estimates: list[Estimate],
) -> list[Slowdown]:
    slow = [] if usual.is_empty() else baselines.slowdowns(server_ids, start, end, usual)
    slow += chain.from_iterable(estimate.slowdowns() for estimate in estimates)
    return sorted(slow, key=lambda interval: -interval.waited_s)


def _estimates(
    server_ids: Collection[int], start: datetime, end: datetime, usual: pl.DataFrame
) -> list[Estimate]:
    """Return the estimates of servers with statistics and a baseline where not traced."""
    estimates = (
        Estimate(server, *part, baseline_at=end)
        for server in server_ids
        for part in impact_estimates.untraced(server, start, end, usual)
    )
    return [estimate for estimate in estimates if not estimate.baseline.is_empty()]


def _source(measured: pl.DataFrame, estimates: list[Estimate], replayed: Collection[Replay]) -> str:
    """Return how impact was computed. Queues with long gaps in the trace are estimated."""
    partly, wholly = (
        any(not impacts.impacts.is_empty() for impacts in each)
        for each in zip(
            *((replay.partly_traced, replay.impact) for replay in replayed), strict=True
        )
    )
    if not estimates and not partly:
        return "measured"
    is_measured = wholly or not (partly or measured.is_empty())
    return "partly estimated" if is_measured else "estimated"


def _without_zeros(impact: Impact) -> Impact:
    """Return impact of which some is unknown: where no other was found, it is unknown, not 0."""
    known = pl.when(pl.col("impact_s") > 0).then("impact_s")
    frames = (impact.principals, impact.groups)
    principals, groups = (frame.with_columns(impact_s=known) for frame in frames)
    return replace(impact, principals=principals, groups=groups)


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
        "source": analysis.source,
        "known_share": analysis.impact.known_share,
        "waited_s": analysis.impact.waited_s,
        "principals": analysis.impact.principals.to_dicts(),
        "groups": _stored_groups(analysis.impact.groups).to_dicts(),
        "latency": analysis.latency.to_dicts(),
        "slow": [asdict(interval) for interval in analysis.slow],
        "requests": analysis.requests.to_dict(as_series=False),
        "queues": _stored_queues(analysis.queues).to_dicts(),
        "queue_parts": analysis.queue_parts.to_dicts(),
    }


def _restored(figures: dict[str, Any]) -> Analysis:
    slow = (
        interval | {name: datetime.fromisoformat(interval[name]) for name in ("start", "end")}
        for interval in figures["slow"]
    )
    principals = figures["principals"]
    waited_s = sum(row["suffered_s"] for row in principals)  # of figures stored without it
    return Analysis(
        figures.get("source", "measured"),
        Impact(
            _frame(principals),
            _restored_groups(_frame(figures.get("groups", []))),
            figures["known_share"],
            figures.get("waited_s", waited_s),
        ),
        _frame(figures["latency"]),
        [Slowdown(**interval) for interval in slow],
        _restored_requests(figures.get("requests", {})),
        _restored_queues(_frame(figures.get("queues", []))),
        _with_times(_frame(figures.get("queue_parts", [])), "start"),
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


def _stored_queues(queues: pl.DataFrame) -> pl.DataFrame:
    """Replace the keys of groups, which have names of users, like `_stored_groups`."""
    is_group = pl.col("kind").is_in(GROUPS)
    groups = queues.filter(is_group).select("kind", "key").unique()
    keys = job_groups.stored(groups.rows())
    return queues.join(keys, on=["kind", "key"], how="left", maintain_order="left").with_columns(
        key=pl.when(~is_group).then("key")
    )


def _restored_queues(queues: pl.DataFrame) -> pl.DataFrame:
    if queues.is_empty():
        return queues
    stored = job_groups.by_key(queues["principal_id"].drop_nulls())
    names = stored.select("principal_id", name="key")
    return (
        _with_times(queues, "start", "end")
        .join(names, on="principal_id", how="left", maintain_order="left")
        .with_columns(key=pl.coalesce("key", "name"))
        .drop("name", "principal_id", "kind_id")
    )


def _with_times(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return stored rows with their times."""
    if frame.is_empty():
        return frame
    return frame.with_columns(pl.col(columns).str.to_datetime("%+", time_zone="UTC"))


def _restored_requests(columns: dict[str, list[Any]]) -> pl.DataFrame:
    """Return stored requests; figures stored without them show none of other users."""
    if not columns:
        return pl.DataFrame(schema=REQUESTS)
    slow = [start and datetime.fromisoformat(start) for start in columns["slow"]]
    return pl.DataFrame({**columns, "slow": slow}, schema=REQUESTS)


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)
