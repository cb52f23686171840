"""Mitigations: the log, one mitigation, and the forms of staff."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from ioportal.changes.models import Mitigation
from ioportal.web.common import exports
from ioportal.web.common.staff_only import staff_only
from ioportal.web.mitigations import forms
from ioportal.web.mitigations.forms import MitigationForm
from ioportal.web.mitigations.page import Catalogue, MitigationList, MitigationPage

if TYPE_CHECKING:
    from django.http import HttpResponse, HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@exports.accept("csv", "json")
def mitigation_list(request: UserRequest) -> HttpResponseBase:
    """List mitigations."""
    listed = MitigationList(request.user, request.GET)
    if exports.requested_format(request):
        if listed.errors:
            return exports.invalid_query(listed.errors)
        return exports.response(request, "mitigations", {}, *listed.table.export)
    context = {"section": "mitigations", "listed": listed}
    return render(request, "mitigations/list.html", context)


@require_safe
@exports.accept("csv", "json")
def catalogue(request: UserRequest) -> HttpResponseBase:
    """Show what worked: mitigations by kind with their measured effects."""
    page = Catalogue(request.user)
    if exports.requested_format(request):
        about = {"pending_statistics": page.pending_statistics}
        return exports.response(request, "what-worked", about, *page.table.export)
    context = {"section": "mitigations", "page": page}
    return render(request, "mitigations/what_worked.html", context)


@require_safe
@exports.accept("json")
def mitigation(request: UserRequest, pk: int) -> HttpResponseBase:
    """Show one mitigation."""
    visible = Mitigation.objects.visible_to(request.user)
    page = MitigationPage(get_object_or_404(visible, pk=pk), request.user)
    if exports.requested_format(request):
        return exports.json_response(page.facts)
    context = {"section": "mitigations", "page": page, "mitigation": page.mitigation}
    return render(request, "mitigations/mitigation.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_only
def log_mitigation(request: UserRequest) -> HttpResponse:
    """Log a mitigation; a query or a case fills in the form."""
    if request.method == "POST":
        form = MitigationForm(request.user, request.POST)
        if form.is_valid():
            logged = form.save()
            _tell(request, form, f"Mitigation logged: {logged.title}.")
            return redirect("mitigation", logged.pk)
    else:
        form = MitigationForm(request.user, initial=forms.initial(request, request.user))
    return _form_page(request, form)


def _tell(request: UserRequest, form: MitigationForm, done: str) -> None:
    """Show a message about the action, with a warning if no job is concerned."""
    count, text = form.matched_jobs
    messages.add_message(request, messages.SUCCESS if count else messages.WARNING, f"{done} {text}")


@require_http_methods(["GET", "HEAD", "POST"])
@staff_only
def edit_mitigation(request: UserRequest, pk: int) -> HttpResponse:
    """Change or delete a mitigation."""
    stored = get_object_or_404(Mitigation, pk=pk)
    if "delete" in request.POST:
        stored.delete()
        messages.success(request, f"Mitigation deleted: {stored.title}")
        return redirect("mitigation_list")
    form = MitigationForm(request.user, request.POST or None, instance=stored)
    if form.is_valid():
        form.save()
        _tell(request, form, "Saved.")
        return redirect("mitigation", pk)
    return _form_page(request, form)


def _form_page(request: UserRequest, form: MitigationForm) -> HttpResponse:
    return render(request, "mitigations/form.html", {"section": "mitigations", "form": form})
