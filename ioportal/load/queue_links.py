"""Queues of metadata servers, and the addresses of their pages."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse

from ioportal.jobs.cache import cached
from ioportal.load import queues
from ioportal.telemetry.models import ceil_to_window, floor_to_window

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.core.time_ranges import TimeRange
    from ioportal.load.queues import Queue
    from ioportal.site.models import Server


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
        "queue-5",  # to be changed with `Queue`
        (server.pk, start, end, second, wanted),
        lambda: queues.find(server.pk, start, end, at=second, group=wanted),
    )


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
