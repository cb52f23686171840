"""Runs of jobs in a period with their figures, read by column, for the load ramp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db.models import Case, F, FloatField, Func, Value, When
from django.db.models.functions import Cast, Coalesce
from django.db.models.lookups import GreaterThan

from ioportal.jobs.models import Job
from ioportal.jobs.packed import Hash, Packed
from ioportal.jobs.population_values import size_classes
from ioportal.jobs.trends import BATCH_RECORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from django.db.models.expressions import Combinable

    from ioportal.jobs.models import WorkloadJobQuerySet
    from ioportal.jobs.trends import Jobs, Records
    from ioportal.load.analysis.load_ramp import Floats, Ints


@dataclass(frozen=True)
class Runs:
    """Jobs that ran in a period, an element of each array per job.

    `ends` of running jobs are the times until which they are known to have run. Values are NaN if
    unknown, and of running jobs.
    """

    starts: Floats  # s since 1970
    ends: Floats
    nodes: Floats
    strata: Ints  # equal for jobs of one application and class of node counts
    values: Mapping[str, Floats]


def runs(
    jobs: Jobs, records: Records, metrics: Sequence[str], start: datetime, end: datetime
) -> Runs:
    """Return the runs of jobs that ran in [start, end), in one statement."""
    columns: dict[str, Combinable] = {
        "starts": _epoch_s("started_at"),
        "ends": _epoch_s(records.known_until),
        "nodes": Coalesce(Cast(records.nodes, FloatField()), Value(0.0)),
        **{f"value_{metric}": _of_ended(records.figure(metric)) for metric in metrics},
    }
    packed = {name: Packed(column, ">f8") for name, column in columns.items()}
    packed["applications"] = Packed(Coalesce(Hash(records.application), Value(0)), ">i8")
    packed["node_counts"] = Packed(records.node_count, ">i4")
    running = jobs.filter(GreaterThan(records.known_until, Value(start)), started_at__lt=end)
    results = running.order_by().aggregate(**packed)
    arrays: dict[str, Any] = {name: column.unpack(results[name]) for name, column in packed.items()}
    values = {metric: arrays[f"value_{metric}"] for metric in metrics}
    kinds = np.stack([arrays["applications"], size_classes(arrays["node_counts"])])
    strata = np.unique(kinds, axis=1, return_inverse=True)[1].ravel()
    return Runs(arrays["starts"], arrays["ends"], arrays["nodes"], strata, values)


def pilots(panda_jobs: WorkloadJobQuerySet, start: datetime, end: datetime) -> Runs:
    """Return the runs of the batch jobs of PanDA jobs, without figures."""
    inside = panda_jobs.filter(batch_job__isnull=False).order_by().values("batch_job")
    return runs(Job.objects.filter(pk__in=inside), BATCH_RECORDS, (), start, end)


def _epoch_s(moment: Combinable | str) -> Func:
    expression = F(moment) if isinstance(moment, str) else moment
    return Func(Value("epoch"), expression, function="date_part", output_field=FloatField())


def _of_ended(figure: Combinable) -> Coalesce:
    """Return a figure of ended jobs; NaN: unknown."""
    known = Case(When(ended_at__isnull=False, then=Cast(figure, FloatField())))
    return Coalesce(known, Value(float("nan")), output_field=FloatField())
