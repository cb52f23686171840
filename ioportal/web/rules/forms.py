"""The forms by which staff try thresholds on the past, set them, and withdraw them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator

from ioportal.analysis.metrics import Unit
from ioportal.analysis.rules.rule import refuse_unusable
from ioportal.flags.models import BackTest, ThresholdSet
from ioportal.flags.thresholds import finding_numbers
from ioportal.reporting.flag_values import unit_by
from ioportal.reporting.formatting import human
from ioportal.site.models import Cluster, Filesystem
from ioportal.time_fields import TimeField
from ioportal.web.rules.thresholds import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.forms import BoundField
    from django.http import QueryDict

    from ioportal.analysis.rules.rule import Rule, Threshold

LONGEST = timedelta(days=400)  # that a back-test goes over
_ON_OR_OFF = [("", "as the wider part says"), ("true", "on"), ("false", "off")]
_FORMS: dict[Unit | None, str] = {
    Unit.SHARE: ".0%",
    Unit.RATIO: ",.1f",
    Unit.BYTES: "B",
}  # of numbers in an advice
_PARTS = ("cluster", "queue", "filesystem")


class ThresholdForm(forms.Form):
    """Thresholds of a rule for a part of the site; and a period to try them on."""

    cluster = forms.ModelChoiceField(
        Cluster.objects.order_by("name"),
        required=False,
        to_field_name="name",
        empty_label="every cluster",
    )
    queue = forms.CharField(
        max_length=128, required=False, help_text="Of that cluster. Empty: every queue."
    )
    filesystem = forms.ModelChoiceField(
        Filesystem.objects.order_by("name"),
        required=False,
        to_field_name="name",
        empty_label="every filesystem",
    )
    start = TimeField(label="From", required=False)
    end = TimeField(label="To", required=False)
    is_on = forms.NullBooleanField(
        label="There the rule is",
        required=False,
        widget=forms.Select(choices=_ON_OR_OFF),
    )
    why = forms.CharField(
        max_length=200,
        required=False,
        help_text="Needed to set them; it stays in the history.",
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
            self.fields[self._key(name)] = _field_of(threshold)
        for name in set(_PARTS) - set(PARTS[rule.subject]):
            del self.fields[name]
        self.fields["advice"].help_text = (
            "What flags tell the owner. Empty: as the wider part says. It may name numbers in "
            f"braces, such as {', '.join(map(self._in_braces, self._known()))}."
        )

    @staticmethod
    def _key(name: str) -> str:
        return f"threshold_{name}"

    def _known(self) -> list[str]:
        return [*finding_numbers(self.rule), *map(self._key, self.rule.thresholds)]

    def _in_braces(self, name: str) -> str:
        """Return how an advice may name a number."""
        unit = unit_by(self.rule, name.removeprefix(self._key("")))
        return f"{{{name}:{_FORMS.get(unit, ',.0f')}}}"

    @classmethod
    def initial_of(cls, thresholds: dict[str, float], **more: Any) -> dict[str, Any]:
        """Return what the fields show for some thresholds."""
        shown = {
            cls._key(name): int(value) if value == int(value) else value
            for name, value in thresholds.items()
        }
        return {**shown, **more}

    def threshold_fields(self) -> Iterator[BoundField]:
        """Yield the fields of the thresholds."""
        return self._bound(self._key(name) for name in self.rule.thresholds)

    def part_fields(self) -> Iterator[BoundField]:
        """Yield the fields of the part of the site."""
        return self._bound(PARTS[self.rule.subject])

    def period_fields(self) -> Iterator[BoundField]:
        """Yield the fields of the period."""
        return self._bound(("start", "end"))

    def setting_fields(self) -> Iterator[BoundField]:
        """Yield the fields that matter where thresholds are set."""
        return self._bound(("why", "is_on", "advice"))

    def _bound(self, names: Iterable[str]) -> Iterator[BoundField]:
        return (self[name] for name in names)

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
        if told.get("queue") and "cluster" in told and not told["cluster"]:
            self.add_error("queue", "A queue is of a cluster: choose that too.")
        measure = self._key(self.rule.measure)
        if told.get(measure) == 0:
            self.add_error(measure, "0 would flag everybody: say more, or switch the rule off.")
        if "try" in self.data:
            self._refuse_period(told.get("start"), told.get("end"))
        elif not told.get("why") and "why" not in self.errors:
            self.add_error("why", "Say why: whoever reads the history will ask.")
        return told

    def _refuse_period(self, start: Any, end: Any) -> None:
        if {"start", "end"} & set(self.errors):
            return
        if not start or not end:
            self.add_error("end", "Say from when to when.")
        elif end <= start:
            self.add_error("end", "It must end after it starts.")
        elif end - start > LONGEST:
            self.add_error("end", f"At most {LONGEST.days} days can be tried at once.")

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds that were given."""
        given = {name: self.cleaned_data[self._key(name)] for name in self.rule.thresholds}
        return {name: value for name, value in given.items() if value is not None}

    def _place(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in PARTS[self.rule.subject]}

    def threshold_set(self, by: str) -> ThresholdSet:
        """Return what is to be put in force."""
        return ThresholdSet(
            rule=self.rule.code,
            thresholds=self.thresholds,
            advice=self.cleaned_data["advice"],
            is_on=self.cleaned_data["is_on"],
            reason=self.cleaned_data["why"],
            set_by=by,
            **self._place(),
        )

    def back_test(self, by: str) -> BackTest:
        """Return what is to be tried."""
        return BackTest(
            rule=self.rule.code,
            thresholds=self.thresholds,
            start=self.cleaned_data["start"],
            end=self.cleaned_data["end"],
            requested_by=by,
            **self._place(),
        )


def _field_of(threshold: Threshold) -> forms.FloatField:
    unit = "a share: 1 is all" if threshold.unit is Unit.SHARE else threshold.unit.value
    return forms.FloatField(
        label=f"{threshold.title} ({unit})",
        required=False,
        min_value=threshold.minimum,
        max_value=threshold.maximum,
        help_text=f"The rule's own: {human(threshold.default, threshold.unit)}.",
        widget=forms.NumberInput(
            {"step": "any", "inputmode": "decimal", "placeholder": f"{threshold.default:.15g}"}
        ),
    )


class WithdrawForm(forms.Form):
    """Why thresholds of a part of the site are withdrawn."""

    why = forms.CharField(max_length=200)
