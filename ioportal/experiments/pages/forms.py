"""Forms of experiments: uploads, the experiment, a run, and attachments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError

from collectors.formats import FORMATS
from ioportal.core.visible_text import storable
from ioportal.experiments.experiments import (
    ARM_CHARACTERS,
    NAME_CHARACTERS,
    Contradiction,
    arm_named,
    experiment_to_change,
    order_arms,
)
from ioportal.experiments.models import Experiment, Run, Upload
from ioportal.experiments.system_calls import AREAS, PATTERNS, patterns
from ioportal.web.comparisons.overlay import find_job

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.contrib.auth.models import User
    from django.core.files.uploadedfile import UploadedFile
    from django.http import QueryDict
    from django.utils.datastructures import MultiValueDict

    from ioportal.jobs.models import Job

_FORMATS = [(form.name, form.label) for form in FORMATS if "experiment" in form.options]
_MOST_LINES = 100
_NAME_CHARACTERS = 40
_PATH_CHARACTERS = 500
_RECIPE_CHARACTERS = 4_000
_RECIPE = ("release", "patches", "configuration", "command")


class _Files(forms.ClearableFileInput):
    """An input for several files."""

    allow_multiple_selected = True


class _FilesField(forms.FileField):
    """Several files."""

    widget = _Files

    def clean(self, data: Any, initial: Any = None) -> Any:
        """Return the list of files."""
        return [super(_FilesField, self).clean(each, initial) for each in data or [None]]


class UploadForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """Files of an experiment. A script of the page sends large files in parts afterwards."""

    experiment = forms.CharField(
        label="Experiment",
        max_length=NAME_CHARACTERS,
        widget=forms.TextInput({"list": "experiments", "autocomplete": "off"}),
        help_text="A new name, or one of your experiments.",
    )
    content = _FilesField(
        label="Files",
        required=False,
        help_text="Plain, gzip or zstd. Several files are parts of one run, as of strace -ff.",
    )
    declared = forms.CharField(required=False, widget=forms.HiddenInput)  # [[name, size], ...]

    class Meta:
        model = Upload
        fields = ("arm", "run", "format", "replace")
        labels = {"replace": "Replace data of the same run"}
        help_texts = {
            "arm": "The side of the comparison, such as “before”. Empty: “measured”.",
            "run": "Empty: the name of the file.",
        }

    field_order = ("content", "experiment", "arm", "run", "format", "replace")

    def __init__(
        self,
        user: User,
        data: QueryDict | None = None,
        files: MultiValueDict[str, UploadedFile[bytes]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(data, files, **options)
        self._user = user
        self.fields["format"] = forms.ChoiceField(
            label="Format", choices=[("", "recognised by content"), *_FORMATS], required=False
        )

    @property
    def experiments(self) -> list[str]:
        """Names of experiments that the user may change."""
        return list(Experiment.objects.editable_by(self._user).values_list("name", flat=True))

    def clean_declared(self) -> list[tuple[str, int]]:
        """Return names and sizes of files that follow in parts."""
        try:
            declared = json.loads(self.cleaned_data["declared"] or "[]") or []
            return [(str(name), int(size)) for name, size in declared]
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValidationError("Expected a list of names and sizes.") from error

    def clean(self) -> dict[str, Any]:
        """Require files."""
        values: dict[str, Any] = super().clean() or {}
        if not values.get("content", [None])[0] and not values.get("declared"):
            self.add_error("content", "Select at least one file.")
        return values

    def upload(self) -> Upload:
        """Return the upload, not stored yet, into an experiment that exists now.

        Raises:
            Ambiguous: others have experiments of this name.
        """
        upload: Upload = self.instance
        name = storable(self.cleaned_data["experiment"]).strip()
        upload.owner = self._user
        upload.experiment = experiment_to_change(name, self._user)
        return upload


class ExperimentForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """Name, description and visibility of an experiment."""

    class Meta:
        model = Experiment
        fields = ("name", "description", "project", "is_public")
        widgets = {"description": forms.Textarea({"rows": 4})}
        help_texts = {
            "project": "Its members may see the experiment.",
            "is_public": "All users of the portal may see it.",
        }

    def __init__(self, user: User, data: QueryDict | None = None, **options: Any) -> None:
        super().__init__(data, **options)
        self._user = user
        if not user.is_staff:
            own = sorted(
                {*(group.name for group in user.groups.all()), self.instance.project} - {""}
            )
            self.fields["project"].widget = forms.Select(
                choices=[("", "none"), *((name, name) for name in own)]
            )

    def clean_project(self) -> str:
        """Users may share with their own projects only."""
        project: str = self.cleaned_data["project"]
        own = [group.name for group in self._user.groups.all()]
        if project and not self._user.is_staff and project not in own:
            raise ValidationError(f"You are not a member of {project!r}.")
        return project


class ArmsForm(forms.Form):
    """Names of the arms, and their order; the first is the reference."""

    def __init__(self, experiment: Experiment, data: QueryDict | None = None) -> None:
        super().__init__(data)
        self._experiment = experiment
        self._arms = list(experiment.arms.all())
        for number, arm in enumerate(self._arms, 1):
            self.fields[f"name_{arm.pk}"] = forms.CharField(
                label=f"Arm {number}", initial=arm.name, max_length=ARM_CHARACTERS
            )
            self.fields[f"place_{arm.pk}"] = forms.IntegerField(
                label="Place", initial=number, min_value=1, max_value=len(self._arms)
            )

    def clean(self) -> dict[str, Any]:
        """Store names and order."""
        values: dict[str, Any] = super().clean() or {}
        if self.errors:
            return values
        in_order = sorted(self._arms, key=lambda arm: (values[f"place_{arm.pk}"], arm.pk))
        try:
            order_arms(
                self._experiment,
                [(arm.pk, storable(values[f"name_{arm.pk}"])) for arm in in_order],
            )
        except Contradiction as error:
            raise ValidationError(str(error)) from error
        return values


class RunForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """What a person knows about a run: state, events, labels, recipe, notes."""

    arm = forms.CharField(max_length=ARM_CHARACTERS)
    job = forms.CharField(
        label="Batch job", required=False, help_text="Its id, or the URL of its page."
    )
    events = forms.IntegerField(min_value=0, max_value=2**62, required=False)
    panda_id = forms.IntegerField(label="PanDA id", min_value=1, max_value=2**62, required=False)
    labels = forms.CharField(
        required=False,
        widget=forms.Textarea({"rows": 3}),
        help_text="One per line: protocol = xroot",
    )
    release = forms.CharField(required=False, max_length=_RECIPE_CHARACTERS)
    patches = forms.CharField(required=False, max_length=_RECIPE_CHARACTERS)
    configuration = forms.CharField(
        required=False, max_length=_RECIPE_CHARACTERS, widget=forms.Textarea({"rows": 3})
    )
    command = forms.CharField(required=False, max_length=_RECIPE_CHARACTERS)

    class Meta:
        model = Run
        fields = ("state", "events", "panda_id", "notes")
        widgets = {"notes": forms.Textarea({"rows": 3})}

    field_order = ("arm", "state", "events", "job", "panda_id", "labels", *_RECIPE, "notes")

    def __init__(self, user: User, data: QueryDict | None = None, **options: Any) -> None:
        super().__init__(data, **options)
        self._user = user
        run: Run = self.instance
        self.initial["arm"] = run.arm.name
        self.initial["job"] = run.job.batch_id if run.job else ""
        self.initial["labels"] = "\n".join(f"{name} = {text}" for name, text in run.labels.items())
        self.initial.update(run.recipe)

    def clean_labels(self) -> dict[str, str]:
        """Return the labels by name."""
        return _pairs(self.cleaned_data["labels"])

    def clean_job(self) -> Job | None:
        """Return the job, which the user must be able to see."""
        text: str = self.cleaned_data["job"].strip()
        run: Run = self.instance
        if not text or (run.job and text == run.job.batch_id):
            return run.job if text else None
        job = find_job(self._user, text)
        if job is None:
            raise ValidationError(f"No job {text[:60]!r}.")
        return job

    def save(self, commit: bool = True) -> Run:  # noqa: FBT001, FBT002  (Django's signature)
        """Save the run."""
        run: Run = self.instance
        run.arm = arm_named(run.experiment, storable(self.cleaned_data["arm"]))
        run.job = self.cleaned_data["job"]
        run.labels = self.cleaned_data["labels"]
        known = {name: self.cleaned_data[name] for name in _RECIPE}
        run.recipe = {name: text for name, text in known.items() if text}
        super().save(commit)
        return run


class AttachmentForm(forms.Form):
    """A file that is stored with a run."""

    file = forms.FileField(label="File")


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
