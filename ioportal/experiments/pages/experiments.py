"""Experiments: the list, one experiment, its exports, its forms, and links that share it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Count
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from ioportal.core.visible_text import storable
from ioportal.experiments.models import Experiment
from ioportal.experiments.models.experiment import share_key
from ioportal.experiments.pages.forms import ArmsForm, ExperimentForm, LookUpSettingsForm
from ioportal.experiments.pages.page import ExperimentPage
from ioportal.experiments.pages.sections.lookups import LookUps
from ioportal.web.common import exports
from ioportal.web.common.tables import Column, Table, included, to

if TYPE_CHECKING:
    from django.http import HttpResponse, HttpResponseBase

    from ioportal.web.common.requests import UserRequest


_PER_PAGE = 50
_COLUMNS: tuple[Column[Any], ...] = (
    Column("slug", ""),
    Column("name", "Name", link=to("experiment", "slug")),
    Column(
        "owner",
        "Owner",
        "owner__username",
        cell=lambda experiment: experiment.owner.username if experiment.owner else "staff",
    ),
    Column("project", ""),
    Column("arms", "Arms", "arm_count", ""),
    Column("runs", "Runs", "run_count", ""),
    Column("created_at", "Created"),
    Column(
        "",
        "Visible to",
        "pk",
        cell=lambda experiment: included("experiments/_visibility.html", experiment=experiment),
    ),
    Column("simulated", ""),
)


@require_safe
@exports.accept("csv", "json")
def experiment_list(request: UserRequest) -> HttpResponseBase:
    """List the experiments with runs that a user may see, latest first."""
    visible = Experiment.objects.visible_to(request.user).select_related("owner")
    counted = visible.annotate(
        arm_count=Count("arms", distinct=True), run_count=Count("runs", distinct=True)
    )
    experiments = counted.filter(run_count__gt=0).order_by("-created_at", "-pk")
    table = Table("Experiments", _COLUMNS, experiments, query=request.GET, per_page=_PER_PAGE)
    if exports.requested_format(request):
        return exports.response(request, "experiments", {}, *table.export)
    simulated = any(each.simulated for each in table.page)
    context = {"section": "experiments", "table": table, "simulated": simulated}
    return render(request, "experiments/list.html", context)


@require_safe
@exports.accept("json")
def experiment(request: UserRequest, slug: str) -> HttpResponseBase:
    """Show an experiment."""
    page = _page(request, slug)
    if exports.requested_format(request):
        return exports.json_response(page.facts)
    context = {"section": "experiments", "page": page, "experiment": page.experiment}
    return render(request, "experiments/experiment.html", context)


@require_safe
@exports.accept("csv", "json")
def export(request: UserRequest, slug: str, section: str, name: str) -> HttpResponseBase:
    """Export a chart or table of an experiment."""
    page = _page(request, slug)
    exported = page.export(section, name)
    if exported is None:
        raise Http404("No such chart or table.")
    about = {**page.about, "title": exported.title}
    return exports.response(request, f"{slug}-{name}", about, *exported.export)


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: UserRequest, slug: str) -> HttpResponse:
    """Change or delete an experiment, or make a new link to share it."""
    stored = get_object_or_404(Experiment.objects.editable_by(request.user), slug=slug)
    if "delete" in request.POST:
        stored.delete()
        messages.success(request, f"Experiment deleted: {stored.name}")
        return redirect("experiment_list")
    if "new_link" in request.POST:
        stored.share_key = share_key()
        stored.save(update_fields=["share_key"])
        stored.readers.clear()
        messages.success(request, "The earlier link is invalid now.")
        return redirect("edit_experiment", slug)
    has_arms = "arms" in request.POST
    arms = ArmsForm(stored, request.POST if has_arms else None)
    form = ExperimentForm(request.user, None if has_arms else request.POST or None, instance=stored)
    if has_arms and arms.is_valid():
        messages.success(request, "Saved.")
        return redirect("experiment", slug)
    if form.is_valid():
        form.save()
        messages.success(request, "Saved.")
        return redirect("experiment", slug)
    context = {"section": "experiments", "form": form, "arms": arms, "experiment": stored}
    return render(request, "experiments/form.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def shared(request: UserRequest, key: str) -> HttpResponse:
    """Ask who opens the link of an experiment; a POST lets the user see it from now on.

    Programs that only fetch the link, such as scanners of mails, add no reader.
    """
    found = get_object_or_404(Experiment, share_key=storable(key))
    if request.method == "POST":
        found.readers.add(request.user)
    if Experiment.objects.visible_to(request.user).filter(pk=found.pk).exists():
        return redirect("experiment", found.slug)
    return render(request, "experiments/shared.html", {"section": "experiments", "name": found})


def _page(request: UserRequest, slug: str) -> ExperimentPage:
    visible = Experiment.objects.visible_to(request.user)
    return ExperimentPage(get_object_or_404(visible, slug=slug), request.user, request.GET)


@require_http_methods(["GET", "HEAD", "POST"])
def edit_lookups(request: UserRequest, slug: str) -> HttpResponse:
    """Change storage areas and file patterns."""
    stored = get_object_or_404(Experiment.objects.editable_by(request.user), slug=slug)
    section = LookUps(ExperimentPage(stored, request.user, request.GET))
    form = LookUpSettingsForm(stored, section.prefixes, request.POST or None)
    if form.is_valid():
        form.save()
        messages.success(request, "Saved.")
        return redirect("experiment", slug)
    context = {"section": "experiments", "form": form, "experiment": stored}
    return render(request, "experiments/lookup_settings.html", context)
