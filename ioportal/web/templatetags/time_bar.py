"""The time bar: recent ranges, absolute ranges, neighbouring ranges, and a link to copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template
from django.utils import timezone

from ioportal.web.templatetags.ioportal import same_page

if TYPE_CHECKING:
    from datetime import datetime

    from django.template import RequestContext

    from ioportal.core.time_ranges import OpenRange, TimeRange

register = template.Library()

_OF_RANGE = ("start", "end", "last", "page", "format")  # replaced by another range


@register.inclusion_tag("common/time_bar.html", takes_context=True)
def time_bar(context: RequestContext, window: TimeRange | OpenRange, recent: str) -> dict[str, Any]:
    """Show the controls of a range.

    Args:
        context: of the page.
        window: the range.
        recent: values of the parameter `last`, separated by blanks.
    """
    return {
        "window": window,
        **_neighbours(context, window),
        "recent": [
            (last, same_page(context, start=None, end=None, last=last), last == window.last)
            for last in recent.split()
        ],
        "hidden": [
            (name, value)
            for name, values in context["request"].GET.lists()
            for value in values
            if name not in _OF_RANGE and value
        ],
    }


def _neighbours(context: RequestContext, window: TimeRange | OpenRange) -> dict[str, str]:
    """Return links to the ranges around a range, "" if there are none, and to the range itself.

    A range without end ends now.
    """
    start, now = window.start, timezone.now()
    end = window.end or now
    if not start or start >= end:
        return {"copied": _range(context, start, end)}
    length = end - start
    return {
        "earlier": _range(context, start - length, start),
        "later": _range(context, end, end + length) if end < now else "",
        "wider": _range(context, start - length / 2, end + length / 2),
        "copied": _range(context, start, end),
    }


def _range(context: RequestContext, start: datetime | None, end: datetime) -> str:
    first, last = (
        moment and timezone.localtime(moment).isoformat(timespec="milliseconds")
        for moment in (start, end)
    )
    return same_page(context, last=None, start=first, end=last)
