"""Experiments and their runs: lists, pages, exports, forms, attachments, and shared links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Count
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ioportal.core.visible_text import storable
from ioportal.experiments import uploads
from ioportal.experiments.analysis.runs import run_metric
from ioportal.experiments.models import Experiment, Run
from ioportal.experiments.models.experiment import share_key
from ioportal.experiments.pages.forms import (
    ArmsForm,
    AttachmentForm,
    ExperimentForm,
    LookUpSettingsForm,
    RunForm,
)
from ioportal.experiments.pages.page import ExperimentPage, run_facts
from ioportal.experiments.pages.sections.lookups import LookUps
from ioportal.experiments.pages.sections.output import OutputPerformance
from ioportal.experiments.pages.sections.process_samples import ProcessSamples
from ioportal.web.common import exports
from ioportal.web.common.tables import Column, Table, included, to

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpResponseBase

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


_SECTIONS = {  # of the experiment's page, by the measurements of a run
    "system_calls": LookUps,
    "process_samples": ProcessSamples,
    "pair_transfers": OutputPerformance,
}


@require_safe
@exports.accept("json")
def run(request: UserRequest, slug: str, pk: int) -> HttpResponseBase:
    """Show a run."""
    shown = _run(Experiment.objects.visible_to(request.user), slug, pk)
    if exports.requested_format(request):
        return exports.json_response(run_facts(shown))
    return render(
        request,
        "experiments/run.html",
        {
            "section": "experiments",
            "run": shown,
            "experiment": shown.experiment,
            "page": ExperimentPage(shown.experiment, request.user, request.GET),
            "attachments": shown.attachments.defer("content"),
            "analyses": [
                (section.name, section.title)
                for rows, section in _SECTIONS.items()
                if getattr(shown, rows).exists()
            ],
            "run_metrics": [(run_metric(name), value) for name, value in shown.metrics.items()],
            "form": AttachmentForm(),
            "most_attachments": uploads.ATTACHMENTS,
            "quotas": uploads.quotas_of_experiment(shown.experiment),
        },
    )


@require_http_methods(["GET", "HEAD", "POST"])
def edit_run(request: UserRequest, slug: str, pk: int) -> HttpResponse:
    """Change or delete a run."""
    stored = _run(Experiment.objects.editable_by(request.user), slug, pk)
    if "delete" in request.POST:
        stored.segments.all().delete()  # so that its files can be loaded again
        stored.delete()
        messages.success(request, f"Run deleted: {stored.name}")
        return redirect("experiment", slug)
    form = RunForm(request.user, request.POST or None, instance=stored)
    if form.is_valid():
        form.save()
        messages.success(request, "Saved.")
        return redirect("run", slug, pk)
    context = {"section": "experiments", "form": form, "run": stored}
    return render(request, "experiments/run_form.html", context)


@require_POST
def attach(request: UserRequest, slug: str, pk: int) -> HttpResponse:
    """Store a file with a run."""
    stored = _run(Experiment.objects.editable_by(request.user), slug, pk)
    form = AttachmentForm(request.POST, request.FILES)
    if form.is_valid():
        file = form.cleaned_data["file"]
        try:
            attached = uploads.attach(stored, file.name, file.read())
        except uploads.Invalid as error:
            messages.warning(request, str(error))
        else:
            messages.success(request, f"Attached: {attached.name}")
    for errors in form.errors.values():
        messages.warning(request, " ".join(map(str, errors)))
    return redirect("run", slug, pk)


@require_http_methods(["GET", "HEAD", "POST"])
def attachment(request: UserRequest, slug: str, pk: int, attachment: int) -> HttpResponse:
    """Download an attachment, or delete it."""
    if request.method == "POST":
        stored = _run(Experiment.objects.editable_by(request.user), slug, pk)
        get_object_or_404(stored.attachments, pk=attachment).delete()
        return redirect("run", slug, pk)
    shown = _run(Experiment.objects.visible_to(request.user), slug, pk)
    file = get_object_or_404(shown.attachments, pk=attachment)
    return HttpResponse(
        bytes(file.content),
        headers={
            "Content-Type": "application/octet-stream",
            "Content-Disposition": f'attachment; filename="{_ascii(file.name)}"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def _ascii(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)


def _run(experiments: QuerySet[Experiment], slug: str, pk: int) -> Run:
    runs = Run.objects.select_related("experiment", "arm", "job__cluster")
    return get_object_or_404(runs, pk=pk, experiment__in=experiments.filter(slug=slug))
