"""Servers: what was observed of each, and how long requests waited in their queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.http import Http404
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from ioportal.activity import top_clients
from ioportal.reporting.time_ranges import TimeRange
from ioportal.site.models import Server
from ioportal.web.common import exports
from ioportal.web.common.access import staff_only
from ioportal.web.common.requests import parameter, storable
from ioportal.web.servers import page as servers

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@staff_only
@exports.accept("csv", "json")
def server_list(request: UserRequest) -> HttpResponseBase:
    """All servers, and when each was observed last."""
    rows = servers.listed()
    if exports.requested_format(request):
        values = (row.values for row in rows)
        return exports.response(request, "servers", {}, servers.LIST_HEADER, values)
    return render(
        request,
        "servers/list.html",
        {
            "section": "servers",
            "rows": rows,
            "simulated": any(row.server.filesystem.simulated for row in rows),
        },
    )


@require_safe
@staff_only
@exports.accept("csv", "json")
def server(request: UserRequest, name: str) -> HttpResponseBase:
    """One server: its services side by side, and charts of all of them or of one."""
    shown = _server(name)
    window, refused = _window(request, shown)
    if exports.requested_format(request) and refused:
        return exports.invalid_query({"range": refused})
    series = servers.ServerSeries(shown, window, parameter(request, "service")) if window else None
    if exports.requested_format(request):
        return exports.response(
            request,
            f"{shown.name}-services",
            _about(shown, window),
            servers.HEADER,
            series.rows() if series else [],
        )
    return render(
        request,
        "servers/detail.html",
        {
            "section": "servers",
            "server": shown,
            "window": window,
            "refused": refused,
            "series": series,
            "rows": [
                (service, requests, values)
                for service, requests, *values in (series.rows() if series else [])
            ],
            "charts": [
                servers.drawn(kind, series, window) for kind in servers.KINDS if series and window
            ],
            "senders": top_clients.top_clients(shown.pk, window.start, window.end)
            if window
            else [],
            "most_senders": top_clients.MAX_CLIENTS,
            "simulated": shown.filesystem.simulated,
        },
    )


@require_safe
@staff_only
@exports.accept("csv", "json")
def who_sent(request: UserRequest, name: str) -> HttpResponseBase:
    """Who sent the requests that a server kept: the twin of the table on its page."""
    shown = _server(name)
    window, refused = _window(request, shown)
    if refused:
        return exports.invalid_query({"range": refused})
    found = top_clients.top_clients(shown.pk, window.start, window.end) if window else []
    about = {**_about(shown, window), "at_most": top_clients.MAX_CLIENTS}
    rows = map(servers.sender_row, found)
    return exports.response(request, f"{shown.name}-senders", about, servers.SENDER_HEADER, rows)


@require_safe
@staff_only
@exports.accept("csv", "json")
def chart(request: UserRequest, name: str, chart: str) -> HttpResponseBase:
    """One chart's twin."""
    shown = _server(name)
    window, refused = _window(request, shown)
    if chart not in servers.BY_NAME or window is None:
        raise Http404("There is no such chart.")
    if refused:
        return exports.invalid_query({"range": refused})
    series = servers.ServerSeries(shown, window, parameter(request, "service"))
    drawn = servers.drawn(servers.BY_NAME[chart], series, window)
    about = {
        **_about(shown, window),
        "service": series.service,
        "chart": drawn.chart.title,
        "unit": drawn.chart.unit,
        "not_observed": [
            {"start": gap.start, "end": gap.end, "known": gap.known.value}
            for gap in drawn.steps.gaps(window.start, window.end)
        ],
    }
    return exports.response(request, f"{shown.name}-{chart}", about, drawn.header, drawn.rows())


def _server(name: str) -> Server:
    found = Server.objects.select_related("filesystem")
    return get_object_or_404(found, name=storable(name))


def _window(request: UserRequest, shown: Server) -> tuple[TimeRange | None, list[str]]:
    """Return the range to show, None where nothing was ever read, and what is wrong with it."""
    window = servers.default_range(shown)
    if window is None:
        return None, []
    try:
        return TimeRange.from_query(request.GET, window), []
    except ValidationError as error:
        return window, error.messages


def _about(shown: Server, window: TimeRange | None) -> dict[str, object]:
    about: dict[str, object] = {
        "server": shown.name,
        "filesystem": shown.filesystem.name,
        "simulated": shown.filesystem.simulated,
    }
    return {**about, "start": window.start, "end": window.end} if window else about
