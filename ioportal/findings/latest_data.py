"""The latest data: its end by kind, up to which subjects are evaluated, and its impact."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Min, Q

from ioportal.core.times import is_current
from ioportal.findings.models import EvaluatedServer
from ioportal.ingest.models import DirtyTrace
from ioportal.load.impact import impact_totals
from ioportal.rules.evidence import PEAK_SPAN
from ioportal.site.models import Server, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.models import (
    Coverage,
    DirtyImpact,
    DirtyRpcs,
    ceil_to_window,
    floor_to_window,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ioportal.load.impact.impact_totals import ImpactTotal
    from ioportal.load.top_consumers import PrincipalKey

_RECENT = timedelta(hours=1)  # pending work on older data is of a history
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)  # before any data


def traced_until() -> dict[int, datetime]:
    """Return the end of the traces of each filesystem's metadata servers, if traced."""
    servers = Server.objects.filter(kind=Server.Kind.MDS).values_list("pk", "filesystem")
    return _by_filesystem(Coverage.Source.RPC_TRACE, dict(servers))


def polled_until() -> dict[int, datetime]:
    """Return the end of the export statistics of each filesystem's MDTs, if polled."""
    return _by_filesystem(Coverage.Source.EXPORTS, _filesystems_of_mdts())


def counted_until() -> dict[int, datetime]:
    """Return the end of the job statistics of each filesystem's MDTs, if counted."""
    mdts = list(Target.objects.filter(kind=Target.Kind.MDT))
    return _by_filesystem(
        Coverage.Source.JOB_STATS,
        {mdt.pk: mdt.filesystem_id for mdt in mdts},
        {mdt.pk: mdt.poll_gap for mdt in mdts},
    )


def observed_until() -> datetime:
    """Return the end of the latest data, at most the current time."""
    ends = (traced_until(), polled_until(), counted_until())
    latest = max((end for kind in ends for end in kind.values()), default=_NEVER)
    return min(latest, datetime.now(UTC))


def timed_until() -> dict[int, datetime]:
    """Return the end of the traces and service statistics of each metadata server, if any."""
    servers = Server.objects.filter(kind=Server.Kind.MDS).values_list("pk", flat=True)
    return coverage.last_timed_by_server(servers)


def record_evaluated() -> None:
    """Store up to when impact is computed; only the evaluation stage calls it, behind its lock."""
    ends = timed_until()
    until = _computed_until(ends)
    before = dict(EvaluatedServer.objects.values_list("server", "until"))
    EvaluatedServer.objects.bulk_create(
        [
            EvaluatedServer(server_id=server, until=end)
            for server, end in until.items()
            if end > before.get(server, _NEVER)
        ],
        update_conflicts=True,
        unique_fields=["server"],
        update_fields=["until"],
    )


def evaluated_until(ends: Mapping[int, datetime]) -> dict[int, datetime]:
    """Return up to when the impact of the latest data is computed, by metadata server.

    Args:
        ends: the result of `timed_until`.
    """
    known = EvaluatedServer.objects.filter(server__in=ends)
    evaluated = dict(known.values_list("server", "until"))
    return {server: min(evaluated.get(server, end), end) for server, end in ends.items()}


def _computed_until(ends: Mapping[int, datetime]) -> dict[int, datetime]:
    """Return the start of the earliest pending work of the last hour by server, otherwise its end.

    Args:
        ends: the result of `timed_until`.
    """
    recent = Q(pk__in=[])
    for server, end in ends.items():
        recent |= Q(server_id=server, end__gt=end - _RECENT)
    by_window = DirtyRpcs.objects.filter(level=DirtyRpcs.Level.TEN_SECONDS)
    traces, rpcs, impacts = (
        rows.filter(recent).order_by().values_list("server_id").annotate(Min("start"))
        for rows in (DirtyTrace.objects.all(), by_window, DirtyImpact.objects.all())
    )
    until = dict(ends)
    for server, start in traces.union(rpcs, impacts):
        earliest = max(floor_to_window(start), ends[server] - _RECENT)
        until[server] = min(until[server], earliest)
    return until


def complete_until(ends: Mapping[int, datetime] | None = None) -> dict[int, datetime]:
    """Return the end of the windows of impact that are complete, by metadata server.

    More requests of the last window of current data follow.

    Args:
        ends: the result of `evaluated_until`, if known.
    """
    return {
        server: floor_to_window(end) if is_current(end) else ceil_to_window(end)
        for server, end in (evaluated_until(timed_until()) if ends is None else ends).items()
    }


def impact(ends: Mapping[int, datetime] | None = None) -> dict[PrincipalKey, ImpactTotal]:
    """Return impact in the latest five minutes that are complete of each metadata server.

    Args:
        ends: the result of `evaluated_until`, if known.
    """
    return impact_totals.latest(complete_until(ends), PEAK_SPAN)


def _filesystems_of_mdts() -> dict[int, int]:
    mdts = Target.objects.filter(kind=Target.Kind.MDT)
    return dict(mdts.values_list("pk", "filesystem"))


def _by_filesystem(
    source: Coverage.Source,
    filesystems: Mapping[int, int],
    poll_gaps: Mapping[int, timedelta] | None = None,
) -> dict[int, datetime]:
    """Return the latest end of the servers or targets of each filesystem."""
    ends: dict[int, datetime] = {}
    last = coverage.last_observed(source, poll_gaps or coverage.contiguous(filesystems))
    for observed, moment in last.items():
        filesystem = filesystems[observed]
        ends[filesystem] = max(moment, ends.get(filesystem, moment))
    return ends
