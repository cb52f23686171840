"""Values of populations by job, with the day, user and stratum of each, read by column."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from django.db.models import BigIntegerField, F, FloatField, Func, Value
from django.db.models.functions import Cast, Coalesce
from django.utils import timezone

from ioportal.jobs.analysis.comparison.arms import Arm
from ioportal.jobs.application_names import application_name_sql
from ioportal.jobs.expressions import Hash, Packed
from ioportal.jobs.panda_jobs import FIGURES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.db.models.expressions import Combinable

    from ioportal.jobs.analysis.comparison.arms import Floats, Ints
    from ioportal.jobs.models import JobQuerySet, WorkloadJobQuerySet

_S_US = 1_000_000


class Covariate(StrEnum):
    """What divides jobs into strata."""

    NODES = "nodes"  # classes by powers of two: 1, 2-3, 4-7, ... nodes
    QUEUE = "queue"  # of PanDA jobs, the site
    USER = "user"
    APPLICATION = "application"  # name without numbers; of PanDA jobs, the transformation
    NONE = "none"


@dataclass(frozen=True)
class JobValues:
    """Jobs that have started, one per element of each array, in any order.

    `strata` are numbers; `labels` has the text of each. `batch_jobs` are keys; several PanDA jobs
    may have the same.
    """

    days: Ints  # number of the local day of the start, in the site's zone, from 1970-01-01
    users: Ints  # equal for equal users
    batch_jobs: Ints  # 0: none
    strata: Ints
    labels: Mapping[int, str]
    values: Mapping[str, Floats]  # by metric; NaN: unknown

    @property
    def arm(self) -> Arm:
        """The jobs as an arm of a comparison."""
        return Arm(self.values, self.days, self.users, self.strata)


class _Application(Func):
    template = application_name_sql("%(expressions)s")


@dataclass(frozen=True)
class _Records:
    """Columns of a kind of jobs."""

    texts: Mapping[Covariate, Combinable]
    batch_job: Combinable
    nodes: Combinable
    metric: Callable[[str], Combinable]


BATCH_APPLICATION = _Application("name")
PANDA_APPLICATION = F("transformation")
PANDA_NODE_COUNT = Coalesce("batch_job__node_count", Value(0))  # of the batch job
_BATCH = _Records(
    texts={
        Covariate.QUEUE: F("queue"),
        Covariate.USER: F("owner"),
        Covariate.APPLICATION: BATCH_APPLICATION,
    },
    batch_job=F("pk"),
    nodes=F("node_count"),
    metric=lambda name: F(f"statistics__{name}"),
)
_PANDA = _Records(
    texts={
        Covariate.QUEUE: F("site"),
        Covariate.USER: F("user"),
        Covariate.APPLICATION: PANDA_APPLICATION,
    },
    batch_job=Coalesce("batch_job", Value(0, BigIntegerField())),
    nodes=PANDA_NODE_COUNT,
    metric=lambda name: FIGURES.get(name, F(f"batch_job__statistics__{name}")),
)
_UNKNOWN_NODES = -1


def batch_job_values(
    jobs: JobQuerySet, metrics: Sequence[str], covariate: Covariate = Covariate.NODES
) -> JobValues:
    """Return the values of batch jobs."""
    return _job_values(jobs, metrics, covariate, _BATCH)


def panda_job_values(
    jobs: WorkloadJobQuerySet, metrics: Sequence[str], covariate: Covariate = Covariate.NODES
) -> JobValues:
    """Return the values of PanDA jobs; each has all values of its batch job."""
    return _job_values(jobs, metrics, covariate, _PANDA)


def _job_values(
    jobs: JobQuerySet | WorkloadJobQuerySet,
    metrics: Sequence[str],
    covariate: Covariate,
    records: _Records,
) -> JobValues:
    texts = records.texts
    packed = {f"metric_{name}": Packed(_known(records.metric(name)), ">f8") for name in metrics}
    packed |= {
        "starts": Packed(_epoch_us("started_at"), ">i8"),
        "users": Packed(Hash(texts[Covariate.USER]), ">i8"),
        "batch_jobs": Packed(records.batch_job, ">i8"),
    }
    if covariate is Covariate.NODES:
        packed["strata"] = Packed(records.nodes, ">i4")
    elif covariate is not Covariate.NONE:
        packed["strata"] = Packed(Hash(texts[covariate]), ">i8")
    started = jobs.filter(started_at__isnull=False).order_by()
    results = started.aggregate(**packed)
    columns: dict[str, Any] = {
        name: column.unpack(results[name]) for name, column in packed.items()
    }
    days = local_days(columns["starts"])
    strata, labels = np.zeros_like(days), {0: "all"}
    if covariate is Covariate.NODES:
        strata = size_classes(columns["strata"])
        labels = {number: size_label(number) for number in np.unique(strata).tolist()}
    elif covariate is not Covariate.NONE:
        strata = columns["strata"]
        labels = dict(started.values_list(Hash(texts[covariate]), texts[covariate]).distinct())
    return JobValues(
        days,
        columns["users"],
        columns["batch_jobs"],
        strata,
        labels,
        {name: columns[f"metric_{name}"] for name in metrics},
    )


def size_classes(nodes: Ints) -> Ints:
    """Return the binary logarithm of numbers of nodes, rounded down; -1: unknown."""
    exponents: Ints = np.frexp(np.maximum(nodes, 0).astype(float))[1]
    return exponents - 1


def size_label(size_class: int) -> str:
    """Return the numbers of nodes in a size class: '1', '2-3', '4-7'."""
    if size_class == _UNKNOWN_NODES:
        return "unknown"
    low = 1 << size_class
    return f"{low}" if low == 1 else f"{low:,}\u2013{2 * low - 1:,}"


def _known(column: Combinable) -> Coalesce:
    """Return a column with NaN for unknown."""
    return Coalesce(Cast(column, FloatField()), Value(float("nan")), output_field=FloatField())


def _epoch_us(column: str) -> Func:
    return Func(
        F(column),
        template=f"(date_part('epoch', %(expressions)s) * {_S_US})::bigint",
        output_field=BigIntegerField(),
    )


def local_days(starts_us: Ints) -> Ints:
    """Return the numbers of the days of times in microseconds, in the site's zone."""
    zone = timezone.get_current_timezone_name()
    starts = pl.Series(starts_us).cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    days: Ints = starts.dt.date().cast(pl.Int32).to_numpy()
    return days
