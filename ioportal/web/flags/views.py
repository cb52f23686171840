"""Flags: the inbox, the page of one, and what staff do about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from ioportal.flags import impact_windows
from ioportal.flags.models import Flag
from ioportal.reporting.job_facts import Comparison, statistics_of
from ioportal.web.common import exports
from ioportal.web.flags import forms as flag_forms
from ioportal.web.flags import inbox as flags
from ioportal.web.flags.forms import TriageForm
from ioportal.web.flags.inbox import Inbox
from ioportal.web.flags.page import Told

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_http_methods(["GET", "HEAD", "POST"])
@exports.accept("csv", "json")
def flag_list(request: UserRequest) -> HttpResponseBase:
    """The inbox; posted by staff, something is done about the flags that are chosen."""
    form = _triage_form(request)
    if _carried_out(request, form):
        return redirect(request.get_full_path())
    inbox = Inbox(request.user, request.GET)
    if exports.requested_format(request):
        if inbox.errors:
            return exports.invalid_query(inbox.errors)
        return exports.response(request, "flags", {}, flags.header(request.user), inbox.values())
    page = {"section": "flags", "inbox": inbox, "form": form}
    return render(request, "flags/list.html", page)


@require_http_methods(["GET", "HEAD", "POST"])
@exports.accept("json")
def flag(request: UserRequest, pk: int) -> HttpResponseBase:
    """One flag; posted by staff, something is done about it."""
    found = _visible(request, pk)
    form = _triage_form(request, assignee=found.assignee and found.assignee.get_username())
    if _carried_out(request, form):
        return redirect("flag", pk)
    [shown] = flags.shown([found], request.user, impact_windows.latest())
    told = Told(shown, request.user)
    if exports.requested_format(request):
        return exports.json_response(_facts(request, told))
    page: dict[str, Any] = {
        "section": "flags",
        "told": told,
        "flag": found,
        "shown": shown,
        "form": form,
        "simulated": flags.is_simulated(found),
        "address": request.build_absolute_uri(request.path),
    }
    if found.job and (statistics := statistics_of(found.job)):
        page["comparison"] = Comparison(found.job, statistics)
    return render(request, "flags/flag.html", page)


@require_safe
@exports.accept("csv", "json")
def history(request: UserRequest, pk: int) -> HttpResponseBase:
    """How a flag's number came about over time: the twin of its chart."""
    told = _told(request, pk)
    drawn = told.chart
    if drawn is None:
        raise Http404("It did not come about over time, or what it was counted from is gone.")
    about = {"flag": pk, "title": drawn.chart.title, "unit": drawn.chart.unit}
    about |= {"simulated": flags.is_simulated(told.flag)}
    return exports.response(request, f"flag-{pk}", about, drawn.header, drawn.rows())


@require_safe
@exports.accept("csv", "json")
def flag_peers(request: UserRequest, pk: int) -> HttpResponseBase:
    """Where an outlier stands among its peers: the twin of its histogram."""
    told = _told(request, pk)
    drawn = told.peers
    if drawn is None:
        raise Http404("It is not drawn among its peers.")
    about = {"flag": pk, "title": drawn.metric.title, "simulated": flags.is_simulated(told.flag)}
    return exports.response(request, f"flag-{pk}-peers", about, drawn.header, drawn.values)


def _told(request: UserRequest, pk: int) -> Told:
    [shown] = flags.shown([_visible(request, pk)], request.user)
    return Told(shown, request.user)


def _visible(request: UserRequest, pk: int) -> Flag:
    visible = flags.with_subjects(Flag.objects.visible_to(request.user))
    return get_object_or_404(visible.select_related("job__statistics"), pk=pk)


def _triage_form(request: UserRequest, **initial: Any) -> TriageForm:
    """Return the form, bound where something is posted.

    Raises:
        PermissionDenied: somebody who is not of the staff posts.
    """
    if request.method == "POST":
        if not request.user.is_staff:
            raise PermissionDenied("Flags are triaged by staff.")
        return TriageForm(request.POST)
    tomorrow = timezone.localtime() + flag_forms.MUTED_FOR
    return TriageForm(until=tomorrow.replace(second=0, microsecond=0), **initial)


def _carried_out(request: UserRequest, form: TriageForm) -> bool:
    outcome = form.carry_out(request.user) if form.is_bound else None
    if outcome is None:
        return False
    messages.success(request, flag_forms.told(form.cleaned_data["action"], outcome))
    return True


def _facts(request: UserRequest, told: Told) -> dict[str, Any]:
    found = told.flag
    names = flags.header(request.user)
    return {
        **{name: flags.fact(told.shown, name) for name in names},
        "rule_version": found.rule_version,
        "numbers": found.numbers,
        "thresholds": found.thresholds,
        "scope": found.scope,
        "simulated": flags.is_simulated(found),
        "suppression_reasons": found.suppression_reasons,
        "waited_s": told.waited_s,
        "events": [
            {"at": one.at, "kind": one.kind, "by": one.by, "text": one.text, "value": one.value}
            for one in told.events
        ],
    }
