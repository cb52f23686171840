"""What the owner of an experiment decides about look-ups: storage areas and file patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError

from ioportal.core.visible_text import storable
from ioportal.experiments.analysis.lookups import FILE_PATTERNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import QueryDict

    from ioportal.experiments.models import Experiment

AREAS, PATTERNS = "storage_areas", "file_patterns"  # names in `Experiment.settings`
_MOST_LINES = 100
_NAME_CHARACTERS = 40
_PATH_CHARACTERS = 500


def own_prefixes(experiment: Experiment) -> dict[str, str] | None:
    """Return the storage areas of an experiment by prefix; None: the usual ones apply."""
    own: dict[str, str] | None = experiment.settings.get(AREAS)
    return own


def patterns(experiment: Experiment) -> dict[str, list[str]]:
    """Return the shell patterns of files by name."""
    own: dict[str, list[str]] | None = experiment.settings.get(PATTERNS)
    return own or {name: list(globs) for name, globs in FILE_PATTERNS.items()}


class LookUpSettingsForm(forms.Form):
    """Storage areas by prefix, and patterns of files."""

    areas = forms.CharField(
        label="Storage areas",
        required=False,
        widget=forms.Textarea({"rows": 8}),
        help_text="One per line: /lustre = Lustre. The longest prefix decides. Empty: guessed.",
    )
    patterns = forms.CharField(
        label="File patterns",
        required=False,
        widget=forms.Textarea({"rows": 4}),
        help_text="One per line: *.py(c) = *.py *.pyc. Empty: shared libraries and Python files.",
    )

    def __init__(
        self, experiment: Experiment, prefixes: Mapping[str, str], data: QueryDict | None = None
    ) -> None:
        shown = {
            "areas": "\n".join(f"{prefix} = {area}" for prefix, area in sorted(prefixes.items())),
            "patterns": "\n".join(
                f"{name} = {' '.join(globs)}" for name, globs in patterns(experiment).items()
            ),
        }
        super().__init__(data, initial=shown)
        self._experiment = experiment

    def clean_areas(self) -> dict[str, str]:
        """Return the areas by prefix."""
        areas = _pairs(self.cleaned_data["areas"])
        for prefix, area in areas.items():
            if not prefix.startswith("/") or len(prefix) > _PATH_CHARACTERS:
                raise ValidationError(f"{prefix[:60]!r}: a prefix is an absolute path.")
            if len(area) > _NAME_CHARACTERS:
                raise ValidationError(f"{area[:60]!r}: a name is longer than {_NAME_CHARACTERS}.")
        return {prefix.rstrip("/") or "/": area for prefix, area in areas.items()}

    def clean_patterns(self) -> dict[str, list[str]]:
        """Return the patterns by name."""
        named = _pairs(self.cleaned_data["patterns"])
        for name in named:
            if len(name) > _NAME_CHARACTERS:
                raise ValidationError(f"{name[:60]!r}: a name is longer than {_NAME_CHARACTERS}.")
        return {name: globs.split() for name, globs in named.items()}

    def save(self) -> None:
        """Store the settings; empty ones are removed."""
        stored: dict[str, Any] = {**self._experiment.settings}
        for name, own in ((AREAS, "areas"), (PATTERNS, "patterns")):
            stored.pop(name, None)
            if self.cleaned_data[own]:
                stored[name] = self.cleaned_data[own]
        self._experiment.settings = stored
        self._experiment.save(update_fields=["settings"])


def _pairs(text: str) -> dict[str, str]:
    """Return the names and values of lines "name = value"."""
    lines = [line.strip() for line in storable(text).splitlines() if line.strip()]
    if len(lines) > _MOST_LINES:
        raise ValidationError(f"At most {_MOST_LINES} lines.")
    pairs = {}
    for line in lines:
        name, separator, value = (part.strip() for part in line.partition("="))
        if not (separator and name and value):
            raise ValidationError(f"{line[:60]!r}: expected name = value.")
        pairs[name] = value
    return pairs
