"""The filters of a population as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ioportal import display
from ioportal.studies.populations import BATCH_JOBS, UNITS

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from ioportal.studies.populations import Counted


def counted_in(query: QueryDict) -> Counted:
    """Return the unit of a query; an invalid one means batch jobs."""
    return UNITS.get(query.get("unit", ""), BATCH_JOBS)


def population_text(query: str, user: User | None = None) -> str:
    """Return a population as text: 'user: alice; state: failed'."""
    parameters = QueryDict(query)
    counted = counted_in(parameters)
    filters = filters_text(counted, query)
    if not filters:
        return f"{'All' if user is None or user.is_staff else 'Your'} {counted.plural}"
    return filters if counted is BATCH_JOBS else f"{counted.plural}, {filters}"


def filters_text(counted: Counted, query: str) -> str:
    """Return the filters of a query as text."""
    filters = counted.filter_set.base_filters
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
        return display.visible(value)
    return f"{moment:%Y-%m-%d %H:%M:%S}".removesuffix(":00")
