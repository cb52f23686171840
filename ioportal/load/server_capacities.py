"""The capacity of metadata servers, computed once for pages and mails."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from ioportal.jobs.cache import cached
from ioportal.load import capacity, demand
from ioportal.load.analysis.capacity import Capacity
from ioportal.telemetry import buckets
from ioportal.telemetry.models import ceil_to_window

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.load.analysis.replay.server import Plateau
    from ioportal.load.capacity import Method, ServerCapacity
    from ioportal.site.models import Server

_HOUR = timedelta(hours=1)
_RENEWAL = timedelta(minutes=10)  # of cached results, while data arrives


def latest_range(last: datetime) -> tuple[datetime, datetime]:
    """Return the range of the latest capacity of a server, whose data ends at `last`."""
    end = buckets.ceil(last, _HOUR)  # cached for an hour
    return end - capacity.PERIOD, end


def of_range(
    server: Server, method: Method, start: datetime, end: datetime, last: datetime | None
) -> ServerCapacity:
    """Return the capacity of a server in a range; `last` is the end of its data."""
    return cached(
        "capacity",
        (server.pk, method.value, start, end),
        lambda: capacity.of_server(server.pk, method, start, end),
        lambda: buckets.floor(last, _RENEWAL) if last else None,
    )


def in_queues(server: Server, time: datetime) -> Plateau | None:
    """Return the capacity that the queues of the day before a time show; None: unknown.

    It is the one with which queues are served again.
    """
    end = ceil_to_window(time)
    return cached(
        "capacity-in-queues",
        (server.pk, end),
        lambda: demand.capacity(server.pk, end),
    )


def requests_per_s(server: Server, time: datetime | None = None) -> float | None:
    """Return the requests a second that a server can serve; None: unknown.

    It is the knee on the capacity page, else what its queues show, else the registered capacity.
    The highest load seen is no capacity.

    Args:
        server: a metadata server.
        time: the end of a day with queues; None: queues are not read.
    """
    last = capacity.last_observed(server.pk)
    if last:
        start, end = latest_range(last)
        for method in capacity.methods(server.pk, start, end)[:1]:
            result = of_range(server, method, start, end, last).result
            if isinstance(result, Capacity) and result.knee:
                return result.knee.value / result.cost_s
    plateau = in_queues(server, time) if time else None
    return plateau.requests[0] if plateau else server.capacity_per_s
