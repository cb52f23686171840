"""What has come and is not charged yet: who did it is known a moment later, and is not nobody.

Pages that show the newest time end it where this begins.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ioportal.ingest.models import TouchedDeltas, TouchedTrace
from ioportal.telemetry import coverage
from ioportal.telemetry.coverage import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from ioportal.jobs.models import Target

# What waits longer than this is charged anew, mostly: what is known of it is shown meanwhile.
_NEW = timedelta(minutes=10)


def traces(server_ids: Iterable[int], reached: Mapping[int, datetime]) -> dict[int, datetime]:
    """Return up to when the traces of servers are charged that reach to some moments."""
    rows = TouchedTrace.objects.filter(server__in=server_ids)
    waiting = rows.filter(**_reaching(reached)).values_list("server_id", "start", "end")
    return _charged(waiting, reached)


def differences(targets: Iterable[Target], reached: Mapping[int, datetime]) -> dict[int, datetime]:
    """Return up to when the agents' differences of targets are charged that reach to some moments.

    (Who loads whole reads charges them himself.)
    """
    sharing: dict[int, list[int]] = {}
    for target in targets:
        sharing.setdefault(target.filesystem_id, []).append(target.pk)
    rows = TouchedDeltas.objects.filter(filesystem__in=sharing)
    waiting = rows.filter(**_reaching(reached)).values_list("filesystem_id", "start", "end")
    return _charged(
        ((pk, start, end) for filesystem, start, end in waiting for pk in sharing[filesystem]),
        reached,
    )


def _reaching(reached: Mapping[int, datetime]) -> dict[str, Any]:
    """Return what is asked of pending rows."""
    return {"end__gte": min(reached.values()) - _NEW} if reached else {"pk__in": []}


def _charged(
    waiting: Iterable[tuple[int, datetime, datetime]], reached: Mapping[int, datetime]
) -> dict[int, datetime]:
    spans: dict[int, list[Interval]] = {}
    for source, start, end in waiting:
        spans.setdefault(source, []).append(Interval(start, end))
    return {
        source: _begin(spans.get(source, []), last, last - _NEW) for source, last in reached.items()
    }


def _begin(spans: Iterable[Interval], last: datetime, least: datetime) -> datetime:
    """Return where those begin that reach a moment, one after the other."""
    for start, end in sorted(spans, key=lambda span: span.end, reverse=True):
        if end >= last - coverage.APART:
            last = min(last, start)
    return max(last, least)
