"""All tokens of the API, for staff: create, list and revoke."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from django.contrib import messages
from django.core.paginator import Paginator
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from ioportal.account.forms import RevocationForm, SiteTokenForm
from ioportal.api.models import Token
from ioportal.web.common.staff_only import staff_only

if TYPE_CHECKING:
    from django.http import HttpResponse

    from ioportal.web.common.requests import UserRequest

_PER_PAGE = 50

log = structlog.get_logger()


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
