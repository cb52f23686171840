"""Flags: the inbox, the page of one flag, and triage by staff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from ioportal.reporting.flags import columns
from ioportal.web.common import exports
from ioportal.web.flags.forms import DEFAULT_MUTE, TriageForm, outcome_message
from ioportal.web.flags.inbox import Inbox
from ioportal.web.flags.page import FlagPage

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_http_methods(["GET", "HEAD", "POST"])
@exports.accept("csv", "json")
def flag_list(request: UserRequest) -> HttpResponseBase:
    """List flags; staff may change the selected flags with a POST."""
    form = _triage_form(request)
    if _apply(request, form):
        return redirect(request.get_full_path())
    inbox = Inbox(request.user, request.GET)
    if exports.requested_format(request):
        if inbox.errors:
            return exports.invalid_query(inbox.errors)
        rows = inbox.export_rows()
        return exports.response(request, "flags", {}, columns(request.user), rows)
    context = {"section": "flags", "inbox": inbox, "form": form}
    return render(request, "flags/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@exports.accept("json")
def flag(request: UserRequest, pk: int) -> HttpResponseBase:
    """Show one flag; staff may change it with a POST."""
    page = FlagPage(request.user, pk)
    assignee = page.flag.assignee
    form = _triage_form(request, assignee=assignee and assignee.get_username())
    if _apply(request, form):
        return redirect("flag", pk)
    if exports.requested_format(request):
        return exports.json_response(page.facts)
    address = request.build_absolute_uri(request.path)
    context = {"section": "flags", "page": page, "form": form, "address": address}
    return render(request, "flags/flag.html", context)


@require_safe
@exports.accept("csv", "json")
def flag_history(request: UserRequest, pk: int) -> HttpResponseBase:
    """Export the history of a flag's measure."""
    page = FlagPage(request.user, pk)
    chart = page.history_chart
    if chart is None:
        raise Http404("The measure has no history, or its data is past retention.")
    about = {"flag": pk, "title": chart.chart.title, "unit": chart.chart.unit}
    about |= {"simulated": page.simulated}
    return exports.response(request, f"flag-{pk}", about, chart.header, chart.rows())


@require_safe
@exports.accept("csv", "json")
def flag_similar_jobs(request: UserRequest, pk: int) -> HttpResponseBase:
    """Export the histogram of an outlier's similar jobs."""
    page = FlagPage(request.user, pk)
    histogram = page.outlier_histogram
    if histogram is None:
        raise Http404("The flag has no histogram of similar jobs.")
    about = {"flag": pk, "title": histogram.metric.title, "simulated": page.simulated}
    name = f"flag-{pk}-similar-jobs"
    return exports.response(request, name, about, histogram.columns, histogram.values)


def _triage_form(request: UserRequest, **initial: Any) -> TriageForm:
    """Return the form, bound to a POST.

    Raises:
        PermissionDenied: the POST is not by staff.
    """
    if request.method == "POST":
        if not request.user.is_staff:
            raise PermissionDenied("Only staff may triage flags.")
        return TriageForm(request.POST)
    until = (timezone.localtime() + DEFAULT_MUTE).replace(second=0, microsecond=0)
    return TriageForm(until=until, **initial)


def _apply(request: UserRequest, form: TriageForm) -> bool:
    outcome = form.apply(request.user) if form.is_bound else None
    if outcome is None:
        return False
    messages.success(request, outcome_message(form.cleaned_data["action"], outcome))
    return True
