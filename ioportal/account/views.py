"""A user's own account: mails about own jobs, and tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from ioportal.account.forms import RevocationForm, SubscriptionForm, TokenForm
from ioportal.api.models import Token
from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from django.http import HttpResponse

    from ioportal.api.models import TokenQuerySet
    from ioportal.web.common.requests import UserRequest

MAX_TOKENS = 5
_VALIDITY = timedelta(days=365)


@require_http_methods(["GET", "HEAD", "POST"])
def own_account(request: UserRequest) -> HttpResponse:
    """Show and change the mails that a user gets on request, and the user's tokens."""
    action = request.POST.get("action", "")
    mails = SubscriptionForm(request.user, request.POST if action == "mails" else None)
    label = TokenForm(request.POST if action == "create" else None)
    secret = ""
    if action == "mails" and mails.is_valid():
        mails.save()
        wanted = mails.cleaned_data["job_reports"] or mails.cleaned_data["weekly_summary"]
        messages.success(request, "Saved. Jobs that end from now on count." if wanted else "Saved.")
        return redirect("own_account")
    if action == "revoke":
        revocation = RevocationForm(_tokens(request), request.POST)
        if revocation.is_valid():
            Token.objects.filter(pk=revocation.cleaned_data["token"].pk).revoke(timezone.now())
        return redirect("own_account")
    if action == "create" and label.is_valid():
        secret = _issue(request, label.cleaned_data["name"])
    context = {
        "mails": mails,
        "label": label,
        "secret": secret,
        "tokens": _tokens(request).order_by("pk"),
        "max_tokens": MAX_TOKENS,
        "expires_at": timezone.now() + _VALIDITY,
        "account": UserAccount.objects.filter(name=request.user.get_username()).first(),
    }
    return render(request, "account/own.html", context)


def _tokens(request: UserRequest) -> TokenQuerySet:
    return Token.objects.filter(user=request.user).valid(timezone.now())


def _issue(request: UserRequest, name: str) -> str:
    """Return the secret of a new token; "" if the user has too many."""
    if _tokens(request).count() >= MAX_TOKENS:
        messages.error(request, "Revoke a token first.")
        return ""
    _, secret = Token.objects.all().issue(
        Token.Scope.READ,
        user=request.user,
        maker=request.user,
        name=name,
        expires_at=timezone.now() + _VALIDITY,
    )
    return secret
