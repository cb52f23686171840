"""Queues of metadata servers, and the addresses of their pages."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse

from ioportal.core.time_ranges import TimeRange
from ioportal.jobs.cache import cached
from ioportal.load.analysis.replay.impact_by_group import PRINCIPAL
from ioportal.load.impact import queues
from ioportal.load.impact.principal_windows import principal_name
from ioportal.telemetry.models import JobGroup, ceil_to_window, floor_to_window

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.load.impact.episodes import Episode
    from ioportal.load.impact.queues import Queue
    from ioportal.load.top_consumers import PrincipalKey
    from ioportal.site.models import Server

# Of an analysed range: every window of 10 s and every principal in it is read.
LONGEST = timedelta(hours=24)
_AROUND = timedelta(minutes=10)  # of an episode's worst window


def find(
    server: Server, window: TimeRange, group: tuple[str, str] | None, at: datetime | None = None
) -> Queue | None:
    """Return the queue of an address, as `queues.find` does; it is served again once.

    Args:
        server: a metadata server.
        window: the analysed range.
        group: kind and key in a replay of the group whose impact counts; None: any.
        at: a time in the queue; None: any.
    """
    wanted = None if at else group
    start, end = floor_to_window(window.start), ceil_to_window(window.end)
    second = at and at.replace(microsecond=0)
    return cached(
        "queue-7",  # to be changed with `Queue`
        (server.pk, start, end, second, wanted),
        lambda: queues.find(server.pk, start, end, at=second, group=wanted),
    )


def group(principal: PrincipalKey, user: str) -> tuple[str, str]:
    """Return kind and key in a replay of a principal, or of all jobs of a user."""
    is_user = principal[0] == JobGroup.Kind.USER
    return ("user", user) if is_user else (PRINCIPAL, principal_name(principal))


def around(episode: Episode) -> TimeRange:
    """Return the part of an episode around its worst window: a replay of it all may be long."""
    return TimeRange(
        max(episode.start, episode.worst_at - _AROUND), min(episode.end, episode.worst_at + _AROUND)
    )


def of_episode(server: Server, episode: Episode, group: tuple[str, str]) -> str:
    """Return the address of an episode's worst queue; "": it was not traced, or nothing queued."""
    if episode.is_estimated:
        return ""
    window = around(episode)
    return address(server.name, window, group) if find(server, window, group) else ""


def address(
    server: str, window: TimeRange, group: tuple[str, str], at: datetime | None = None
) -> str:
    """Return the address of a queue's page.

    Args:
        server: name of the metadata server.
        window: the analysed range.
        group: kind and key in a replay of the group that is left out.
        at: a time in the queue; None: the queue with most impact of the group.
    """
    kind, key = group
    query = {
        "start": window.start.isoformat(),
        "end": window.end.isoformat(),
        **({"at": at.isoformat()} if at else {}),
        "kind": kind,
        "key": key,
    }
    return f"{reverse('queue', args=[server])}?{urlencode(query)}"
