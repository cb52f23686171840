"""Forms that log, change and filter mitigations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django import forms
from django.http import QueryDict
from django.shortcuts import get_object_or_404
from django.utils import timezone

from ioportal.alerts import answers
from ioportal.changes import mitigations
from ioportal.changes.models import Mitigation
from ioportal.core.time_fields import TimeField
from ioportal.findings.models import Case, CaseEvent
from ioportal.jobs.populations import scopes
from ioportal.jobs.populations.selections import PANDA_JOBS, kind_in
from ioportal.metrics import METRICS, PANDA_METRICS
from ioportal.web.populations.references import read

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest

_LESS, _MORE, _SAME = *Mitigation.Direction.values, "same"
_METRIC_CHOICES = [
    ("", "none"),
    ("Batch jobs", [(metric.name, metric.title) for metric in METRICS]),
    ("PanDA jobs", [(metric.name, metric.title) for metric in PANDA_METRICS]),
]
_OF_PANDA = {metric.name for metric in PANDA_METRICS}


class MitigationForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """All facts of a mitigation; its expected change is a direction, with or without a factor."""

    started_at = TimeField(label="Start")
    completed_at = TimeField(
        label="End of roll-out", required=False, help_text="Empty: no roll-out."
    )
    reverted_at = TimeField(label="Reverted", required=False, help_text="Empty: still active.")
    scope = forms.CharField(
        label="Jobs",
        required=False,
        strip=True,
        max_length=scopes.MAX_LENGTH,
        help_text="URL of a job list or population, its name, or filters. Empty: all jobs.",
    )
    metric = forms.ChoiceField(label="Metric", choices=_METRIC_CHOICES, required=False)
    direction = forms.ChoiceField(
        label="Expected change",
        choices=[("", "unknown"), (_LESS, "falls"), (_MORE, "rises"), (_SAME, "does not change")],
        required=False,
    )
    times = forms.FloatField(
        label="Times",
        min_value=1,
        max_value=1e9,
        required=False,
        widget=forms.NumberInput({"step": "any"}),
        help_text="4: to a quarter, or to four times the value. Empty: unknown.",
    )

    field_order = (
        *("title", "kind", "made_by", "started_at", "completed_at", "reverted_at", "scope"),
        *("metric", "direction", "times", "cost", "fix", "fix_url", "links", "notes", "is_public"),
    )

    fix_url = forms.URLField(
        label="Link of the fix",
        required=False,
        max_length=mitigations.MAX_URL,
        assume_scheme="https",
    )

    notes = forms.CharField(
        required=False, max_length=mitigations.MAX_NOTES, widget=forms.Textarea({"rows": 4})
    )
    case_key = forms.IntegerField(
        min_value=1, max_value=2**63 - 1, required=False, widget=forms.HiddenInput
    )

    class Meta:
        model = Mitigation
        fields = (
            *("title", "kind", "made_by", "started_at", "completed_at", "reverted_at", "scope"),
            *("metric", "links", "notes", "cost", "fix", "fix_url", "is_public"),
            *("source", "case_key"),
        )
        widgets = {
            "links": forms.Textarea({"rows": 2}),
            "source": forms.HiddenInput,
        }
        help_texts = {
            "made_by": "People or a team.",
            "links": "One URL per line.",
            "cost": "Such as memory of the nodes, or work.",
            "is_public": "Users see it, with all of these facts, on their charts.",
        }

    def __init__(self, user: User, data: QueryDict | None = None, **options: Any) -> None:
        super().__init__(data, **options)
        self._user = user
        self.fields["source"].required = False
        factor = self.instance.factor or self.initial.get("factor")
        if factor:
            self.initial.update(_direction_of(factor))
        elif self.instance.direction:
            self.initial["direction"] = self.instance.direction

    @property
    def matched_jobs(self) -> tuple[int, str]:
        """The number of jobs of the valid scope, and a sentence about it."""
        query = QueryDict(self.instance.scope)
        kind = kind_in(query)
        jobs = kind.filter_set(query, queryset=kind.visible_to(self._user)).qs
        count = jobs.order_by().count()
        text = f"Its filters match {count:,} {kind.singular if count == 1 else kind.plural}"
        return count, f"{text}." if count else f"{text}: check its scope."

    def clean_scope(self) -> str:
        """Return the filters of the jobs, without times."""
        text: str = self.cleaned_data["scope"]
        return scopes.scope_of(read(self._user, text).selection.filters) if text else ""

    def clean_links(self) -> str:
        """Require a web address in each line."""
        return mitigations.checked_links(self.cleaned_data["links"])

    def clean_source(self) -> str:
        """Preserve the source of a stored mitigation."""
        source: str = self.cleaned_data["source"]
        return self.instance.source if self.instance.pk else source or Mitigation.Source.HAND

    def clean(self) -> dict[str, Any]:
        """Compute the expected factor."""
        values: dict[str, Any] = super().clean() or {}
        direction, times = values.get("direction"), values.get("times")
        if direction and not values.get("metric") and "metric" not in self.errors:
            self.add_error("metric", "Select the metric that is expected to change.")
        if times and not direction and "direction" not in self.errors:
            self.add_error("direction", "Select whether it falls or rises, or leave Times empty.")
        kind = kind_in(QueryDict(values.get("scope", "")))
        if values.get("metric") in _OF_PANDA and kind is not PANDA_JOBS:
            self.add_error("metric", "Select PanDA jobs (unit=panda), or a metric of batch jobs.")
        if self.errors:
            return values
        factors = {_LESS: times and 1 / times, _MORE: times, _SAME: 1}
        self.instance.factor = factors.get(direction or "")
        self.instance.direction = "" if self.instance.factor else direction
        return values

    def save(self, commit: bool = True) -> Mitigation:  # noqa: ARG002, FBT001, FBT002  (Django's signature)
        """Store the mitigation with an entry in its history."""
        mitigation: Mitigation = self.instance
        by = self._user.get_username()
        if mitigation.pk:
            changed = [str(self.fields[name].label).lower() for name in self.changed_data]
            mitigations.change(mitigation, by, changed)
        else:
            mitigations.log(mitigation, by)
        return mitigation


def _direction_of(factor: float) -> dict[str, str]:
    """Return the fields of a factor."""
    if factor == 1:
        return {"direction": _SAME}
    times = 1 / factor if factor < 1 else factor
    return {"direction": _LESS if factor < 1 else _MORE, "times": f"{times:.4g}"}


class ListFilterForm(forms.Form):
    """Filters of the list of mitigations."""

    kind = forms.ChoiceField(choices=[("", "all kinds"), *Mitigation.Kind.choices], required=False)
    jobs = forms.CharField(
        label="Concerns jobs",
        required=False,
        max_length=scopes.MAX_LENGTH,
        widget=forms.TextInput({"placeholder": "user=alice, or the URL of a job list"}),
    )
    start = TimeField(label="Started after", required=False)
    end = TimeField(label="Started before", required=False)

    def __init__(self, user: User, data: QueryDict) -> None:
        super().__init__(data, auto_id="filter_%s")
        self._user = user

    def clean_jobs(self) -> str:
        """Return the filters of the jobs, without times."""
        text: str = self.cleaned_data["jobs"].strip()
        return scopes.scope_of(read(self._user, text).selection.filters) if text else ""


_FROM_QUERY = ("title", "kind", "started_at", "scope", "metric", "source")
_TITLE_LENGTH = 120
_MAX_DIGITS = 18  # of a key


def initial(request: HttpRequest, user: User) -> dict[str, Any]:
    """Return the initial values for a request.

    Args:
        request: `case` in its query is the key of a case, and `event` the key of its owner's
            answer; without them, the query has values of fields.
        user: a member of staff.
    """
    query = request.GET
    if key := _key(query.get("case", "")):
        visible = Case.objects.visible_to(user).select_related("filesystem")
        event = _key(query.get("event", ""))
        return _from_case(get_object_or_404(visible, pk=key), event, request)
    values: dict[str, Any] = {name: query[name] for name in _FROM_QUERY if query.get(name)}
    if factor := _factor(query.get("factor", "")):
        values["factor"] = factor
    return {"started_at": timezone.now().replace(microsecond=0), **values}


def _key(text: str) -> int:
    """Return a key; 0: the text is none."""
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else 0


def _from_case(case: Case, event: int, request: HttpRequest) -> dict[str, Any]:
    answer = _answer(case, event)
    said = answer.text.removeprefix(answers.FIXED).strip() if answer else case.resolution
    place = f" on {case.filesystem}" if case.filesystem else ""
    about = f"Case {case.pk}: {case.title}{place}."
    at = answer.at if answer else case.resolved_at
    return {
        "title": (said.splitlines() or [case.title])[0][:_TITLE_LENGTH],
        "made_by": answer.by if answer else case.resolved_by,
        "started_at": at or timezone.now().replace(microsecond=0),
        "scope": _scope(case),
        "notes": "\n\n".join(filter(None, [about, said])),
        "links": request.build_absolute_uri(f"/cases/{case.pk}/"),
        "source": Mitigation.Source.ANSWER if answer else Mitigation.Source.CASE,
        "case_key": case.pk,
    }


def _answer(case: Case, event: int) -> CaseEvent | None:
    return case.events.filter(pk=event, kind=CaseEvent.Kind.ANSWERED).first() if event else None


def _scope(case: Case) -> str:
    """Return the jobs of a case: of its user, and with the longest part of its application name."""
    name = max(case.application.split("*"), key=len).strip()
    filters = {"user": case.owner, "name": name}
    return urlencode({key: value for key, value in filters.items() if value})


def _factor(text: str) -> float | None:
    try:
        factor = float(text)
    except ValueError:
        return None
    return factor if 0 < factor < float("inf") else None
