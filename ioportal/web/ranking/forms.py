"""The choice of a ranking, from a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms

from ioportal.jobs.rankings import MEASURES, PER, SUBJECTS, Choice

if TYPE_CHECKING:
    from django.http import QueryDict

_MEASURES = [(measure.name, measure.title) for measure in MEASURES.values()]
_DEFAULT = {"of": "user", "by": "metadata_operations", "per": ""}
_MIN_NODE_HOURS = "1"  # of a ratio: short runs have extreme ones


class RankingForm(forms.Form):
    """Subjects and measures of a ranking."""

    of = forms.ChoiceField(
        label="Rank",
        required=False,
        choices=[(subject.name, subject.plural) for subject in SUBJECTS.values()],
    )
    by = forms.ChoiceField(label="by", required=False, choices=_MEASURES)
    per = forms.ChoiceField(label="Normalize", required=False, choices=list(PER.items()))
    min_node_hours = forms.FloatField(
        label="At least (node-hours)", required=False, min_value=0, max_value=1e12
    )
    columns = forms.MultipleChoiceField(
        label="Columns", required=False, choices=_MEASURES, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, query: QueryDict) -> None:
        given = query.copy()
        if given.get("per") and not given.get("min_node_hours"):
            given["min_node_hours"] = _MIN_NODE_HOURS
        super().__init__(given)

    def clean_per(self) -> str:
        """Refuse a denominator for figures that are not summed."""
        per: str = self.cleaned_data["per"]
        measure = MEASURES.get(self.cleaned_data.get("by") or _DEFAULT["by"])
        if per and measure and not measure.is_sum:
            raise forms.ValidationError("This figure is the highest of a job: choose “in total”.")
        return per

    @property
    def choice(self) -> Choice:
        """The choice; the default if the form is invalid."""
        given = self.cleaned_data if self.is_valid() else {}
        values = {name: given.get(name) or default for name, default in _DEFAULT.items()}
        return Choice(
            SUBJECTS[values["of"]],
            MEASURES[values["by"]],
            values["per"],
            tuple(MEASURES[name] for name in given.get("columns", ())),
            given.get("min_node_hours") or 0.0,
        )
