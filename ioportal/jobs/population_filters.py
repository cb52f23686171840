"""The filters of a population as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ioportal.core import visible_text
from ioportal.jobs.populations import BATCH_JOBS, kind_in

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from ioportal.jobs.populations import JobKind


def population_text(query: str, user: User | None = None) -> str:
    """Return a population as text: 'user: alice; state: failed'."""
    parameters = QueryDict(query)
    kind = kind_in(parameters)
    filters = filters_text(kind, query)
    if not filters:
        return f"{'All' if user is None or user.is_staff else 'Your'} {kind.plural}"
    return filters if kind is BATCH_JOBS else f"{kind.plural}, {filters}"


def filters_text(kind: JobKind, query: str) -> str:
    """Return the filters of a query as text."""
    filters = kind.filter_set.base_filters
    return "; ".join(
        f"{filters[name].label.lower()}: {', '.join(map(_value_text, values))}"
        for name, values in QueryDict(query).lists()
        if name in filters
    )


def _value_text(value: str) -> str:
    """Return the value of a filter as text; times on the site's clock."""
    try:
        moment = parse_datetime(value)
        if moment and timezone.is_aware(moment):
            moment = timezone.localtime(moment)
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        return visible_text.visible(value)
    return f"{moment:%Y-%m-%d %H:%M:%S}".removesuffix(":00")
