"""Populations as people name them: by filters, by a name, by any address; and in words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ioportal import display
from ioportal.studies.cache import eyes
from ioportal.studies.models import Population
from ioportal.studies.populations import BATCH_JOBS, PANDA_JOBS, Counted, Selection
from ioportal.web.common.job_kinds import counted_in
from ioportal.web.common.selection import ChosenJobs

if TYPE_CHECKING:
    from django.contrib.auth.models import User

_NAMED = re.compile(r"(?:.*/populations/)?(?P<slug>[-\w]+)/?", re.ASCII)


@dataclass(frozen=True)
class Shown:
    """A population of the page: its jobs, what it is called, and its filters in words."""

    title: str
    words: str
    selection: Selection
    jobs_url: str  # "" where they may not be seen one by one


def read(user: User, text: str) -> Shown:
    """Return the population that a text names: by slug, by its filters, or by any address.

    Raises:
        ValidationError: it names none that `user` can see.
    """
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if not parts.query and "=" in text:
        parts = parts._replace(path="/", query=text)
    if match := _NAMED.fullmatch(parts.path):
        named = Population.objects.visible_to(user).filter(slug=match["slug"]).first()
        if named is None:
            raise ValidationError(f"You can see no population {match['slug'][:64]!r}.")
        query = QueryDict(named.query)
        return show(user, named.name, ChosenJobs(user, query, counted=counted_in(query)))
    query = QueryDict(parts.query)
    is_panda_list = parts.path.startswith(reverse("panda_list"))
    chosen = ChosenJobs(user, query, counted=PANDA_JOBS if is_panda_list else counted_in(query))
    if not parts.path.startswith("/") or not chosen.is_valid:
        raise ValidationError(f"{text[:64]!r} is not the address of jobs or of a population.")
    return show(user, in_words(chosen.unit_query(), user), chosen)


def show(user: User, title: str, chosen: ChosenJobs) -> Shown:
    """Return chosen jobs under a title."""
    filters = chosen.unit_query()
    selected = Selection(chosen.counted, filters, eyes(user), chosen.filtered)
    return Shown(title, in_words(filters, user), selected, chosen.list_url)


def in_words(query: str, user: User | None = None) -> str:
    """Return a population's filters for people: 'user: alice; state: failed'."""
    parameters = QueryDict(query)
    counted = counted_in(parameters)
    filters = filters_in_words(counted, query)
    if not filters:
        return f"{'All' if user is None or user.is_staff else 'Your'} {counted.plural}"
    return filters if counted is BATCH_JOBS else f"{counted.plural}, {filters}"


def filters_in_words(counted: Counted, filters: str) -> str:
    """Return filters for people, whatever is counted."""
    known = counted.filter_set.base_filters
    return "; ".join(
        f"{known[name].label.lower()}: {', '.join(map(_word, values))}"
        for name, values in QueryDict(filters).lists()
        if name in known
    )


def _word(value: str) -> str:
    """Return a filter's value for people: a moment on the site's clock, anything else as it is."""
    try:
        moment = parse_datetime(value)
        if moment and timezone.is_aware(moment):
            moment = timezone.localtime(moment)
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        return display.visible(value)
    return f"{moment:%Y-%m-%d %H:%M:%S}".removesuffix(":00")
