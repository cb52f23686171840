"""Comparisons that are often needed: each preset makes the arms from a few inputs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone

from ioportal.core.time_fields import TimeField
from ioportal.jobs import trends as questions
from ioportal.jobs.populations.selections import BATCH_JOBS, day_end
from ioportal.web.comparisons.arms import read_arms

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.web.comparisons.arms import Arm

MONTH_DAYS = 30
DEFAULT_DAYS = 14
_MOST_DAYS = 366
_DAY = timedelta(days=1)
_YEARS = timedelta(days=20 * 365)
LISTED = 5  # upgrades or mitigations


class PresetForm(forms.Form):
    """The inputs of a preset. `base` is a population whose filters all arms share."""

    base = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, user: User, data: QueryDict | None = None, base: str = "") -> None:
        super().__init__(data, initial={"base": base}, auto_id=f"{self.name}_%s")
        self._user = user

    name = ""  # in URLs and ids

    def clean_base(self) -> Arm:
        """Return the population; without one, all batch jobs."""
        arms, errors = read_arms(self._user, [self.cleaned_data["base"] or "user="])
        if errors:
            raise ValidationError(errors)
        return arms[0]

    def arms(self) -> list[str]:
        """Return the references of the arms of valid input."""
        raise NotImplementedError


class MonthsForm(PresetForm):
    """The 30 whole days before the day of the latest job, against the 30 days before them."""

    name = "months"

    def arms(self) -> list[str]:
        """Return the earlier period first: it is the reference."""
        base: Arm = self.cleaned_data["base"]
        latest = base.kind.filter_set(QueryDict("last=24h")).form
        end = timezone.localtime(latest.cleaned_data["end"] if latest.is_valid() else None)
        edges = [day_end(end - days * _DAY) for days in (2 * MONTH_DAYS + 1, MONTH_DAYS + 1, 1)]
        return [_during(base, edges[0], edges[1]), _during(base, edges[1], edges[2])]


class DateForm(PresetForm):
    """Some days before a time, against as many days after it."""

    name = "date"
    at = TimeField(label="Before and after")
    days = forms.IntegerField(
        label="Days each", min_value=1, max_value=_MOST_DAYS, initial=DEFAULT_DAYS
    )

    def arms(self) -> list[str]:
        """Return the time before first."""
        base: Arm = self.cleaned_data["base"]
        at, length = self.cleaned_data["at"], self.cleaned_data["days"] * _DAY
        return [_during(base, at - length, at), _during(base, at, at + length)]


class ValuesForm(PresetForm):
    """Two users, projects or queues, in the period of the base or the latest 30 days."""

    name = "values"
    by = forms.ChoiceField(
        label="Compare", choices=[("user", "users"), ("project", "projects"), ("queue", "queues")]
    )
    first = forms.CharField(label="First", max_length=128)
    second = forms.CharField(label="Second", max_length=128)

    def clean_base(self) -> Arm:
        """Accept batch jobs only: PanDA jobs have other filters."""
        base = super().clean_base()
        if base.kind is not BATCH_JOBS:
            raise ValidationError("Users, projects and queues are filters of batch jobs.")
        return base

    def arms(self) -> list[str]:
        """Return the first value first."""
        base: Arm = self.cleaned_data["base"]
        period = base.times or {"last": f"{MONTH_DAYS}d"}
        values = (self.cleaned_data[name] for name in ("first", "second"))
        return [base.query(**{self.cleaned_data["by"]: value}, **period) for value in values]


FORMS: dict[str, type[PresetForm]] = {
    form.name: form for form in (MonthsForm, DateForm, ValuesForm)
}


def unbound(user: User, base: str) -> dict[str, PresetForm]:
    """Return empty forms by name."""
    return {name: form(user, base=base) for name, form in FORMS.items()}


def latest_upgrades() -> list[tuple[datetime, str]]:
    """Return the latest upgrades of servers in reverse order."""
    now = timezone.now()
    return questions.upgrades(now - _YEARS, now)[: -LISTED - 1 : -1]


def date_url(base: str, at: datetime) -> str:
    """Return the URL of the preset before and after a time."""
    query = {"base": base, "at": timezone.localtime(at).isoformat(), "days": DEFAULT_DAYS}
    return f"{reverse('compare_preset', args=[DateForm.name])}?{urlencode(query)}"


def _during(base: Arm, start: datetime, end: datetime) -> str:
    return base.query(**replace(base, start=start, end=end).times)
