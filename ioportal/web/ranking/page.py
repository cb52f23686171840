"""The ranking that a URL selects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django import forms
from django.core.paginator import Paginator
from django.urls import reverse

from ioportal.core.formatting import SHORT_UNITS, human, significant
from ioportal.core.units import Unit
from ioportal.jobs import rankings
from ioportal.jobs.analysis.populations import shown
from ioportal.jobs.cache import cached, statistics_version, visibility_key
from ioportal.jobs.models import Job
from ioportal.jobs.rankings import INTERVALS, JOBS, MAX_RANKED, MEASURES, PER, SUBJECTS, Choice
from ioportal.load.job_groups import Application
from ioportal.load.principals import job_group_filters, job_group_name
from ioportal.site.contacts import contacts
from ioportal.web.common.selection import SelectedJobs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from django.contrib.auth.models import User
    from django.core.paginator import Page
    from django.http import QueryDict

    from ioportal.jobs.rankings import Ranked
    from ioportal.site.contacts import Contact

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


PER_PAGE = 50
COUNTING = (
    "Each job that ran in the selected time counts with its whole figures and node-hours, also if "
    "only a part of its run is in that time. Jobs with an unknown value, or an unknown divisor of "
    "a ratio, are in neither sum: their number is shown."
)
_SPARK_HEIGHT = 20
_MANY_UNKNOWN = 0.1  # of a subject's jobs


@dataclass(frozen=True)
class Row:
    """A subject as shown in the table."""

    rank: int
    name: str
    url: str
    value: str
    share: float  # of the highest value
    figures: list[tuple[float | None, Unit]]
    ranked: Ranked
    spark: str  # path of a line; "": none
    contact: Contact | None

    @property
    def has_many_unknown(self) -> bool:
        """Whether the value misses many of the jobs."""
        return self.ranked.unknown_share > _MANY_UNKNOWN


class RankingPage(SelectedJobs):
    """Subjects with selected jobs, highest value first."""

    hidden_parameters = ("state", "quality", "of", "by", "per", "columns", "min_node_hours")

    def __init__(self, user: User, query: QueryDict) -> None:
        super().__init__(user, query)
        self.form = RankingForm(query)
        self.choice: Choice = self.form.choice

    @property
    def given_filters(self) -> list[tuple[str, list[str]]]:
        """The filters in the URL, which the form of the choice keeps."""
        return list(self._given(self.filter.filters))

    @property
    def errors(self) -> dict[str, list[str]]:
        """Errors of the query, by parameter."""
        return {**self.filter.errors, **self.form.errors}

    @cached_property
    def ranked(self) -> list[Ranked]:
        """All subjects."""
        if self.errors:
            return []
        key = (visibility_key(self.user), self.filters_query(), self.choice)
        return cached(
            "ranking",
            key,
            lambda: list(map(self._visible, rankings.ranking(self.filtered, self.choice))),
            statistics_version,
        )

    def _visible(self, row: Ranked) -> Ranked:
        """Return a row whose figures of others' requests are rounded, except for staff."""
        if self.user.is_staff:
            return row
        figures = tuple(
            shown(measure.name, figure)
            for measure, figure in zip(self.choice.measures, row.figures, strict=True)
        )
        return row._replace(value=shown(self.choice.measure.name, row.value), figures=figures)

    @property
    def is_cut(self) -> bool:
        """Whether there may be more subjects."""
        return len(self.ranked) == MAX_RANKED

    @cached_property
    def page(self) -> Page[Ranked]:
        """The page of the URL."""
        return Paginator(self.ranked, PER_PAGE).get_page(self.query.get("page"))

    @property
    def unit(self) -> str:
        """The unit of the value."""
        unit = SHORT_UNITS[self.choice.measure.unit]
        return f"{unit} {PER[self.choice.per]}" if self.choice.per else unit

    @property
    def title(self) -> str:
        """The ranking in words."""
        choice = self.choice
        per = f" {PER[choice.per]}" if choice.per else ""
        title = choice.measure.title
        return f"{choice.subject.plural} by {title[:1].lower()}{title[1:]}{per}"

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the page."""
        subjects = [row.subject for row in self.page]
        jobs = self._jobs(subjects)
        is_of_jobs = self.choice.subject is JOBS
        series = {} if is_of_jobs else rankings.over_time(self.filtered, self.choice, subjects)
        users = {subject: self._user_of(subject, jobs) for subject in subjects}
        known = contacts(users.values(), self.user)
        highest = self.ranked[0].value if self.ranked else 0
        for rank, row in enumerate(self.page, self.page.start_index()):
            job = jobs.get(int(row.subject)) if jobs else None
            yield Row(
                rank,
                self._name(row.subject, job),
                self._url(row.subject),
                self._value(row.value),
                row.value / highest if highest > 0 else 0.0,
                [
                    (value, measure.unit)
                    for value, measure in zip(row.figures, self.choice.measures, strict=True)
                ],
                row,
                _spark(series.get(row.subject, ())),
                known.get(users[row.subject]),
            )

    def _jobs(self, subjects: Iterable[str]) -> dict[int, Job]:
        """Return the ranked jobs by key; none of other subjects."""
        if self.choice.subject is not JOBS:
            return {}
        return Job.objects.select_related("cluster").in_bulk(map(int, subjects))

    @property
    def has_contacts(self) -> bool:
        """Whether the subjects have a responsible user; for staff."""
        return self.user.is_staff and self.choice.subject.name in {"user", "application", "job"}

    def _user_of(self, subject: str, jobs: Mapping[int, Job]) -> str:
        """Return the responsible user; "": none, or several."""
        kind = self.choice.subject.name
        if kind == "job":
            job = jobs.get(int(subject))
            return job.owner if job else ""
        if kind == "application":
            return Application.from_text(subject).user
        return subject if kind == "user" else ""

    def _name(self, subject: str, job: Job | None) -> str:
        if job:
            return f"{job.display_id} · {job.owner} · {job.name}"
        kind = self.choice.subject.name
        return job_group_name(kind, subject).text if kind == "application" else subject

    def _value(self, value: float) -> str:
        """Show a value; a mean of counts is no count."""
        unit = self.choice.measure.unit
        return significant(value) if self.choice.per and unit is Unit.COUNT else human(value, unit)

    def _url(self, subject: str) -> str:
        """Return the page of a subject, or its jobs."""
        kind = self.choice.subject.name
        if not subject:
            return ""
        if kind in {"user", "project"}:
            return f"{reverse(kind, args=[subject])}?{self.filters_query()}"
        if kind == "job":
            return reverse("job", args=[subject])
        if kind == "task":
            return f"{reverse('panda_list')}?{urlencode({'jeditaskid': subject})}"
        filters = job_group_filters(kind, subject)
        return f"{reverse('job_list')}?{self.filters_query(**filters)}"

    @property
    def header(self) -> list[str]:
        """The columns of the export."""
        is_of_jobs = self.choice.subject is JOBS
        subject = ["id", "cluster", "job"] if is_of_jobs else [self.choice.subject.name]
        names = [measure.name for measure in self.choice.measures]
        return ["rank", *subject, "value", "jobs", "nodes", "node_hours", "unknown_jobs", *names]

    def export_rows(self) -> Iterator[Sequence[Any]]:
        """Yield the rows of the export."""
        jobs = self._jobs(row.subject for row in self.ranked)
        for rank, row in enumerate(self.ranked, 1):
            subject: tuple[object, ...] = (row.subject,)
            if self.choice.subject is JOBS:
                job = jobs.get(int(row.subject))
                facts = (job.cluster.name, job.display_id) if job else (None, None)
                subject = (int(row.subject), *facts)
            yield [rank, *subject, *row[1:-1], *row.figures]


def _spark(values: Sequence[float | None]) -> str:
    """Return a path in a box of `INTERVALS` - 1 by `_SPARK_HEIGHT`, with gaps at unknown values."""
    highest = max((value for value in values if value is not None), default=0) or 1
    steps = []
    for x, (previous, value) in enumerate(pairwise((None, *values))):
        if value is not None:
            y = f"{_SPARK_HEIGHT * (1 - value / highest):.1f}"
            steps.append(f"M{x},{y}h0" if previous is None else f"L{x},{y}")
    return "".join(steps)


SPARK_BOX = f"0 -1 {INTERVALS - 1} {_SPARK_HEIGHT + 2}"
