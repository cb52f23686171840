"""Populations by name, by filters, or by the URL of a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.urls import reverse

from ioportal.jobs.models import Population
from ioportal.jobs.populations.population_tables import DescribedPopulation
from ioportal.jobs.populations.selections import PANDA_JOBS, Selection, kind_in, population_text
from ioportal.jobs.visibility import visibility_key
from ioportal.web.common.selection import SelectedJobs

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from ioportal.jobs.populations.selections import JobKind

# Pages with filters of jobs, by their URL names.
_LISTS = ("job_list", "panda_list", "populations", "trends", "load_ramp", "ranking")
_SAVED = re.compile(r"(?:.*/populations/)?(?P<slug>[-\w]+)/?", re.ASCII)


def read(user: User, text: str) -> DescribedPopulation:
    """Return the population of a text: slug, filters, or URL of a page.

    Raises:
        ValidationError: there is none, or `user` may not see it.
    """
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if not parts.query and "=" in text:
        return _filtered(user, text)
    if match := _SAVED.fullmatch(parts.path):
        saved = Population.objects.visible_to(user).filter(slug=match["slug"]).first()
        if saved is None:
            raise ValidationError(f"No population {match['slug'][:64]!r}. Select a saved one.")
        query = QueryDict(saved.query)
        selected = SelectedJobs(user, query, kind=kind_in(query))
        return describe(user, saved.name, selected)
    if parts.path not in {"/", *map(reverse, _LISTS)}:
        raise ValidationError(
            f"{text[:64]!r} is neither a saved population nor the URL of a job list."
        )
    query = QueryDict(parts.query)
    is_panda_list = parts.path == reverse("panda_list")
    return _selected(user, query, PANDA_JOBS if is_panda_list else kind_in(query))


def _filtered(user: User, text: str) -> DescribedPopulation:
    """Return the population of typed filters, whose names must be known."""
    query = QueryDict(text)
    kind = kind_in(query)
    known = {"unit", *kind.filter_set.base_filters}
    if unknown := [name for name in query if name not in known]:
        raise ValidationError(
            f"Unknown filter {unknown[0][:64]!r}. Filters of {kind.plural}: "
            f"{', '.join(sorted(known))}."
        )
    return _selected(user, query, kind)


def _selected(user: User, query: QueryDict, kind: JobKind) -> DescribedPopulation:
    selected = SelectedJobs(user, query, kind=kind)
    if not selected.is_valid:
        [name, messages], *_ = selected.filter.form.errors.items()
        raise ValidationError(f"Filter {name!r}: {' '.join(messages)}")
    return describe(user, population_text(selected.unit_query(), user), selected)


def describe(user: User, title: str, selected: SelectedJobs) -> DescribedPopulation:
    """Return selected jobs as a population with a title."""
    query = selected.unit_query()
    selection = Selection(selected.job_kind, query, visibility_key(user), selected.filtered)
    return DescribedPopulation(title, population_text(query, user), selection, selected.list_url)
