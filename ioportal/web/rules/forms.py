"""Forms to test, change and withdraw thresholds."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator

from ioportal.core.formatting import human
from ioportal.core.time_fields import TimeField
from ioportal.core.units import Unit
from ioportal.findings.flags.flag_values import unit_by
from ioportal.findings.models import BackTest, ThresholdSet
from ioportal.findings.thresholds import finding_numbers
from ioportal.rules.rule import refuse_unusable
from ioportal.site.models import Cluster, Filesystem
from ioportal.web.rules.thresholds import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.forms import BoundField
    from django.http import QueryDict

    from ioportal.rules.rule import Rule, Threshold

LONGEST = timedelta(days=400)  # period of a back-test
_STATUS_CHOICES = [("", "inherited"), ("true", "on"), ("false", "off")]
_ADVICE_FORMATS: dict[Unit | None, str] = {  # of numbers in an advice
    Unit.SHARE: ".0%",
    Unit.RATIO: ",.1f",
    Unit.TIMES: ",.1f",
    Unit.BYTES: "B",
}
_PARTS = ("cluster", "queue", "filesystem")


class ThresholdForm(forms.Form):
    """Thresholds of a rule for a part of the site, and the period of a back-test."""

    cluster = forms.ModelChoiceField(
        Cluster.objects.order_by("name"),
        required=False,
        to_field_name="name",
        empty_label="all clusters",
    )
    queue = forms.CharField(
        max_length=128, required=False, help_text="Of this cluster. Empty: all queues."
    )
    filesystem = forms.ModelChoiceField(
        Filesystem.objects.order_by("name"),
        required=False,
        to_field_name="name",
        empty_label="all filesystems",
    )
    start = TimeField(label="From", required=False)
    end = TimeField(label="To", required=False)
    is_on = forms.NullBooleanField(
        label="Status here", required=False, widget=forms.Select(choices=_STATUS_CHOICES)
    )
    reason = forms.CharField(
        max_length=200, required=False, help_text="Required; shown in the history."
    )
    advice = forms.CharField(
        widget=forms.Textarea({"rows": 4}), required=False, validators=[MaxLengthValidator(2_000)]
    )

    def __init__(
        self, rule: Rule, data: QueryDict | None = None, initial: dict[str, Any] | None = None
    ) -> None:
        super().__init__(data, initial=initial)
        self.rule = rule
        for name, threshold in rule.thresholds.items():
            self.fields[self._key(name)] = _field(threshold)
        for name in set(_PARTS) - set(PARTS[rule.subject]):
            del self.fields[name]
        self.fields["advice"].help_text = (
            "Shown to the owner of a flag. Empty: inherited. Numbers in braces are filled in: "
            f"{', '.join(map(self._placeholder, self._numbers()))}."
        )

    @staticmethod
    def _key(name: str) -> str:
        return f"threshold_{name}"

    def _numbers(self) -> list[str]:
        return [*finding_numbers(self.rule), *map(self._key, self.rule.thresholds)]

    def _placeholder(self, name: str) -> str:
        """Return a number as an advice may contain it."""
        unit = unit_by(self.rule, name.removeprefix(self._key("")))
        return f"{{{name}:{_ADVICE_FORMATS.get(unit, ',.0f')}}}"

    @classmethod
    def initial_values(cls, thresholds: dict[str, float], **others: Any) -> dict[str, Any]:
        """Return initial values of the fields, for some thresholds and other fields."""
        values = {
            cls._key(name): int(value) if value == int(value) else value
            for name, value in thresholds.items()
        }
        return {**values, **others}

    def threshold_fields(self) -> Iterator[BoundField]:
        """Yield the fields of the thresholds."""
        return self._bound(self._key(name) for name in self.rule.thresholds)

    def part_fields(self) -> Iterator[BoundField]:
        """Yield the fields of the part of the site."""
        return self._bound(PARTS[self.rule.subject])

    def period_fields(self) -> Iterator[BoundField]:
        """Yield the fields of the back-test's period."""
        return self._bound(("start", "end"))

    def change_fields(self) -> Iterator[BoundField]:
        """Yield the fields that only a change of thresholds uses."""
        return self._bound(("reason", "is_on", "advice"))

    def _bound(self, names: Iterable[str]) -> Iterator[BoundField]:
        return (self[name] for name in names)

    def clean_advice(self) -> str:
        """Refuse an advice with unknown numbers or formats."""
        text: str = self.cleaned_data["advice"].strip()
        try:
            refuse_unusable(text, self._numbers())
        except ValueError as error:
            raise ValidationError(str(error)) from error
        return text

    def clean(self) -> dict[str, Any]:
        """Check the fields that the requested action needs."""
        values: dict[str, Any] = super().clean() or {}
        if values.get("queue") and "cluster" in values and not values["cluster"]:
            self.add_error("queue", "Select the cluster of the queue.")
        measure = self._key(self.rule.measure)
        if values.get(measure) == 0:
            self.add_error(
                measure, "0 would flag every subject. Enter a larger value, or set the status off."
            )
        if "test" in self.data:
            self._check_period(values.get("start"), values.get("end"))
        elif not values.get("reason") and "reason" not in self.errors:
            self.add_error("reason", "Enter a reason. It is shown in the history.")
        return values

    def _check_period(self, start: Any, end: Any) -> None:
        if {"start", "end"} & set(self.errors):
            return
        if not start or not end:
            self.add_error("end", "Enter start and end of the period.")
        elif end <= start:
            self.add_error("end", "The end must be after the start.")
        elif end - start > LONGEST:
            self.add_error("end", f"The period is limited to {LONGEST.days} days.")

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds with a value."""
        values = {name: self.cleaned_data[self._key(name)] for name in self.rule.thresholds}
        return {name: value for name, value in values.items() if value is not None}

    def _place(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in PARTS[self.rule.subject]}

    def threshold_set(self, by: str) -> ThresholdSet:
        """Return the threshold set to apply."""
        return ThresholdSet(
            rule=self.rule.code,
            thresholds=self.thresholds,
            advice=self.cleaned_data["advice"],
            is_on=self.cleaned_data["is_on"],
            reason=self.cleaned_data["reason"],
            set_by=by,
            **self._place(),
        )

    def back_test(self, by: str) -> BackTest:
        """Return the back-test to run."""
        return BackTest(
            rule=self.rule.code,
            thresholds=self.thresholds,
            start=self.cleaned_data["start"],
            end=self.cleaned_data["end"],
            requested_by=by,
            **self._place(),
        )


def _field(threshold: Threshold) -> forms.FloatField:
    unit = "share, 0 to 1" if threshold.unit is Unit.SHARE else threshold.unit.value
    return forms.FloatField(
        label=f"{threshold.title} ({unit})",
        required=False,
        min_value=threshold.minimum,
        max_value=threshold.maximum,
        help_text=f"Default: {human(threshold.default, threshold.unit)}.",
        widget=forms.NumberInput(
            {"step": "any", "inputmode": "decimal", "placeholder": f"{threshold.default:.15g}"}
        ),
    )


class WithdrawForm(forms.Form):
    """The reason to withdraw thresholds."""

    reason = forms.CharField(max_length=200)
