"""Populations: statistics, histograms, and saving under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from ioportal.jobs.models import Population
from ioportal.jobs.populations.population_tables import TABLE_HEADER, value_of
from ioportal.web.common import exports
from ioportal.web.common.requests import parameter
from ioportal.web.populations.page import PopulationForm, PopulationPage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.http import HttpResponse, HttpResponseBase

    from ioportal.jobs.populations.population_tables import Table
    from ioportal.web.common.requests import UserRequest


@require_http_methods(["GET", "HEAD", "POST"])
@exports.accept("csv", "json")
def filtered_population(request: UserRequest) -> HttpResponseBase:
    """A population by filters; POST saves it."""
    page = PopulationPage(request.user, request.GET)
    form = PopulationForm(
        request.user, request.POST or None, initial={"query": page.population_query}
    )
    if request.method == "POST" and form.is_valid():
        return redirect("population", form.save().slug)
    return _population(request, page, form)


@require_http_methods(["GET", "HEAD", "POST"])
@exports.accept("csv", "json")
def saved_population(request: UserRequest, slug: str) -> HttpResponseBase:
    """A saved population; POST changes or deletes it."""
    population = _visible(request, slug)
    if request.method == "POST":
        return _edit(request, population)
    may_edit = population.may_be_edited_by(request.user)
    form = PopulationForm(request.user, instance=population) if may_edit else None
    return _population(request, PopulationPage(request.user, request.GET, population), form)


@require_safe
@exports.accept("csv", "json")
def other_metrics(request: UserRequest) -> HttpResponseBase:
    """Statistics of the other metrics."""
    page = _population_of_part(request)
    if exports.requested_format(request):
        return _export(request, page, page.other_tables)
    return render(request, "populations/other_metrics.html", _context(page))


@require_safe
@exports.accept("csv", "json")
def histogram(request: UserRequest, metric: str) -> HttpResponseBase:
    """Export one histogram."""
    page = _population_of_part(request)
    if metric not in page.job_kind.bounds:
        raise Http404("No such histogram.")
    if errors := page.errors:
        return exports.invalid_query(errors)
    part = next(part for part in page.histograms if part.metric.name == metric)
    about = {
        **page.about,
        "metric": metric,
        "value_of": value_of(part.metric),
        "unit": str(part.metric.unit),
        "scale": str(page.scale),
        "known": [n for _, n, _ in part.value_counts],
        "unknown": [unknown for _, _, unknown in part.value_counts],
    }
    return exports.response(request, f"histogram-{metric}", about, part.header, part.values)


def _edit(request: UserRequest, population: Population) -> HttpResponse:
    if not population.may_be_edited_by(request.user):
        raise PermissionDenied("Only its owner and staff can change a population.")
    if "delete" in request.POST:
        population.delete()
        messages.success(request, f"Population {population.name!r} deleted.")
        return redirect("populations")
    form = PopulationForm(request.user, request.POST, instance=population)
    if form.is_valid():
        return redirect("population", form.save().slug)
    population.refresh_from_db()
    return _page(request, PopulationPage(request.user, request.GET, population), form)


def _visible(request: UserRequest, slug: str) -> Population:
    visible = Population.objects.visible_to(request.user).select_related("owner")
    return get_object_or_404(visible, slug=slug)


def _population_of_part(request: UserRequest) -> PopulationPage:
    """Return the population of a part of its page: saved, or by filters."""
    slug = parameter(request, "saved")
    return PopulationPage(request.user, request.GET, _visible(request, slug) if slug else None)


def _population(
    request: UserRequest, page: PopulationPage, form: PopulationForm | None
) -> HttpResponseBase:
    if exports.requested_format(request):
        return _export(request, page, page.main_tables)
    return _page(request, page, form)


def _page(request: UserRequest, page: PopulationPage, form: PopulationForm | None) -> HttpResponse:
    return render(request, "populations/page.html", {**_context(page), "form": form})


def _export(
    request: UserRequest, page: PopulationPage, tables: Iterable[Table]
) -> HttpResponseBase:
    if errors := page.errors:
        return exports.invalid_query(errors)
    rows = (row for table in tables for row in table.values)
    return exports.response(request, "population", page.about, TABLE_HEADER, rows)


def _context(page: PopulationPage) -> dict[str, object]:
    return {"section": "populations", "page": page}
