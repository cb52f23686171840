"""Populations: their statistics and histograms, and the names that people give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from ioportal.studies.models import Population
from ioportal.web.common import exports
from ioportal.web.common.requests import asked
from ioportal.web.populations.descriptions import in_words
from ioportal.web.populations.forms import PopulationForm
from ioportal.web.populations.page import PopulationPage
from ioportal.web.populations.tables import TABLE_HEADER, value_of

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@exports.offered("csv", "json")
def unnamed(request: UserRequest) -> HttpResponseBase:
    """A population by filters; posted, it gets a name."""
    page = PopulationPage(request.user, request.GET)
    form = PopulationForm(
        request.user, request.POST or None, initial={"query": page.population_query}
    )
    if request.method == "POST" and form.is_valid():
        return redirect("population", form.save().slug)
    return _answer(request, page, form)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@exports.offered("csv", "json")
def named(request: UserRequest, slug: str) -> HttpResponseBase:
    """A population by its name; posted, it is changed or deleted."""
    population = _visible(request, slug)
    may_edit = population.may_be_edited_by(request.user)
    form = PopulationForm(request.user, request.POST or None, instance=population)
    if request.method == "POST":
        if not may_edit:
            raise PermissionDenied("Only its owner and staff may change a population.")
        if "delete" in request.POST:
            population.delete()
            messages.success(request, f"The population {population.name!r} was deleted.")
            return redirect("populations")
        if form.is_valid():
            return redirect("population", form.save().slug)
        population.refresh_from_db()
    page = PopulationPage(request.user, request.GET, population)
    return _answer(request, page, form if may_edit else None)


@require_safe
@login_required
@exports.offered("csv", "json")
def further(request: UserRequest) -> HttpResponseBase:
    """The statistics of all other metrics."""
    page = _part_of(request)
    if exports.asked_format(request):
        return _twin(request, page, further=True)
    return render(request, "populations/further.html", _context(page))


@require_safe
@login_required
@exports.offered("csv", "json")
def histogram(request: UserRequest, metric: str) -> HttpResponseBase:
    """One histogram's twin."""
    page = _part_of(request)
    if metric not in page.counted.bounds:
        raise Http404("There is no such histogram.")
    if errors := page.errors:
        return exports.refuse(errors)
    shown = next(part for part in page.histograms if part.metric.name == metric)
    about = {
        **page.about,
        "metric": metric,
        "value_of": value_of(shown.metric),
        "unit": str(shown.metric.unit),
        "scale": str(page.scale),
        "known": [n for _, n, _ in shown.known],
        "unknown": [unknown for _, _, unknown in shown.known],
    }
    return exports.twin(request, f"histogram-{metric}", about, shown.header, shown.values)


def _visible(request: UserRequest, slug: str) -> Population:
    visible = Population.objects.visible_to(request.user).select_related("owner")
    return get_object_or_404(visible, slug=slug)


def _part_of(request: UserRequest) -> PopulationPage:
    """Return the population that a part of its page is asked for: by its name, or by filters."""
    slug = asked(request, "named")
    return PopulationPage(request.user, request.GET, _visible(request, slug) if slug else None)


def _answer(
    request: UserRequest, page: PopulationPage, form: PopulationForm | None
) -> HttpResponseBase:
    if exports.asked_format(request):
        return _twin(request, page)
    return render(
        request,
        "populations/page.html",
        {
            **_context(page),
            "form": form,
            "all_named": [
                (population, in_words(population.query))
                for population in Population.objects.visible_to(request.user).select_related(
                    "owner"
                )
            ],
        },
    )


def _twin(request: UserRequest, page: PopulationPage, *, further: bool = False) -> HttpResponseBase:
    if errors := page.errors:
        return exports.refuse(errors)
    tables = page.further_tables if further else page.main_tables
    rows = (row for table in tables for row in table.values)
    return exports.twin(request, "population", page.about, TABLE_HEADER, rows)


def _context(page: PopulationPage) -> dict[str, object]:
    return {"section": "populations", "page": page}
