"""Runs: one run, its form, and its attachments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ioportal.experiments import quotas, uploads
from ioportal.experiments.analysis.runs import run_metric
from ioportal.experiments.models import Experiment, Run
from ioportal.experiments.pages.forms import AttachmentForm, RunForm
from ioportal.experiments.pages.page import ExperimentPage, run_facts
from ioportal.experiments.pages.sections.lookups import LookUps
from ioportal.experiments.pages.sections.output import OutputPerformance
from ioportal.experiments.pages.sections.process_samples import ProcessSamples
from ioportal.web.common import exports

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest

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
            "quotas": quotas.for_experiment(shown.experiment),
        },
    )


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: UserRequest, slug: str, pk: int) -> HttpResponse:
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
