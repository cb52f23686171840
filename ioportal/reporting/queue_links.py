"""Addresses of the pages of queues."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.reporting.time_ranges import TimeRange


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
