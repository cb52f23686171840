"""The form by which staff try limits on the past, and set them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator

from ioportal.analysis.rules.rule import refuse_unusable
from ioportal.flags.limits import numbers_of
from ioportal.flags.models import BackTest, LimitSet
from ioportal.jobs.models import Cluster, Filesystem
from ioportal.web.moments import Moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.forms import BoundField
    from django.http import QueryDict

    from ioportal.analysis.rules.rule import Rule

LONGEST = timedelta(days=400)  # that a back-test goes over
_TIME = forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class LimitForm(forms.Form):
    """Limits of a rule for a part of the site; and a period to try them on."""

    cluster = forms.ModelChoiceField(
        Cluster.objects.all(), required=False, to_field_name="name", empty_label="every cluster"
    )
    queue = forms.CharField(max_length=128, required=False, help_text="Empty: every queue.")
    filesystem = forms.ModelChoiceField(
        Filesystem.objects.order_by("name"),
        required=False,
        to_field_name="name",
        empty_label="every filesystem",
    )
    is_on = forms.BooleanField(label="The rule is on there", required=False)
    advice = forms.CharField(
        widget=forms.Textarea({"rows": 4}), required=False, validators=[MaxLengthValidator(2_000)]
    )
    start = Moment(label="Try it from", required=False, widget=_TIME)
    end = Moment(label="to", required=False, widget=_TIME)
    why = forms.CharField(max_length=200, required=False, help_text="Needed to set them.")

    def __init__(
        self, rule: Rule, data: QueryDict | None = None, initial: dict[str, Any] | None = None
    ) -> None:
        super().__init__(data, initial=initial)
        self.rule = rule
        for name, limit in rule.limits.items():
            self.fields[self._key(name)] = forms.FloatField(
                label=limit.title,
                min_value=limit.least,
                max_value=limit.most,
                help_text=f"{limit.unit}; the rule's own is {limit.default:,g}.",
                widget=forms.NumberInput({"step": "any"}),
            )
        self.fields["advice"].help_text = "Empty: the rule's own. Numbers in braces: " + ", ".join(
            f"{{{name}}}" for name in self._known()
        )

    @staticmethod
    def _key(name: str) -> str:
        return f"limit_{name}"

    def _known(self) -> list[str]:
        return [*numbers_of(self.rule), *map(self._key, self.rule.limits)]

    @classmethod
    def initial_of(cls, limits: dict[str, float], **more: Any) -> dict[str, Any]:
        """Return what the fields show for some limits."""
        return {**{cls._key(name): value for name, value in limits.items()}, **more}

    def limit_fields(self) -> Iterator[BoundField]:
        """Yield the fields of the limits."""
        return (self[self._key(name)] for name in self.rule.limits)

    def scope_fields(self) -> Iterator[BoundField]:
        """Yield the fields of the part of the site."""
        return (self[name] for name in ("cluster", "queue", "filesystem"))

    def period_fields(self) -> Iterator[BoundField]:
        """Yield the fields of the period."""
        return (self[name] for name in ("start", "end"))

    def setting_fields(self) -> Iterator[BoundField]:
        """Yield the fields that matter where limits are set."""
        return (self[name] for name in ("is_on", "advice", "why"))

    def clean_advice(self) -> str:
        """Refuse an advice that could not be filled in."""
        text: str = self.cleaned_data["advice"].strip()
        try:
            refuse_unusable(text, self._known())
        except ValueError as error:
            raise ValidationError(str(error)) from error
        return text

    def clean(self) -> dict[str, Any]:
        """Refuse what cannot be set or tried."""
        told: dict[str, Any] = super().clean() or {}
        if told.get("queue") and not told.get("cluster"):
            self.add_error("queue", "A queue is of a cluster: choose that too.")
        if "set" in self.data and not told.get("why"):
            self.add_error("why", "Say why: whoever reads the history will ask.")
        if "try" in self.data:
            self._refuse_period(told.get("start"), told.get("end"))
        return told

    def _refuse_period(self, start: Any, end: Any) -> None:
        if not start or not end:
            self.add_error("end", "Say from when to when.")
        elif end <= start:
            self.add_error("end", "It must end after it starts.")
        elif end - start > LONGEST:
            self.add_error("end", f"At most {LONGEST.days} days.")

    @property
    def limits(self) -> dict[str, float]:
        """The limits that were given."""
        return {name: self.cleaned_data[self._key(name)] for name in self.rule.limits}

    def _scope(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in ("cluster", "filesystem", "queue")}

    def limit_set(self, by: str) -> LimitSet:
        """Return what is to be put in force."""
        return LimitSet(
            rule=self.rule.code,
            limits=self.limits,
            advice=self.cleaned_data["advice"],
            is_on=self.cleaned_data["is_on"],
            why=self.cleaned_data["why"],
            set_by=by,
            **self._scope(),
        )

    def back_test(self, by: str) -> BackTest:
        """Return what is to be tried."""
        return BackTest(
            rule=self.rule.code,
            limits=self.limits,
            start=self.cleaned_data["start"],
            end=self.cleaned_data["end"],
            asked_by=by,
            **self._scope(),
        )
