"""Settings of the look-ups of an experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from ioportal.experiments.models import Experiment
from ioportal.experiments.pages.lookup_settings import LookUpSettingsForm
from ioportal.experiments.pages.page import ExperimentPage
from ioportal.experiments.pages.sections.lookups import LookUps

if TYPE_CHECKING:
    from django.http import HttpResponse

    from ioportal.web.common.requests import UserRequest


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: UserRequest, slug: str) -> HttpResponse:
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
