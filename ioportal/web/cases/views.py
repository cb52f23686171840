"""Cases: the inbox, the page of one case, and triage by staff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ioportal.alerts import answers, planning
from ioportal.alerts.decide import Verdict
from ioportal.findings.cases.case_texts import columns
from ioportal.findings.flags import flag_texts
from ioportal.findings.models import Case
from ioportal.web.cases.forms import DEFAULT_MUTE, TriageForm, outcome_message
from ioportal.web.cases.inbox import Inbox
from ioportal.web.cases.page import CasePage
from ioportal.web.common import exports
from ioportal.web.mails.answers import AnswerForm

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_http_methods(["GET", "HEAD", "POST"])
@exports.accept("csv", "json")
def case_list(request: UserRequest) -> HttpResponseBase:
    """List cases; staff may change the selected cases with a POST."""
    form = _triage_form(request)
    if _apply(request, form):
        return redirect(request.get_full_path())
    inbox = Inbox(request.user, request.GET)
    if exports.requested_format(request):
        if inbox.errors:
            return exports.invalid_query(inbox.errors)
        rows = inbox.export_rows()
        return exports.response(request, "cases", {}, columns(request.user), rows)
    context = {"section": "cases", "inbox": inbox, "form": form}
    return render(request, "cases/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@exports.accept("json")
def case(request: UserRequest, pk: int) -> HttpResponseBase:
    """Show one case; staff may change it with a POST."""
    page = CasePage(request.user, pk, request.GET)
    assignee = page.case.assignee
    form = _triage_form(request, assignee=assignee and assignee.get_username())
    if _apply(request, form):
        return redirect("case", pk)
    if exports.requested_format(request):
        return exports.json_response(page.facts)
    address = request.build_absolute_uri(request.path)
    context = {"section": "cases", "page": page, "form": form, "address": address}
    return render(request, "cases/case.html", context)


@require_POST
def draft_mail(request: UserRequest, pk: int) -> HttpResponseBase:
    """Write the mail about a case as a draft, for staff."""
    if not request.user.is_staff:
        raise PermissionDenied("Only staff may have mails written.")
    about = get_object_or_404(Case, pk=pk)
    outlook = planning.outlook(pk)
    try:
        draft = planning.write_draft(pk, request.user.get_username())
    except planning.Refused as refused:
        messages.error(request, f"No draft was created. {refused}")
        return redirect("case", about.pk)
    if outlook.verdict is not Verdict.MAIL:
        messages.warning(request, f"It would not be sent automatically: {outlook.reason}")
    messages.success(request, "Draft created. Approve or discard it.")
    return redirect("mail", draft.pk)


@require_POST
def answer(request: UserRequest, pk: int) -> HttpResponseBase:
    """Store the answer of a case's owner."""
    about = get_object_or_404(Case.objects.visible_to(request.user), pk=pk)
    if about.owner != request.user.get_username():
        raise PermissionDenied("Only the owner of a case may answer.")
    form = AnswerForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing was stored. Choose an answer, and shorten the comment.")
    elif answers.record_for_case(about, form.cleaned_data["kind"], form.cleaned_data["comment"]):
        messages.success(request, "Thank you. The staff see your answer with the case.")
    else:
        messages.error(request, "There are too many answers to this case. Contact the staff.")
    return redirect("case", pk)


@require_safe
@exports.accept("csv", "json")
def case_flags(request: UserRequest, pk: int) -> HttpResponseBase:
    """Export the flags of a case."""
    page = CasePage(request.user, pk, request.GET)
    about = {"case": pk, "title": page.case.title, "simulated": page.simulated}
    rows = page.export_rows()
    return exports.response(
        request, f"case-{pk}-flags", about, flag_texts.columns(request.user), rows
    )


@require_safe
@exports.accept("csv", "json")
def case_weeks(request: UserRequest, pk: int) -> HttpResponseBase:
    """Export the flags of a case by week."""
    page = CasePage(request.user, pk, request.GET)
    weeks = page.flags_by_week
    if weeks is None:
        raise Http404("The case has no flags on good data.")
    about = {"case": pk, "title": weeks.chart.title, "simulated": page.simulated}
    return exports.response(request, f"case-{pk}-weeks", about, weeks.columns, weeks.rows)


def _triage_form(request: UserRequest, **initial: Any) -> TriageForm:
    """Return the form, bound to a POST.

    Raises:
        PermissionDenied: the POST is not by staff.
    """
    if request.method == "POST":
        if not request.user.is_staff:
            raise PermissionDenied("Only staff may triage cases.")
        return TriageForm(request.POST)
    until = (timezone.localtime() + DEFAULT_MUTE).replace(second=0, microsecond=0)
    return TriageForm(until=until, **initial)


def _apply(request: UserRequest, form: TriageForm) -> bool:
    outcome = form.apply(request.user) if form.is_bound else None
    if outcome is None:
        return False
    messages.success(request, outcome_message(form.cleaned_data["action"], outcome))
    return True
