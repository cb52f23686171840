"""Details of the arms of a comparison for its charts: no results of tests, no weights; cached."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from django.db.models import Count, F, Sum
from django.http import QueryDict
from django.utils import timezone

from collectors.tables import METADATA_OPERATIONS
from ioportal.core.units import Unit
from ioportal.jobs.analysis.histograms import Histogram, Scale, histogram
from ioportal.jobs.cache import cached
from ioportal.jobs.expressions import nodes
from ioportal.jobs.models import JobStatistics
from ioportal.jobs.populations.population_values import Covariate
from ioportal.jobs.populations.selections import PANDA_JOBS, figures_version
from ioportal.jobs.rpc_reports import rpcs_by_kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ioportal.jobs.populations.selections import Selection
    from ioportal.metrics import Metric

_CACHE_VERSION = 4  # to be changed with the classes below
_FRACTIONS = {Unit.SHARE, Unit.RATIO}  # units of values that need bins below 1
_TOTALS: dict[str, Any] = {
    "read_bytes": F("read_bytes"),
    "write_bytes": F("write_bytes"),
    "metadata_operations": F("metadata_operations"),
    "node_hours": nodes("job__") * F("duration_s") / 3600.0,
}
_QUARTILES = {"p25": 0.25, "median": 0.5, "p75": 0.75}


@dataclass(frozen=True)
class MetricDetails:
    """The values of one metric in each arm.

    `days` has a frame for each arm: ``day`` (local date of the start), ``p25``, ``median``, ``p75``
    and ``n``, the number of jobs with a known value. `histogram` has common bins; None: the values
    are fractions.
    """

    days: tuple[pl.DataFrame, ...]
    histogram: Histogram | None


@dataclass(frozen=True)
class Mix:
    """Metadata operations and RPCs by kind of the batch jobs of an arm.

    `jobs` is the number of batch jobs with statistics. `traced` of them have a trace of a part of
    their run; only these have RPCs.
    """

    jobs: int
    operations: Mapping[str, int]
    traced: int
    rpcs: Mapping[str, int]
    totals: Mapping[str, float | None]  # `_TOTALS`; None: unknown
    known: Mapping[str, int]  # batch jobs with a known value


@dataclass(frozen=True)
class ArmDetails:
    """Shared jobs and operations of the arms.

    `shared` has the number of jobs in two arms, by their numbers; pairs without any are missing.
    `mixes` has an element for each arm; a batch job of several PanDA jobs counts once.
    """

    shared: Mapping[tuple[int, int], int]
    mixes: tuple[Mix, ...]
    simulated: bool


def arm_jobs(selection: Selection) -> Any:
    """Return the jobs of an arm, which started in the range of the filters."""
    form = selection.kind.filter_set(QueryDict(selection.filters)).form
    if form.is_valid() and (start := form.cleaned_data["start"]):
        return selection.jobs.filter(started_at__gte=start)
    return selection.jobs


def metric_details(arms: Sequence[Selection], metric: Metric) -> MetricDetails:
    """Return the values of one metric by day and by bin."""
    zone = timezone.get_current_timezone_name()
    return cached(
        "comparison-metric",
        (_CACHE_VERSION, [arm.key for arm in arms], metric.name, zone),
        lambda: _metric_details(arms, metric),
        lambda: figures_version(arms[0].kind),
    )


def arm_details(arms: Sequence[Selection]) -> ArmDetails:
    """Return shared jobs and operations of arms."""
    return cached(
        "comparison-arms",
        (_CACHE_VERSION, [arm.key for arm in arms]),
        lambda: _arm_details(arms),
        lambda: figures_version(arms[0].kind),
    )


def _metric_details(arms: Sequence[Selection], metric: Metric) -> MetricDetails:
    values = [_values(arm, metric.name) for arm in arms]
    bins = None
    if metric.unit not in _FRACTIONS:
        whole = [np.floor(known["value"].to_numpy()).astype(np.int64) for known in values]
        bins = histogram(whole, Scale.LOG)
    return MetricDetails(tuple(map(_quartiles, values)), bins)


def _values(arm: Selection, metric: str) -> pl.DataFrame:
    """Return the known values, ascending, with the day of each job."""
    values = arm.kind.values(arm_jobs(arm), [metric], Covariate.NONE)
    frame = pl.DataFrame({"day": values.days, "value": values.values[metric]})
    known = frame.filter(pl.col("value").is_not_nan()).sort("value")
    return known.with_columns(pl.col("day").cast(pl.Int32).cast(pl.Date))


def _quartiles(values: pl.DataFrame) -> pl.DataFrame:
    quantiles = (
        pl.col("value").quantile(share, "linear").alias(name) for name, share in _QUARTILES.items()
    )
    return values.group_by("day").agg(*quantiles, n=pl.len()).sort("day")


def _arm_details(arms: Sequence[Selection]) -> ArmDetails:
    jobs = [arm_jobs(arm).order_by() for arm in arms]
    shared = {
        (first, second): int(jobs[first].filter(pk__in=jobs[second].values("pk")).count())
        for first, second in combinations(range(len(jobs)), 2)
    }
    simulated = any(each.filter(cluster__simulated=True).exists() for each in jobs)
    mixes = tuple(_mix(arm, each) for arm, each in zip(arms, jobs, strict=True))
    return ArmDetails({pair: n for pair, n in shared.items() if n}, mixes, simulated)


def _mix(arm: Selection, jobs: Any) -> Mix:
    keys = jobs.values("batch_job" if arm.kind is PANDA_JOBS else "pk")
    statistics = JobStatistics.objects.filter(job__in=keys)
    sums = statistics.aggregate(
        jobs=Count("pk"),
        traced=Count("metadata_rpcs"),
        **{kind: Sum(f"count_{kind}") for kind in METADATA_OPERATIONS},
        **{f"total_{name}": Sum(value) for name, value in _TOTALS.items()},
        **{f"known_{name}": Count(value) for name, value in _TOTALS.items()},
    )
    totals = {name: sums.pop(f"total_{name}") for name in _TOTALS}
    known = {name: sums.pop(f"known_{name}") for name in _TOTALS}
    number, traced = sums.pop("jobs"), sums.pop("traced")
    operations = {kind: int(count or 0) for kind, count in sums.items()}
    rpcs = rpcs_by_kind(statistics) if traced else {}
    return Mix(number, operations, traced, rpcs, totals, known)
