"""Forms of accounts: mails about own jobs, and tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import User
from django.utils import timezone

from ioportal.alerts.models import Subscription
from ioportal.api.models import Token

if TYPE_CHECKING:
    from django.http import QueryDict

    from ioportal.api.models import TokenQuerySet

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
