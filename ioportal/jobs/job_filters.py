"""Filters of batch jobs, for pages and API."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

import django_filters as filters
from django import forms
from django.contrib.postgres.fields import DateTimeRangeField
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import F, Func, Max, Q
from django.db.models.lookups import In
from django.utils import timezone

from collectors.batch import htcondor
from ioportal.core.time_fields import TimeField
from ioportal.core.times import ALL, RECENT
from ioportal.jobs import panda_jobs
from ioportal.jobs.models import Allocation, Job, JobStatistics, Launch
from ioportal.jobs.models.job import DISPLAY_ID
from ioportal.rules import RULES
from ioportal.site.models import Cluster
from ioportal.telemetry.models import LARGEST_BIGINT

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

    from ioportal.jobs.models import JobQuerySet

_SEPARATOR = re.compile(r"[\s,|]+")
_ARRAY_TASK = re.compile(r"(?P<batch_id>[^\[\]]+)\[(?P<array_index>[^\[\]]+)\]")
ANY = "any"  # value of the flag filter: any rule
NOT_COMPUTED = "none"  # value of the quality filter: jobs without statistics
# Metrics with a range filter: its parameters for the lower and the upper bound.
BOUNDS = {
    metric: (f"{metric}_from", f"{metric}_below")
    for metric in ("read_bytes", "write_bytes", "opens", "closes", "metadata_operations_per_node")
}
TIME = ("start", "end", "last")  # parameters of the time bar
_SECOND = timedelta(seconds=1)
_QUALITIES = [*JobStatistics.Quality.choices, (NOT_COMPUTED, "not computed yet")]
_RUN = Func(
    "started_at", "ended_at", function="tstzrange", output_field=DateTimeRangeField()
)  # the expression of the index `job_during`


class ValuesFilter(filters.CharFilter):  # type: ignore[misc]  # django-filter is untyped
    """Any of several exact values, separated by commas, bars or spaces."""

    def filter(self, jobs: JobQuerySet, value: str) -> JobQuerySet:
        """Filter by the values."""
        values = split_values(value)
        return jobs.filter(**{f"{self.field_name}__in": values}) if values else jobs


class TimeFilter(filters.Filter):  # type: ignore[misc]  # django-filter is untyped
    """A bound of the time of the run."""

    field_class = TimeField


class LastFilter(filters.ChoiceFilter):  # type: ignore[misc]  # django-filter is untyped
    """A range up to the latest job; the form replaces it by `start` and `end`."""

    def __init__(self) -> None:
        super().__init__(choices=[(last, last) for last in (*RECENT, ALL)], label="Last")

    def filter(self, jobs: QuerySet[Any], _value: str) -> QuerySet[Any]:
        """Leave filtering to `start` and `end`."""
        return jobs


class NodesFilter(filters.NumberFilter):  # type: ignore[misc]  # django-filter is untyped
    """A bound of the number of nodes."""

    def __init__(self, **options: Any) -> None:
        super().__init__("node_count", min_value=0, decimal_places=0, **options)


class MetricFilter(filters.Filter):  # type: ignore[misc]  # django-filter is untyped
    """A bound of a metric: a bigint."""

    field_class = forms.IntegerField

    def __init__(self, field_name: str, **options: Any) -> None:
        super().__init__(field_name, min_value=0, max_value=LARGEST_BIGINT, **options)


class FigureFilter(MetricFilter):
    """A bound of a job statistic; jobs with an unknown value do not match."""

    def __init__(self, metric: str, **options: Any) -> None:
        super().__init__(f"statistics__{metric}", **options)


class FilterForm(forms.Form):
    """A form that refuses empty ranges."""

    bounds = BOUNDS  # half-open ranges of figures; the time is half-open, too
    ranges: tuple[tuple[str, str], ...] = ()  # other ranges, ends included
    choice_names: tuple[str, ...] = ()  # names of fields with choices

    def clean(self) -> dict[str, Any]:
        """Compare the ends of each range; compute `start` and `end` from `last`."""
        values = super().clean() or {}
        if values.get("last") in RECENT and not (values.get("start") or values.get("end")):
            end = _latest_run().replace(microsecond=0) + _SECOND
            values |= {"start": end - RECENT[values["last"]], "end": end}
        for low, high in (("start", "end"), *self.ranges, *self.bounds.values()):
            if values.get(low) is None or values.get(high) is None:
                continue
            is_empty = values[low] == values[high] and (low, high) not in self.ranges
            if is_empty or values[low] > values[high]:
                self.add_error(high, f"This contradicts {self.fields[low].label!r}.")
        return values

    @property
    def facts(self) -> list[forms.BoundField]:
        """The fields about job records, without times and fields with choices."""
        excluded = {*TIME, *self.choice_names, *chain.from_iterable(self.bounds.values())}
        return [field for field in self if field.name not in excluded]

    @property
    def choices(self) -> list[forms.BoundField]:
        """The fields with choices."""
        return [self[name] for name in self.choice_names]

    @property
    def figures(self) -> list[forms.BoundField]:
        """The fields about figures."""
        return [self[name] for name in chain.from_iterable(self.bounds.values())]

    @property
    def is_by_figures(self) -> bool:
        """Whether a field about figures is set."""
        return any(field.value() for field in self.figures)


class JobFilterForm(FilterForm):
    """The form of the filters of batch jobs."""

    ranges = (("nodes_min", "nodes_max"),)
    choice_names = ("state", "quality")


class StrictFilterSet(filters.FilterSet):  # type: ignore[misc]  # django-filter is untyped
    """Filters that match nothing if any of them is invalid."""

    def filter_queryset(self, jobs: QuerySet[Any]) -> QuerySet[Any]:
        """Apply the filters if all are valid."""
        return super().filter_queryset(jobs) if self.form.is_valid() else jobs.none()


class JobFilter(StrictFilterSet):
    """Jobs by user, project, cluster, time, size, state, data quality and figures."""

    q = filters.CharFilter(method="find", label="Job, launch or PanDA job")
    user = ValuesFilter("owner", label="User")
    project = ValuesFilter("project", label="Project")
    queue = ValuesFilter("queue", label="Queue")
    cluster = filters.ModelChoiceFilter(
        queryset=Cluster.objects.all(), to_field_name="name", label="Cluster", empty_label="all"
    )
    name = filters.CharFilter("name", lookup_expr="icontains", label="Name contains")
    node = filters.CharFilter(method="on_node", label="Ran on node")
    start = TimeFilter(method="running_after", label="Ran after")
    end = TimeFilter("started_at", lookup_expr="lt", label="Ran before")
    last = LastFilter()
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
        method="with_quality",
        label="Data quality",
        widget=forms.CheckboxSelectMultiple,
    )
    flag = filters.ChoiceFilter(
        choices=[(ANY, "any rule"), *((rule.code, rule.title) for rule in RULES)],
        method="flagged",
        label="Flagged by",
        empty_label="all jobs",
    )
    # Half-open, like the bins of histograms.
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
    metadata_operations_per_node_from = FigureFilter(
        "metadata_operations_per_node", lookup_expr="gte", label="Metadata operations per node from"
    )
    metadata_operations_per_node_below = FigureFilter(
        "metadata_operations_per_node", lookup_expr="lt", label="Metadata operations per node below"
    )

    class Meta:
        model = Job
        form = JobFilterForm
        fields: tuple[str, ...] = ()

    def find(self, jobs: JobQuerySet, _name: str, value: str) -> JobQuerySet:
        """Filter by job id, launch, PanDA job or PanDA task."""
        ids = split_values(value)
        of_panda = panda_jobs.batch_jobs(pandaid=ids, jeditaskid=ids)
        return jobs.filter(by_id(ids) | _with_keys(of_panda.values_list("pk"))) if ids else jobs

    def on_node(self, jobs: JobQuerySet, _name: str, value: str) -> JobQuerySet:
        """Filter by nodes."""
        allocations = Allocation.objects.filter(node__name__in=split_values(value))
        return jobs.filter(pk__in=allocations.values("job"))

    def running_after(self, jobs: JobQuerySet, _name: str, value: datetime) -> JobQuerySet:
        """Filter jobs that ran after a time; with `end`, jobs that overlap the range.

        The overlap of ranges repeats the condition because it has an index and good estimates. The
        range of a job without duration is empty and needs a separate condition.
        """
        jobs = jobs.filter(Q(ended_at__gt=value) | Q(ended_at=None), started_at__isnull=False)
        window = DateTimeTZRange(value, self.form.cleaned_data["end"])
        is_instant = Q(ended_at=F("started_at"))
        return jobs.alias(run=_RUN).filter(Q(run__overlap=window) | is_instant)

    def flagged(self, jobs: JobQuerySet, _name: str, value: str) -> JobQuerySet:
        """Filter jobs with a flag of a rule in any state; suppressed flags do not count."""
        rule = {} if value == ANY else {"flags__rule": value}
        flagged = Job.objects.filter(flags__suppression_reasons=[], **rule)
        return jobs.filter(pk__in=flagged.values("pk"))

    def with_quality(self, jobs: JobQuerySet, _name: str, values: list[str]) -> JobQuerySet:
        """Filter by data quality."""
        condition = Q(quality__in=[v for v in values if v != NOT_COMPUTED])
        if NOT_COMPUTED in values:
            condition |= Q(quality=None)
        return jobs.filter(condition) if values else jobs


def _latest_run() -> datetime:
    """Return the latest start or end of a job that is not in the future; now without jobs."""
    now = timezone.now()
    times = Job.objects.aggregate(started=Max("started_at"), ended=Max("ended_at"))
    return min(now, max(filter(None, times.values()), default=now))


def by_id(ids: list[str]) -> Q:
    """Return a condition: batch id, array task ('3485999[4]') or launch is one of `ids`."""
    launches = Launch.objects.filter(name__in=ids, job__isnull=False)
    pairs = [*(match.groups() for match in map(_ARRAY_TASK.fullmatch, ids) if match)]
    pairs += filter(None, map(htcondor.batch_id, ids))
    whole = [batch_id for batch_id, task in pairs if not task]
    tasks = [(batch_id, task) for batch_id, task in pairs if task]
    # The index on batch ids selects the candidates.
    is_task = Q(In(DISPLAY_ID, [f"{batch_id}[{task}]" for batch_id, task in tasks]))
    condition = Q(batch_id__in=[*ids, *whole]) | _with_keys(launches.values_list("job"))
    return condition | Q(batch_id__in={batch_id for batch_id, _ in tasks}) & is_task


def _with_keys(keys: QuerySet[Any, tuple[Any, ...]]) -> Q:
    """Return a condition: the job's key is one of `keys`.

    The keys are read first: a subquery in an OR would scan all jobs.
    """
    return Q(pk__in=[key for (key,) in keys])


def split_values(value: str) -> list[str]:
    """Return the values of a parameter, separated by spaces, commas or bars."""
    return [part for part in _SEPARATOR.split(value) if part]
