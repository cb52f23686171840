"""Mails: the list, a single mail as it is sent, and previews."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from ioportal.alerts import fitness
from ioportal.alerts.delivery import outbox
from ioportal.alerts.models import CaseDecision, Notification
from ioportal.web.common import exports
from ioportal.web.common.pagination import COUNTED
from ioportal.web.common.tables import Column, Table, to
from ioportal.web.mails.mail_list import MailList
from ioportal.web.mails.preview import Preview

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.alerts.models import DeliveryAttempt
    from ioportal.web.common.requests import UserRequest

_LISTED_DECISIONS = 40
_ACTIONS = {  # of staff: function and message
    "send": (outbox.release, "The mail is in the outbox."),
    "discard": (outbox.discard, "The mail is discarded."),
}

_DELIVERY_LOG: tuple[Column[DeliveryAttempt], ...] = (
    Column("at", "Time"),
    Column("outcome", "Event", cell="get_outcome_display"),
    Column("response", "Mail server", css="wrap"),
)
_DECISIONS: tuple[Column[CaseDecision], ...] = (
    Column("at", "Time"),
    Column("case", "Case", "case__title", link=to("case", "case_id")),
    Column("verdict", "Decision"),
    Column("reason", "Reason", css="wrap"),
)


@require_safe
@exports.accept("csv", "json")
def mail_list(request: UserRequest) -> HttpResponseBase:
    """List mails, the latest first."""
    mails = MailList(request.user, request.GET)
    if exports.requested_format(request):
        if mails.errors:
            return exports.invalid_query(mails.errors)
        about = {"at_most": COUNTED}
        return exports.response(request, "mails", about, *mails.exported.export)
    return render(request, "mails/list.html", {"section": "mails", "mails": mails})


@require_http_methods(["GET", "HEAD", "POST"])
def mail(request: UserRequest, pk: int) -> HttpResponseBase:
    """Show a mail; staff may send or discard it with a POST."""
    notification = get_object_or_404(Notification.objects.visible_to(request.user), pk=pk)
    if request.method == "POST":
        if not request.user.is_staff:
            raise PermissionDenied("Only staff may send or discard mails.")
        _act(request, notification)
        return redirect("mail", pk)
    state, states = notification.state, Notification.State
    may_release = (
        request.user.is_staff
        and notification.text
        and state in {states.DRAFT, states.FAILED, states.UNCERTAIN}
    )
    objection = fitness.objection(notification) if may_release else ""
    decisions = CaseDecision.objects.filter(case__notifications__notification=notification)
    context = {
        "section": "mails",
        "mail": notification,
        "log": Table(
            "Delivery log",
            _DELIVERY_LOG,
            notification.delivery_log.all(),
            nothing="No attempt is recorded.",
        ),
        "decisions": Table(
            "Decisions about its cases",
            _DECISIONS,
            decisions.select_related("case__filesystem")[:_LISTED_DECISIONS],
        ),
        "cases": [row.case for row in notification.cases.select_related("case__filesystem")],
        "objection": objection,
        "may_send": may_release and not objection,
        "may_discard": state in {states.DRAFT, states.WAITING, states.FAILED},
    }
    return render(request, "mails/mail.html", context)


@require_safe
def preview(request: UserRequest) -> HttpResponseBase:
    """Show the mail about a case or a flag as it would be written now."""
    shown = Preview(request.user, request.GET)
    content = shown.content if shown.is_valid else None
    context = {"section": "mails", "preview": shown, "content": content}
    return render(request, "mails/preview.html", context)


def _act(request: UserRequest, notification: Notification) -> None:
    action = _ACTIONS.get(request.POST.get("action", ""))
    if action is None:
        messages.error(request, "Unknown action. Use the buttons of the page.")
        return
    act, done = action
    try:
        if act(notification, by=request.user.get_username()):
            messages.success(request, done)
        else:
            messages.error(request, "The mail was changed meanwhile. Look at its state.")
    except outbox.Unfit as objection:
        messages.error(request, f"The mail cannot be sent. {objection}")
