"""The form by which staff triage flags."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError

from ioportal.flags import triage
from ioportal.time_fields import TimeField
from ioportal.web.flags.inbox import staff

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.flags.triage import Outcome

MUTED_FOR = timedelta(days=1)  # unless somebody says otherwise
_MOST = 200  # flags at once: a page has fewer
_DIGITS = 18  # of a key

ACTIONS = {  # to the words of what was done
    "acknowledge": "acknowledged",
    "mute": "muted",
    "resolve": "resolved",
    "reopen": "reopened",
    "assign": "assigned",
    "comment": "commented on",
}


class _Keys(forms.Field):
    """The keys of some flags."""

    widget = forms.MultipleHiddenInput

    def clean(self, value: Any) -> list[int]:
        """Return them as numbers."""
        keys = [int(key) for key in value if key.isdecimal() and len(key) <= _DIGITS]
        if not keys:
            raise ValidationError("Choose at least one flag.")
        if len(keys) > _MOST:
            raise ValidationError(f"These are more than {_MOST} flags: choose fewer.")
        return keys


class TriageForm(forms.Form):
    """What is to be done about some flags, and why."""

    flag = _Keys()
    action = forms.ChoiceField(choices=list(ACTIONS.items()))
    why = forms.CharField(
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
        empty_label="nobody",
    )

    def __init__(self, data: QueryDict | None = None, **initial: Any) -> None:
        super().__init__(data, initial=initial)

    @property
    def keys(self) -> list[str]:
        """The flags that were chosen, as the page has them."""
        return self.data.getlist("flag") if self.is_bound else []  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Ask for the end of a muting."""
        given: dict[str, Any] = super().clean() or {}
        if given.get("action") == "mute" and "until" not in self.errors and not given.get("until"):
            self.add_error("until", "Say until when.")
        return given

    def carry_out(self, by: User) -> Outcome | None:
        """Do it; None: something was refused, and the errors say why."""
        if not self.is_valid():
            self._go_to_error()
            return None
        given = self.cleaned_data
        keys, why = given["flag"], given["why"]
        actions = {
            "acknowledge": lambda: triage.acknowledge(keys, by, why),
            "mute": lambda: triage.mute(keys, by, given["until"], why),
            "resolve": lambda: triage.resolve(keys, by, why),
            "reopen": lambda: triage.reopen(keys, by, why),
            "assign": lambda: triage.assign(keys, by, given["assignee"]),
            "comment": lambda: triage.comment(keys, by, why),
        }
        try:
            return actions[given["action"]]()
        except ValidationError as error:
            self.add_error("until" if given["action"] == "mute" else "why", error)
            self._go_to_error()
            return None

    def _go_to_error(self) -> None:
        """Have the page open where something was refused: the form is below the flags."""
        refused = next((name for name in ("until", "assignee") if name in self.errors), "why")
        self.fields[refused].widget.attrs["autofocus"] = True


def told(action: str, outcome: Outcome) -> str:
    """Return in words what came of an action."""
    parts = []
    if outcome.done:
        parts.append(f"{_flags(len(outcome.done))} {ACTIONS[action]}.")
    if outcome.unchanged:
        parts.append(f"{_flags(len(outcome.unchanged))} so already.")
    parts += [f"Flag {key}: {why}" for key, why in outcome.refused.items()]
    return " ".join(parts)


def _flags(count: int) -> str:
    return f"{count} flag{'' if count == 1 else 's'}"
