"""The incident view: busy or harmful."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from ioportal.analysis.impact import FEWEST_WINDOWS
from ioportal.jobs.models import Filesystem
from ioportal.web import exports, incidents
from ioportal.web.access import staff_only
from ioportal.web.formatting import duration
from ioportal.web.ranges import TimeRange
from ioportal.web.requests import asked

if TYPE_CHECKING:
    from django.http import HttpResponseBase, QueryDict

    from ioportal.web.requests import UserRequest


@require_safe
@staff_only
@exports.offered("csv", "json")
def incident(request: UserRequest) -> HttpResponseBase:
    """Who made others wait at a filesystem in a range, and when its servers were slow."""
    filesystems = list(Filesystem.objects.order_by("name"))
    wanted = asked(request, "filesystem")
    filesystem = (
        get_object_or_404(Filesystem, name=wanted) if wanted else next(iter(filesystems), None)
    )
    default = incidents.default_range(filesystem) if filesystem else None
    refused: list[str] = []
    shown = None
    if filesystem and default:
        try:
            window = _window(request.GET, default)
        except ValidationError as error:
            window, refused = default, error.messages
        shown = incidents.Incident(filesystem, window, request.user)
    if exports.asked_format(request) and refused:
        return exports.refuse({"range": refused})
    if exports.asked_format(request):
        about = _about(shown) if shown else {}
        rows = shown.rows() if shown else []
        return exports.twin(request, "incident", about, incidents.HEADER, rows)
    return render(
        request,
        "incidents/page.html",
        {
            "section": "overview",
            "filesystems": filesystems,
            "incident": shown,
            "refused": refused,
            "fewest": FEWEST_WINDOWS,
            "simulated": bool(shown and shown.filesystem.simulated),
        },
    )


def _window(query: QueryDict, default: TimeRange) -> TimeRange:
    window = TimeRange.from_query(query, default)
    if window.end - window.start > incidents.LONGEST:
        longest = duration(incidents.LONGEST.total_seconds())
        raise ValidationError(f"The range is longer than {longest}: choose a part of it.")
    return window


def _about(shown: incidents.Incident) -> dict[str, object]:
    return {
        "filesystem": shown.filesystem.name,
        "simulated": shown.filesystem.simulated,
        "start": shown.window.start,
        "end": shown.window.end,
        "known_share": shown.impact.known_share,
        "slow": [
            {
                "server": server,
                "start": one.start,
                "end": one.end,
                "times_as_long": one.factor,
                "waited_s": one.waited_s,
            }
            for server, one, _ in shown.slow
        ],
    }
