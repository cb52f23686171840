"""The time bar: recent ranges, absolute ranges, neighbouring ranges, and a link to copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django import template
from django.utils import timezone

if TYPE_CHECKING:
    from datetime import datetime

    from django.template import RequestContext

    from ioportal.reporting.time_ranges import TimeRange

register = template.Library()

_OF_RANGE = ("start", "end", "last", "page", "format")  # replaced by another range


@register.inclusion_tag("common/time_bar.html", takes_context=True)
def time_bar(context: RequestContext, window: TimeRange, recent: str) -> dict[str, Any]:
    """Show the controls of a range.

    Args:
        context: of the page.
        window: the range.
        recent: values of the parameter `last`, separated by blanks.
    """
    return {
        **time_steps(context, window),
        "recent": [
            (last, _query(context, last=last), last == window.last) for last in recent.split()
        ],
        "hidden": [
            (name, value)
            for name, values in context["request"].GET.lists()
            for value in values
            if name not in _OF_RANGE and value
        ],
    }


@register.inclusion_tag("common/time_steps.html", takes_context=True)
def time_steps(context: RequestContext, window: TimeRange) -> dict[str, Any]:
    """Show links to the ranges around a range, and to the range itself."""
    start, end = window.start, window.end
    length = end - start
    return {
        "window": window,
        "earlier": _range(context, start - length, start),
        "later": _range(context, end, end + length),
        "wider": _range(context, start - length / 2, end + length / 2),
        "copied": _range(context, start, end),
    }


def _range(context: RequestContext, start: datetime, end: datetime) -> str:
    texts = (timezone.localtime(moment).isoformat() for moment in (start, end))
    return _query(context, **dict(zip(("start", "end"), texts, strict=True)))


def _query(context: RequestContext, **changes: str) -> str:
    """Return the page's query with another range."""
    kept = [
        (name, value)
        for name, values in context["request"].GET.lists()
        for value in values
        if name not in _OF_RANGE
    ]
    return f"?{urlencode([*kept, *changes.items()])}"
