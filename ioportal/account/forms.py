"""Forms of a user's account: mails about own jobs, and tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms

from ioportal.alerts.models import Subscription

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import QueryDict


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
