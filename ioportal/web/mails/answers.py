"""The page behind the links of a mail: its recipient answers without a log-in.

Scanners open the links of mails, so only a POST stores an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib.auth.decorators import login_not_required
from django.http import Http404
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from ioportal.alerts import answers
from ioportal.alerts.models import Answer

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


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
