"""A user's own account: mails about own jobs, and tokens; and all tokens, for staff."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import structlog
from django.contrib import messages
from django.core.paginator import Paginator
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from ioportal.account.forms import RevocationForm, SiteTokenForm, SubscriptionForm, TokenForm
from ioportal.api.models import Token
from ioportal.site.models import UserAccount
from ioportal.web.common.staff_only import staff_only

if TYPE_CHECKING:
    from django.http import HttpResponse

    from ioportal.api.models import TokenQuerySet
    from ioportal.web.common.requests import UserRequest

MAX_TOKENS = 5
_VALIDITY = timedelta(days=365)
_PER_PAGE = 50

log = structlog.get_logger()


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


@require_http_methods(["GET", "HEAD", "POST"])
@staff_only
def token_list(request: UserRequest) -> HttpResponse:
    """List, create and revoke tokens; the secret of a new one is only in this response."""
    now = timezone.now()
    action = request.POST.get("action", "")
    if action == "revoke":
        return _revoke(request)
    form = SiteTokenForm(request.user, request.POST if action == "create" else None)
    secret = ""
    if action == "create" and form.is_valid():
        token, secret = Token.objects.all().issue(**form.facts)
        log.info("token_created", token=token.pk, scope=token.scope, by=request.user.get_username())
        form = SiteTokenForm(request.user)
    tokens = Token.objects.all().with_states(now).order_by("-pk")
    tokens = tokens.select_related("source", "user", "maker")
    context = {
        "section": "tokens",
        "form": form,
        "secret": secret,
        "page": Paginator(tokens, _PER_PAGE).get_page(request.GET.get("page")),
    }
    return render(request, "account/tokens.html", context)


def _revoke(request: UserRequest) -> HttpResponse:
    form = RevocationForm(Token.objects.filter(revoked_at=None), request.POST)
    if form.is_valid():
        token: Token = form.cleaned_data["token"]
        Token.objects.filter(pk=token.pk).revoke(timezone.now())
        log.info("token_revoked", token=token.pk, by=request.user.get_username())
        messages.success(request, f"Token {token.pk} is revoked.")
    return redirect(request.get_full_path())
