"""Forms of the mail policy, silences and channels in Django's admin."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.postgres.forms import SimpleArrayField
from django.utils import timezone

from ioportal.alerts.decide import Mode
from ioportal.alerts.models import Channel, MailPolicy, Silence
from ioportal.jobs.models import Job
from ioportal.rules import RULES
from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_MODE = "mode_"  # prefix of the fields of modes by rule
_RULES = [(rule.code, f"{rule.title} ({rule.code})") for rule in RULES]
_HOURS = [(hour, f"{hour:02}:00") for hour in range(24)]


class SpanField(forms.FloatField):
    """A time span as a number of a unit."""

    def __init__(self, unit: timedelta, help_text: str) -> None:
        super().__init__(min_value=0, max_value=timedelta(days=3650) / unit, help_text=help_text)
        self.unit = unit

    def prepare_value(self, value: Any) -> Any:
        """Return the number of units."""
        return f"{value / self.unit:.12g}" if isinstance(value, timedelta) else value

    def clean(self, value: Any) -> timedelta:
        """Return the span."""
        number: float = super().clean(value)
        return number * self.unit


class MailPolicyForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A new policy, with a mode for each rule."""

    wait = SpanField(
        timedelta(minutes=1), "Minutes. Time for further cases of a user, from the first case."
    )
    interval = SpanField(
        timedelta(minutes=1), "Minutes. Minimum time between two mails to a user: 240 are 4 hours."
    )
    repeat = SpanField(
        timedelta(days=1), "Days. Minimum time between two mails about a case that has grown."
    )
    follow_up_after = SpanField(
        timedelta(days=1), "Days. Time that a user has for changes before a reminder."
    )
    quiet_from = forms.TypedChoiceField(
        coerce=int,
        choices=_HOURS,
        help_text="First hour without mails, in the time zone of the portal.",
    )
    quiet_until = forms.TypedChoiceField(
        coerce=int,
        choices=_HOURS,
        help_text="End of the quiet hours. The same as their start: no quiet hours.",
    )
    holidays = SimpleArrayField(
        forms.DateField(
            input_formats=["%Y-%m-%d"],
            error_messages={"invalid": "Write each date as year-month-day, such as 2026-12-25."},
        ),
        required=False,
        help_text="Dates without mails, such as 2026-12-25, separated by commas.",
    )

    class Meta:
        model = MailPolicy
        fields = (
            "default_mode",
            "wait",
            "interval",
            "repeat",
            "quiet_from",
            "quiet_until",
            "on_weekends",
            "holidays",
            "daily_cap",
            "hourly_brake",
            "excluded",
            "follow_up_after",
            "digest_readers",
            "project_digest_day",
            "digest_hour",
            "copies_to",
            "reason",
        )
        help_texts = {
            "default_mode": "Off: no mails. Approval: staff send each draft. Automatic: mails are "
            "sent without approval.",
            "excluded": "User names that never get mails about cases, separated by commas.",
            "daily_cap": "Maximum number of mails to a user within 24 hours.",
            "hourly_brake": "Maximum number of mails to all users within an hour. Further mails "
            "are held.",
            "reason": "Why this policy replaces the current one.",
        }

    def clean_excluded(self) -> list[str]:
        """Refuse unknown users."""
        names: list[str] = self.cleaned_data["excluded"]
        _refuse_unknown(names)
        return names

    def save(self, *args: Any, **kwargs: Any) -> Any:
        """Store the policy with the modes by rule."""
        self.instance.modes = {
            name.removeprefix(_MODE): mode
            for name, mode in self.cleaned_data.items()
            if name.startswith(_MODE) and mode
        }
        return super().save(*args, **kwargs)


# Django's admin reads the fields of the class.
MailPolicyForm.declared_fields.update(
    {
        f"{_MODE}{code}": forms.ChoiceField(
            label=f"Mode: {title}",
            required=False,
            choices=[("", "default mode"), *((mode.value, mode.value) for mode in Mode)],
        )
        for code, title in _RULES
    }
)


def initial_modes(modes: Mapping[str, str]) -> dict[str, str]:
    """Return the initial values of the fields of modes by rule."""
    return {f"{_MODE}{rule}": mode for rule, mode in modes.items()}


class SilenceForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A time without mails."""

    recipient = forms.CharField(
        required=False, max_length=64, strip=True, help_text="User name. Empty: all users."
    )
    rule = forms.ChoiceField(required=False, choices=[("", "all rules"), *_RULES])

    class Meta:
        model = Silence
        fields = ("recipient", "rule", "filesystem", "until", "reason")
        help_texts = {"filesystem": "Empty: all filesystems."}

    def clean_recipient(self) -> str:
        """Refuse unknown users."""
        name: str = self.cleaned_data["recipient"]
        _refuse_unknown([name] if name else [])
        return name

    def clean_until(self) -> Any:
        """Refuse a silence without effect."""
        until = self.cleaned_data["until"]
        if "until" in self.changed_data and until <= timezone.now():
            raise forms.ValidationError("This time is past. Enter a later time, or delete it.")
        return until


class ChannelForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A channel and its filters."""

    rules = forms.MultipleChoiceField(
        required=False,
        choices=_RULES,
        widget=forms.CheckboxSelectMultiple,
        help_text="None selected: all rules.",
    )

    class Meta:
        model = Channel
        fields = (
            "name",
            "kind",
            "address",
            "secret",
            "min_severity",
            "rules",
            "filesystem",
            "enabled",
        )


def _refuse_unknown(names: Collection[str]) -> None:
    """Raise an error that names unknown users."""
    accounts = UserAccount.objects.filter(name__in=names).values_list("name", flat=True)
    owners = Job.objects.filter(owner__in=names).order_by().values_list("owner", flat=True)
    if unknown := sorted(set(names) - {*accounts, *owners.distinct()}):
        raise forms.ValidationError(
            f"No account or jobs of {', '.join(unknown)}. Correct the name, or add the account."
        )
