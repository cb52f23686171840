"""The triage form of cases."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError

from ioportal.core.formatting import counted
from ioportal.core.time_fields import TimeField
from ioportal.findings.cases import triage
from ioportal.web.cases.inbox import staff

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.findings.cases.triage import Outcome

DEFAULT_MUTE = timedelta(days=1)
_MAX_CASES = 200  # more than a page lists
_MAX_DIGITS = 18  # of a key

ACTIONS = {  # to their past participles
    "acknowledge": "acknowledged",
    "mute": "muted",
    "resolve": "resolved",
    "reopen": "reopened",
    "assign": "assigned",
    "comment": "commented on",
}


class _KeysField(forms.Field):
    """The keys of the selected cases."""

    widget = forms.MultipleHiddenInput

    def clean(self, value: Any) -> list[int]:
        """Return the keys as numbers."""
        keys = [int(key) for key in value if key.isdecimal() and len(key) <= _MAX_DIGITS]
        if not keys:
            raise ValidationError("Select at least one case.")
        if len(keys) > _MAX_CASES:
            raise ValidationError(f"Select at most {_MAX_CASES} cases.")
        return keys


class TriageForm(forms.Form):
    """An action on some cases, with its reason."""

    case = _KeysField()
    action = forms.ChoiceField(choices=list(ACTIONS.items()))
    reason = forms.CharField(
        required=False,
        max_length=triage.MAX_COMMENT_LENGTH,
        label="Reason or comment",
        widget=forms.Textarea({"rows": 2}),
    )
    until = TimeField(required=False, label="Mute until")
    assignee = forms.ModelChoiceField(
        staff(),
        to_field_name="username",
        required=False,
        label="Assign to",
        empty_label="unassigned",
    )

    def __init__(self, data: QueryDict | None = None, **initial: Any) -> None:
        super().__init__(data, initial=initial)

    @property
    def keys(self) -> list[str]:
        """The selected cases, as in the page's checkboxes."""
        return self.data.getlist("case") if self.is_bound else []  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Require an end for muting."""
        values: dict[str, Any] = super().clean() or {}
        is_muting = values.get("action") == "mute"
        if is_muting and "until" not in self.errors and not values.get("until"):
            self.add_error("until", "Enter the end of the mute period.")
        return values

    def apply(self, by: User) -> Outcome | None:
        """Apply the action; None: the form has errors."""
        if not self.is_valid():
            self._focus_error()
            return None
        values = self.cleaned_data
        keys, reason = values["case"], values["reason"]
        actions = {
            "acknowledge": lambda: triage.acknowledge(keys, by, reason),
            "mute": lambda: triage.mute(keys, by, values["until"], reason),
            "resolve": lambda: triage.resolve(keys, by, reason),
            "reopen": lambda: triage.reopen(keys, by, reason),
            "assign": lambda: triage.assign(keys, by, values["assignee"]),
            "comment": lambda: triage.comment(keys, by, reason),
        }
        try:
            return actions[values["action"]]()
        except ValidationError as error:
            self.add_error("until" if values["action"] == "mute" else "reason", error)
            self._focus_error()
            return None

    def _focus_error(self) -> None:
        """Focus the first field with an error: the form is below the cases."""
        name = next((name for name in ("until", "assignee") if name in self.errors), "reason")
        self.fields[name].widget.attrs["autofocus"] = True


def outcome_message(action: str, outcome: Outcome) -> str:
    """Return the result of an action as text."""
    parts = []
    if outcome.done:
        parts.append(f"{counted(len(outcome.done), 'case')} {ACTIONS[action]}.")
    if outcome.unchanged:
        parts.append(f"{counted(len(outcome.unchanged), 'case')} unchanged.")
    parts += [f"Case {key}: {reason}" for key, reason in outcome.refused.items()]
    return " ".join(parts)
