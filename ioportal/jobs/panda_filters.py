"""Filters of PanDA jobs, with the parameter names of PanDA's own monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import django_filters as filters
from django.db.models import Q

from ioportal.jobs.job_filters import (
    BOUNDS,
    FilterForm,
    LastFilter,
    MetricFilter,
    StrictFilterSet,
    TimeFilter,
    ValuesFilter,
    split_values,
)
from ioportal.jobs.models import WorkloadJob
from ioportal.jobs.panda_jobs import FIGURES, valid_ids
from ioportal.site.models import Cluster

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.jobs.models import WorkloadJobQuerySet

# Metrics with a range filter, as for batch jobs; nodes are shared by PanDA jobs.
PANDA_BOUNDS = {
    metric: (f"{metric}_from", f"{metric}_below")
    for metric in (
        *("panda_duration_s", "panda_wait_s", "panda_cpu_s"),
        *("panda_stage_in_s", "panda_stage_out_s"),
        *BOUNDS,
    )
    if metric != "metadata_operations_per_node"
}


class NumbersFilter(filters.CharFilter):  # type: ignore[misc]  # django-filter is untyped
    """Any of several numbers; other values match nothing."""

    def filter(self, jobs: WorkloadJobQuerySet, value: str) -> WorkloadJobQuerySet:
        """Filter by the numbers."""
        values = split_values(value)
        return jobs.filter(**{f"{self.field_name}__in": valid_ids(values)}) if values else jobs


class PandaFigureFilter(MetricFilter):
    """A bound of a metric of the PanDA job or its batch job; unknown values do not match."""

    def __init__(self, metric: str, **options: Any) -> None:
        self._metric = metric
        super().__init__(f"batch_job__statistics__{metric}", **options)

    def filter(self, jobs: WorkloadJobQuerySet, value: int | None) -> WorkloadJobQuerySet:
        """Filter by the bound."""
        if value is None:
            return jobs
        if self._metric not in FIGURES:
            return jobs.filter(**{f"{self.field_name}__{self.lookup_expr}": value})
        with_metric = jobs.alias(**{self._metric: FIGURES[self._metric]})
        return with_metric.filter(**{f"{self._metric}__{self.lookup_expr}": value})


def _at_least(metric: str, label: str) -> PandaFigureFilter:
    return PandaFigureFilter(metric, lookup_expr="gte", label=label)


def _below(metric: str, label: str) -> PandaFigureFilter:
    return PandaFigureFilter(metric, lookup_expr="lt", label=label)


class PandaFilterForm(FilterForm):
    """The form of the filters of PanDA jobs."""

    bounds = PANDA_BOUNDS


class PandaFilter(StrictFilterSet):
    """PanDA jobs by id, task, batch job, site, state, user, time and figures."""

    pandaid = NumbersFilter("panda_id", label="PanDA id")
    jeditaskid = NumbersFilter("task_id", label="Task")
    batchid = filters.CharFilter(method="in_batch_job", label="Batch job")
    jobstatus = ValuesFilter("state", label="State")
    computingsite = ValuesFilter("site", label="Site")
    produsername = filters.CharFilter("user", label="User")  # full names, with spaces
    cluster = filters.ModelChoiceFilter(
        queryset=Cluster.objects.all(), to_field_name="name", label="Cluster", empty_label="all"
    )
    start = TimeFilter(method="running_after", label="Ran after")
    end = TimeFilter("started_at", lookup_expr="lt", label="Ran before")
    last = LastFilter()
    panda_duration_s_from = _at_least("panda_duration_s", "Run time at least (s)")
    panda_duration_s_below = _below("panda_duration_s", "Run time below")
    panda_wait_s_from = _at_least("panda_wait_s", "Wait at least (s)")
    panda_wait_s_below = _below("panda_wait_s", "Wait below")
    panda_cpu_s_from = _at_least("panda_cpu_s", "CPU time at least (s)")
    panda_cpu_s_below = _below("panda_cpu_s", "CPU time below")
    panda_stage_in_s_from = _at_least("panda_stage_in_s", "Copy latency in at least (s)")
    panda_stage_in_s_below = _below("panda_stage_in_s", "Copy latency in below")
    panda_stage_out_s_from = _at_least("panda_stage_out_s", "Copy latency out at least (s)")
    panda_stage_out_s_below = _below("panda_stage_out_s", "Copy latency out below")
    read_bytes_from = _at_least("read_bytes", "Batch job read at least (bytes)")
    read_bytes_below = _below("read_bytes", "Batch job read below")
    write_bytes_from = _at_least("write_bytes", "Batch job wrote at least (bytes)")
    write_bytes_below = _below("write_bytes", "Batch job wrote below")
    opens_from = _at_least("opens", "Batch job's opens at least")
    opens_below = _below("opens", "Batch job's opens below")
    closes_from = _at_least("closes", "Batch job's closes at least")
    closes_below = _below("closes", "Batch job's closes below")

    class Meta:
        model = WorkloadJob
        form = PandaFilterForm
        fields: tuple[str, ...] = ()

    def in_batch_job(
        self, jobs: WorkloadJobQuerySet, _name: str, value: str
    ) -> WorkloadJobQuerySet:
        """Filter by batch id, as reported by PanDA or by accounting."""
        ids = split_values(value)
        if not ids:
            return jobs
        return jobs.filter(Q(reported_batch_id__in=ids) | Q(batch_id__in=ids))

    def running_after(
        self, jobs: WorkloadJobQuerySet, _name: str, value: datetime
    ) -> WorkloadJobQuerySet:
        """Filter jobs that ran after a time; with `end`, jobs that overlap the range."""
        return jobs.filter(Q(ended_at__gt=value) | Q(ended_at=None), started_at__isnull=False)
