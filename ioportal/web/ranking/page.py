"""The ranking that a URL selects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django import forms
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ioportal.core.formatting import SHORT_UNITS, human, significant
from ioportal.core.units import Unit
from ioportal.jobs import rankings
from ioportal.jobs.analysis.anonymity import shown
from ioportal.jobs.cache import cached, statistics_version
from ioportal.jobs.models import Job
from ioportal.jobs.rankings import INTERVALS, JOBS, MAX_RANKED, MEASURES, PER, SUBJECTS, Choice
from ioportal.jobs.visibility import visibility_key
from ioportal.load.impact.job_groups import Application
from ioportal.load.principals import job_group_filters, job_group_name
from ioportal.site.contacts import contacts
from ioportal.web.common.selection import SelectedJobs
from ioportal.web.common.tables import Column, Table, included
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from django.contrib.auth.models import User
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
    """A subject in the table; only rank and figures if it is not on the page."""

    rank: int
    ranked: Ranked
    job: Job | None = None
    share: float = 0.0  # of the highest value
    spark: Sequence[float | None] = ()
    contact: Contact | None = None

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

    @cached_property
    def table(self) -> Table[Row]:
        """The ranked subjects."""
        rows = [Row(rank, row) for rank, row in enumerate(self.ranked, 1)]
        return Table(
            self.title,
            tuple(self._columns()),
            rows,
            css="ranking",
            query=self.query,
            per_page=PER_PAGE,
            look_up=self._on_page,
        )

    @property
    def exported(self) -> Table[Row]:
        """All ranked subjects, without what only the page shows."""
        return replace(self.table, per_page=0, look_up=self._with_jobs)

    def _columns(self) -> Iterator[Column[Row]]:
        choice = self.choice
        yield Column("rank", "")
        if choice.subject is JOBS:
            yield Column("id", "", lambda row: int(row.ranked.subject))
            yield Column("cluster", "", "job__cluster__name")
            yield Column("job", "", "job__display_id")
        else:
            yield Column(choice.subject.name, "", "ranked__subject")
        yield Column("", choice.subject.title, cell=self._subject, css="wrap")
        yield Column("value", choice.measure.title, "ranked__value", self.unit, cell=self._value)
        if self.has_contacts:
            yield Column("", "Contact", cell=_contact, css="wrap")
        yield Column("", "By start of jobs", cell=_spark)
        yield Column("jobs", "Jobs", "ranked__jobs", "")
        yield Column("nodes", "", "ranked__nodes")
        yield Column("node_hours", "Node-hours", "ranked__node_hours", "")
        yield Column("unknown_jobs", "Value unknown", "ranked__unknown", "", cell=_unknown)
        for number, measure in enumerate(choice.measures):
            is_shown = choice.per or number  # without a ratio, the first is the value
            title = measure.title if is_shown else ""
            yield Column(measure.name, title, _figure(number), measure.unit)

    def _on_page(self, page: Iterable[Row]) -> Iterator[Row]:
        rows = list(self._with_jobs(page))
        subjects = [row.ranked.subject for row in rows]
        is_of_jobs = self.choice.subject is JOBS
        series = {} if is_of_jobs else rankings.over_time(self.filtered, self.choice, subjects)
        users = [self._user_of(row) for row in rows]
        known = contacts(users, self.user)
        highest = self.ranked[0].value if self.ranked else 0
        for row, user in zip(rows, users, strict=True):
            share = row.ranked.value / highest if highest > 0 else 0.0
            spark = series.get(row.ranked.subject, ())
            yield replace(row, share=share, spark=spark, contact=known.get(user))

    def _with_jobs(self, rows: Iterable[Row]) -> Iterator[Row]:
        rows = list(rows)
        keys = [row.ranked.subject for row in rows] if self.choice.subject is JOBS else []
        jobs = Job.objects.select_related("cluster").in_bulk(map(int, keys)) if keys else {}
        for row in rows:
            yield replace(row, job=jobs.get(int(row.ranked.subject))) if jobs else row

    @property
    def has_contacts(self) -> bool:
        """Whether the subjects have a responsible user; for staff."""
        return self.user.is_staff and self.choice.subject.name in {"user", "application", "job"}

    def _user_of(self, row: Row) -> str:
        """Return the responsible user; "": none, or several."""
        kind, subject = self.choice.subject.name, row.ranked.subject
        if kind == "job":
            return row.job.owner if row.job else ""
        if kind == "application":
            return Application.from_text(subject).user
        return subject if kind == "user" else ""

    def _subject(self, row: Row) -> SafeString:
        """Return the rank and the name, with a link to the subject."""
        address = self._url(row.ranked.subject)
        name = format_html('<a href="{}">{}</a>', address, show.visible(self._name(row)))
        unknown = format_html('<span class="unknown">{}</span>', "unknown")
        return format_html(
            '<span class="rank">{}</span> {}', row.rank, name if address else unknown
        )

    def _name(self, row: Row) -> str:
        kind, subject = self.choice.subject.name, row.ranked.subject
        if row.job:
            return f"{row.job.display_id} · {row.job.owner} · {row.job.name}"
        return job_group_name(kind, subject).text if kind == "application" else subject

    def _value(self, row: Row) -> SafeString:
        """Return the value with a bar; a mean of counts is no count."""
        unit, value = self.choice.measure.unit, row.ranked.value
        is_mean = self.choice.per and unit is Unit.COUNT
        return format_html(
            _BAR,
            significant(value) if is_mean else human(value, unit),
            show.bar_width(row.share),
        )

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


_BAR = (
    '{} <svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
    '<rect width="{}" height="1"/></svg>'
)
_SPARK = (
    f'<svg class="spark" viewBox="0 -1 {INTERVALS - 1} {_SPARK_HEIGHT + 2}" '
    'preserveAspectRatio="none" aria-hidden="true"><path d="{}"/></svg>'
)


def _figure(number: int) -> Callable[[Row], float | None]:
    return lambda row: row.ranked.figures[number]


def _contact(row: Row) -> SafeString:
    return included("common/contact.html", contact=row.contact)


def _unknown(row: Row) -> SafeString | int:
    if not row.has_many_unknown:
        return row.ranked.unknown
    return format_html(
        '<strong class="late" title="The value is over the other jobs only">{} ({} %)</strong>',
        show.whole(row.ranked.unknown),
        show.percent(row.ranked.unknown_share),
    )


def _spark(row: Row) -> SafeString:
    """Return a line in a box of `INTERVALS` - 1 by `_SPARK_HEIGHT`; gaps: unknown values."""
    highest = max((value for value in row.spark if value is not None), default=0) or 1
    steps = []
    for x, (previous, value) in enumerate(pairwise((None, *row.spark))):
        if value is not None:
            y = f"{_SPARK_HEIGHT * (1 - value / highest):.1f}"
            steps.append(f"M{x},{y}h0" if previous is None else f"L{x},{y}")
    return format_html(_SPARK, "".join(steps)) if steps else SafeString("")
