"""Which batch jobs are meant: the one set of filters, for pages and whatever else lists jobs."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any

import django_filters as filters
from django import forms
from django.contrib.postgres.fields import DateTimeRangeField
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import F, Func, Q

from collectors.batch import htcondor
from ioportal.analysis.rules import RULES
from ioportal.jobs import workloads
from ioportal.jobs.models import Allocation, Job, JobStatistics, Launch
from ioportal.site.models import Cluster
from ioportal.telemetry.models import LARGEST_BIGINT
from ioportal.time_fields import TimeInput

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

    from ioportal.jobs.models import JobQuerySet

_WORDS = re.compile(r"[\s,|]+")
_ARRAY_TASK = re.compile(r"(?P<batch_id>[^\[\]]+)\[(?P<array_index>[^\[\]]+)\]")
ANY = "any"  # of the flag filter: by whatever rule
NOT_COMPUTED = "none"  # of the quality filter: jobs without statistics
# The metrics that can be asked for by their value: the parameters for at least, and for below.
BOUNDS = {
    metric: (f"{metric}_from", f"{metric}_below")
    for metric in ("read_bytes", "write_bytes", "opens", "closes")
}
_QUALITIES = [*JobStatistics.Quality.choices, (NOT_COMPUTED, "not computed yet")]
_RUN = Func(
    "started_at", "ended_at", function="tstzrange", output_field=DateTimeRangeField()
)  # as the index `job_during` has it


class WordsFilter(filters.CharFilter):  # type: ignore[misc]  # django-filter is untyped
    """Exact values, several of them separated by commas, bars or blanks: any of them matches."""

    def filter(self, jobs: JobQuerySet, value: str) -> JobQuerySet:
        """Keep the jobs with one of the values."""
        words = words_of(value)
        return jobs.filter(**{f"{self.field_name}__in": words}) if words else jobs


class NodesFilter(filters.NumberFilter):  # type: ignore[misc]  # django-filter is untyped
    """Jobs by how many nodes they have: whole ones."""

    def __init__(self, **options: Any) -> None:
        super().__init__("node_count", min_value=0, decimal_places=0, **options)


class MetricFilter(filters.Filter):  # type: ignore[misc]  # django-filter is untyped
    """A bound of a metric: a whole number that the database can store."""

    field_class = forms.IntegerField

    def __init__(self, field_name: str, **options: Any) -> None:
        super().__init__(field_name, min_value=0, max_value=LARGEST_BIGINT, **options)


class FigureFilter(MetricFilter):
    """Jobs by a metric that counts something; those of which it is not known are left out."""

    def __init__(self, metric: str, **options: Any) -> None:
        super().__init__(f"statistics__{metric}", **options)


class FilterForm(forms.Form):
    """Refuses what can match no job."""

    bounds = BOUNDS  # half-open ranges of figures
    ranges: tuple[tuple[str, str], ...] = (("start", "end"),)  # others, both ends included
    choice_names: tuple[str, ...] = ()  # of fields with a list of choices

    def clean(self) -> dict[str, Any]:
        """Hold both ends of a range against each other."""
        given = super().clean() or {}
        for low, high in (*self.ranges, *self.bounds.values()):
            if given.get(low) is None or given.get(high) is None:
                continue
            is_empty = given[low] == given[high] and (low, high) in self.bounds.values()
            if is_empty or given[low] > given[high]:
                self.add_error(high, f"This contradicts {self.fields[low].label!r}.")
        return given

    @property
    def facts(self) -> list[forms.BoundField]:
        """The fields about what records say, but those that have a list of choices."""
        left_out = {*self.choice_names, *chain.from_iterable(self.bounds.values())}
        return [field for field in self if field.name not in left_out]

    @property
    def choices(self) -> list[forms.BoundField]:
        """The fields with a list of choices."""
        return [self[name] for name in self.choice_names]

    @property
    def figures(self) -> list[forms.BoundField]:
        """The fields about figures."""
        return [self[name] for name in chain.from_iterable(self.bounds.values())]

    @property
    def is_by_figures(self) -> bool:
        """Whether one of those is filled in."""
        return any(field.value() for field in self.figures)


class JobFilterForm(FilterForm):
    """The form of the filters of batch jobs."""

    ranges = (("nodes_min", "nodes_max"), *FilterForm.ranges)
    choice_names = ("state", "quality")


class StrictFilterSet(filters.FilterSet):  # type: ignore[misc]  # django-filter is untyped
    """Filters of which an invalid one matches nothing, rather than being ignored."""

    def filter_queryset(self, jobs: QuerySet[Any]) -> QuerySet[Any]:
        """Apply the filters if all of them are valid."""
        return super().filter_queryset(jobs) if self.form.is_valid() else jobs.none()


class JobFilter(StrictFilterSet):
    """Jobs by who, what, where, when, how large, how it ended and how well it was observed."""

    q = filters.CharFilter(method="find", label="Job, launch or PanDA job")
    user = WordsFilter("owner", label="User")
    project = WordsFilter("project", label="Project")
    queue = WordsFilter("queue", label="Queue")
    cluster = filters.ModelChoiceFilter(
        queryset=Cluster.objects.all(), to_field_name="name", label="Cluster", empty_label="all"
    )
    name = filters.CharFilter("name", lookup_expr="icontains", label="Name contains")
    node = filters.CharFilter(method="on_node", label="Ran on node")
    start = filters.IsoDateTimeFilter(method="running_after", label="Ran after", widget=TimeInput)
    end = filters.IsoDateTimeFilter(
        "started_at", lookup_expr="lt", label="Ran before", widget=TimeInput
    )
    nodes_min = NodesFilter(lookup_expr="gte", label="Nodes at least")
    nodes_max = NodesFilter(lookup_expr="lte", label="Nodes at most")
    state = filters.MultipleChoiceFilter(
        choices=Job.State.choices,
        distinct=False,
        label="State",
        widget=forms.CheckboxSelectMultiple,
    )
    quality = filters.MultipleChoiceFilter(
        choices=_QUALITIES,
        method="of_quality",
        label="Data quality",
        widget=forms.CheckboxSelectMultiple,
    )
    flag = filters.ChoiceFilter(
        choices=[(ANY, "any rule"), *((rule.code, rule.title) for rule in RULES)],
        method="flagged",
        label="Flagged by",
        empty_label="all jobs",
    )
    # Half-open, as the bins of histograms are.
    read_bytes_from = FigureFilter("read_bytes", lookup_expr="gte", label="Read at least (bytes)")
    read_bytes_below = FigureFilter("read_bytes", lookup_expr="lt", label="Read below")
    write_bytes_from = FigureFilter(
        "write_bytes", lookup_expr="gte", label="Written at least (bytes)"
    )
    write_bytes_below = FigureFilter("write_bytes", lookup_expr="lt", label="Written below")
    opens_from = FigureFilter("opens", lookup_expr="gte", label="Opens at least")
    opens_below = FigureFilter("opens", lookup_expr="lt", label="Opens below")
    closes_from = FigureFilter("closes", lookup_expr="gte", label="Closes at least")
    closes_below = FigureFilter("closes", lookup_expr="lt", label="Closes below")

    class Meta:
        model = Job
        form = JobFilterForm
        fields: tuple[str, ...] = ()

    def find(self, jobs: JobQuerySet, _name: str, value: str) -> JobQuerySet:
        """Keep jobs that one of the words names, or a PanDA job or task inside them."""
        words = words_of(value)
        held = workloads.batch_jobs(pandaid=words, jeditaskid=words)
        return jobs.filter(named(words) | _among(held.values_list("pk"))) if words else jobs

    def on_node(self, jobs: JobQuerySet, _name: str, value: str) -> JobQuerySet:
        """Keep jobs that held one of these nodes."""
        held = Allocation.objects.filter(node__name__in=words_of(value))
        return jobs.filter(pk__in=held.values("job"))

    def running_after(self, jobs: JobQuerySet, _name: str, value: datetime) -> JobQuerySet:
        """Keep jobs that still ran at that moment or later; with `end`: jobs that overlap.

        The run as a range says so again, but for jobs of no duration, whose range is empty: only of
        ranges does the database know how many overlap, and has an index.
        """
        jobs = jobs.filter(Q(ended_at__gt=value) | Q(ended_at=None), started_at__isnull=False)
        asked = DateTimeTZRange(value, self.form.cleaned_data["end"])
        of_no_duration = Q(ended_at=F("started_at"))
        return jobs.alias(run=_RUN).filter(Q(run__overlap=asked) | of_no_duration)

    def flagged(self, jobs: JobQuerySet, _name: str, value: str) -> JobQuerySet:
        """Keep jobs that a rule has found something of, triaged or not; not by data too poor."""
        of_rule = {} if value == ANY else {"flags__rule": value}
        told = Job.objects.filter(flags__suppression_reasons=[], **of_rule)  # (as owners see them)
        return jobs.filter(pk__in=told.values("pk"))

    def of_quality(self, jobs: JobQuerySet, _name: str, values: list[str]) -> JobQuerySet:
        """Keep jobs whose statistics have one of these qualities."""
        wanted = Q(quality__in=[v for v in values if v != NOT_COMPUTED])
        if NOT_COMPUTED in values:
            wanted |= Q(quality=None)
        return jobs.filter(wanted) if values else jobs


def named(words: list[str]) -> Q:
    """Return what holds of jobs whose id, array task ('3485999[4]') or launch is a word."""
    launches = Launch.objects.filter(name__in=words, job__isnull=False)
    wanted = Q(batch_id__in=words) | _among(launches.values_list("job"))
    for task in filter(None, map(_ARRAY_TASK.fullmatch, words)):
        wanted |= Q(**task.groupdict())
    for batch_id, process in filter(None, map(htcondor.batch_id, words)):
        wanted |= Q(batch_id=batch_id, array_index=process) if process else Q(batch_id=batch_id)
    return wanted


def _among(keys: QuerySet[Any, tuple[Any, ...]]) -> Q:
    """Return what holds of jobs with one of the keys.

    Looked up first: joined by OR, a condition on another table would visit every job.
    """
    return Q(pk__in=[key for (key,) in keys])


def words_of(value: str) -> list[str]:
    """Return the words of a text that are separated by blanks, commas or bars."""
    return [word for word in _WORDS.split(value) if word]
