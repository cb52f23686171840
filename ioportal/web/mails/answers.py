"""Answers to mails without a log-in, and the exact texts of sent mails."""

from __future__ import annotations

from base64 import b64encode
from functools import wraps
from typing import TYPE_CHECKING

from csp.constants import NONE, SELF, UNSAFE_INLINE
from csp.decorators import csp
from django import forms
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_http_methods, require_safe

from ioportal.alerts import answers, compose
from ioportal.alerts.models import Answer, Notification
from ioportal.web.mails.preview import Preview

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest, HttpResponseBase

    from ioportal.web.common.requests import UserRequest


class AnswerForm(forms.Form):
    """An answer to a mail."""

    kind = forms.ChoiceField(label="Answer", choices=Answer.Kind.choices, widget=forms.RadioSelect)
    comment = forms.CharField(
        label="What did you find or change? (optional)",
        required=False,
        max_length=1_000,
        widget=forms.Textarea({"rows": 4}),
    )


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def answer(request: HttpRequest, key: str, kind: str) -> HttpResponse:
    """Ask for an answer to a mail; a POST stores it."""
    mail = answers.notification_of(key)
    if mail is None or kind not in Answer.Kind.values:
        raise Http404("The link is not valid, or has expired. Reply to the mail instead.")
    cases = list(answers.open_cases(mail).select_related("filesystem"))
    if not cases and mail.cases.exists():
        return render(request, "mails/answer.html", {"mail": mail, "has_other_owner": True})
    form = AnswerForm(request.POST or None, initial={"kind": kind})
    is_stored = form.is_valid() and answers.record(
        mail, form.cleaned_data["kind"], form.cleaned_data["comment"]
    )
    if form.is_bound and form.is_valid() and not is_stored:
        form.add_error(None, "There are too many answers to this mail. Reply to it instead.")
    context = {
        "mail": mail,
        "cases": cases,
        "earlier": mail.answers.first(),
        "form": form,
        "is_stored": is_stored,
    }
    return render(request, "mails/answer.html", context)


_IN_NEW_TABS = ("<head>", '<head><base target="_blank">')  # a frame shows no other pages
_POLICY = {
    "default-src": [NONE],
    "style-src": [UNSAFE_INLINE],
    "img-src": ["data:"],
    "form-action": [NONE],
    "frame-ancestors": [SELF],
}


def isolated(view: Callable[..., str]) -> Callable[..., HttpResponseBase]:
    """Let pages of the portal show the HTML that a view returns, in a frame without scripts."""

    @wraps(view)
    def response(*arguments: object, **named: object) -> HttpResponseBase:
        return HttpResponse(view(*arguments, **named).replace(*_IN_NEW_TABS, 1))

    return csp(_POLICY)(xframe_options_sameorigin(require_safe(response)))


@isolated
def html(request: UserRequest, pk: int) -> str:
    """Return the HTML of a mail, with its images inside."""
    mail = get_object_or_404(Notification.objects.visible_to(request.user), pk=pk)
    return _with_images_inside(mail.html, {image.name: image.png for image in mail.images.all()})


@isolated
def preview_html(request: UserRequest) -> str:
    """Return the HTML of a mail that was not written, with its images inside."""
    content = Preview(request.user, request.GET).content
    return _with_images_inside(content.html, content.images)


def _with_images_inside(body: str, images: Mapping[str, bytes | memoryview]) -> str:
    """Return HTML without requests: an isolated frame sends no cookies."""
    addresses = {
        name: f"data:image/png;base64,{b64encode(png).decode()}" for name, png in images.items()
    }
    return compose.with_images(body, addresses)
