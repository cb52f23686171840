"""A user's own account: mails about own jobs, and tokens; and all tokens, for staff."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog
from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from ioportal.alerts.models import Subscription
from ioportal.api.models import Token
from ioportal.site.models import UserAccount
from ioportal.web.common.staff_only import staff_only

if TYPE_CHECKING:
    from django.http import HttpResponse, QueryDict

    from ioportal.api.models import TokenQuerySet
    from ioportal.web.common.requests import UserRequest


_MOST_DAYS = 3650
_MOST_DAYS_OF_STAFF = 365


class SubscriptionForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """Which mails a user wants about their own jobs."""

    class Meta:
        model = Subscription
        fields = ("job_reports", "min_node_hours", "daily_cap", "weekly_summary")

    def __init__(self, user: User, data: QueryDict | None = None) -> None:
        stored = Subscription.objects.filter(user=user).first()
        super().__init__(data, instance=stored or Subscription(user=user))


class TokenForm(forms.Form):
    """A label of a new token."""

    name = forms.CharField(label="Label, such as the host that uses it", max_length=128)


class RevocationForm(forms.Form):
    """One of some tokens."""

    token = forms.ModelChoiceField(Token.objects.none())

    def __init__(self, tokens: TokenQuerySet, data: QueryDict) -> None:
        super().__init__(data)
        self.fields["token"].queryset = tokens  # type: ignore[attr-defined]  # a model field


class SiteTokenForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A new token of any scope; the model checks that its scope fits its source or user.

    A token never exceeds its maker: only superusers create one without an end, or with the rights
    of another member of staff.
    """

    user = forms.CharField(label="User whose rights it has (read, write)", required=False)
    days = forms.IntegerField(
        label="Days of validity (empty: no end)",
        min_value=1,
        max_value=_MOST_DAYS,
        initial=365,
        required=False,
    )

    field_order = ("scope", "source", "user", "name", "days")

    class Meta:
        model = Token
        fields = ("scope", "source", "user", "name")
        labels = {"name": "Label, such as the host that uses it", "source": "Source (ingest)"}

    def __init__(self, maker: User, data: QueryDict | None = None) -> None:
        super().__init__(data, instance=Token(maker=maker))
        if not maker.is_superuser:
            days = forms.IntegerField(
                label=f"Days of validity (at most {_MOST_DAYS_OF_STAFF})",
                min_value=1,
                max_value=_MOST_DAYS_OF_STAFF,
                initial=_MOST_DAYS_OF_STAFF,
            )
            self.fields["days"] = days
        self.fields["scope"].choices = [  # type: ignore[attr-defined]  # a choice field
            (scope.value, f"{scope.value}: {scope.label}") for scope in Token.Scope
        ]

    def clean_user(self) -> User | None:
        """Return the active user of a name."""
        name: str = self.cleaned_data["user"]
        user = User.objects.filter(username=name, is_active=True).first()
        if name and user is None:
            raise forms.ValidationError("There is no active user of this name.")
        return user

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of the valid token."""
        facts = {name: self.cleaned_data[name] for name in self.Meta.fields}
        facts["maker"] = self.instance.maker
        days = self.cleaned_data["days"]
        return {**facts, "expires_at": days and timezone.now() + timedelta(days=days)}


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
