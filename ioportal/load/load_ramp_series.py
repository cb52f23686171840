"""The load ramp: concurrency of jobs against run time, copy latency and MDS latency."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from django.db.models import Case, F, FloatField, Func, Value, When
from django.db.models.functions import Cast, Coalesce
from django.db.models.lookups import GreaterThan
from django.utils import timezone

from ioportal.core.formatting import signed, significant, with_unit
from ioportal.core.units import Source, Unit
from ioportal.jobs.analysis.comparison.results import MIN_DAYS
from ioportal.jobs.expressions import Hash, Packed
from ioportal.jobs.models import Job
from ioportal.jobs.populations.population_values import size_classes
from ioportal.jobs.populations.selections import BATCH_JOBS, PANDA_JOBS
from ioportal.jobs.trends import BATCH_RECORDS
from ioportal.load import request_latency
from ioportal.load.analysis import load_ramp
from ioportal.metrics import BY_NAME, PANDA_METRICS, Metric
from ioportal.site.models import Server
from ioportal.telemetry import buckets as clock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from django.db.models.expressions import Combinable

    from ioportal.jobs.analysis.trends import Buckets
    from ioportal.jobs.models import WorkloadJobQuerySet
    from ioportal.jobs.populations.selections import JobKind
    from ioportal.jobs.trends import Jobs, Records
    from ioportal.load.analysis.load_ramp import Cells, Change, Concurrency, Floats, Ints, Ramp
    from ioportal.site.models import Cluster


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


_INTERVAL = timedelta(hours=1)  # of a value of the MDS latency
_DIGITS = 3
_LARGE = 10  # loads from here on have no decimals


@dataclass(frozen=True)
class Load:
    """A measure of the load."""

    name: str
    title: str
    unit: str
    state: str = "at once"


_NODES = Load("nodes", "Nodes in use", "nodes", "in use")
LOADS = {  # the first is the default
    BATCH_JOBS.name: (Load("jobs", "Concurrent jobs", "jobs"), _NODES),
    PANDA_JOBS.name: (
        Load("pilots", "Concurrent pilots", "pilots"),
        Load("jobs", "Concurrent PanDA jobs", "PanDA jobs"),
        _NODES,
    ),
}
MDS_LATENCY = Metric(
    "mds_latency_us",
    "MDS latency",
    Unit.MICROSECONDS,
    Source.RPC_TRACE,
    "time of all requests from arrival to end / requests, by hour",
    "Estimated from service statistics (mds_stats) where no trace exists.",
)
_PANDA_BY_NAME = {metric.name: metric for metric in PANDA_METRICS}
_METRICS = {
    BATCH_JOBS.name: (BY_NAME["duration_s"],),
    PANDA_JOBS.name: tuple(
        _PANDA_BY_NAME[name]
        for name in ("panda_duration_s", "panda_stage_in_s", "panda_stage_out_s")
    ),
}


@dataclass(frozen=True)
class Relation:
    """A metric over time, and its relation to the concurrency."""

    metric: Metric
    counted: str  # plural of the things with a value
    counts: list[int]  # by bucket
    medians: list[float | None]
    ramp: Ramp
    cells: Cells


@dataclass(frozen=True)
class LoadRamp:
    """The concurrency by bucket, and its relation to each metric."""

    concurrency: list[float]  # mean over time, by bucket
    loads: list[float | None]  # median of the jobs that started, by bucket
    relations: tuple[Relation, ...]

    @property
    def is_empty(self) -> bool:
        """Whether no job ran."""
        return not any(self.concurrency)


@dataclass(frozen=True)
class Population:
    """Selected jobs; others do not count."""

    jobs: Any
    kind: JobKind
    records: Records  # columns of their records
    cluster: Cluster | None  # of all jobs; None: any
    with_latency: bool  # the requests are of all users: for staff


def compute(population: Population, load: Load, buckets: Buckets) -> LoadRamp:
    """Relate the concurrency of selected jobs to their metrics, for staff also to MDS latency.

    Args:
        population: the jobs.
        load: its measure, from `LOADS`.
        buckets: the period and its intervals.
    """
    kind = population.kind
    start, end = buckets.start, buckets.end
    metrics = _METRICS[kind.name]
    names = [metric.name for metric in metrics]
    ran = runs(population.jobs, population.records, names, start, end)
    counted = ran
    if kind is PANDA_JOBS and load.name != "jobs":
        counted = pilots(population.jobs, start, end)
    level = _concurrency(counted, load)
    edges = np.array([edge.timestamp() for edge in buckets.edges])
    started = ran.starts >= edges[0]
    starts = ran.starts[started]
    until = np.minimum(starts + _usual_run_s(ran), edges[-1])
    loads = level.mean(starts, until)
    if counted is ran:
        # A job counts as running until then, so that short jobs do not lower their own load.
        own = ran.nodes[started] if load is _NODES else 1.0
        missing_s = np.maximum(until - np.maximum(ran.ends[started], starts), 0)
        loads += own * missing_s / np.where(until > starts, until - starts, np.nan)
    of_jobs = (
        _relation(
            metric,
            kind.plural,
            (loads, ran.values[metric.name][started], starts),
            edges,
            ran.strata[started],
        )
        for metric in metrics
    )
    relations = list(of_jobs)
    if population.with_latency:
        relations.append(_latency(population.cluster, level, buckets, edges))
    over_time = level.mean(edges[:-1], edges[1:]).tolist()
    return LoadRamp(over_time, _medians(loads, starts, edges)[0], tuple(relations))


def _usual_run_s(ran: Runs) -> float:
    """Return the time after its start over which the load of a job is the mean.

    It is the same for all jobs: over its own run, the mean would depend on the length of the run,
    because longer runs include more ends and starts of others.
    """
    return float(np.median(ran.ends - ran.starts)) if ran.starts.size else 0.0


def _concurrency(counted: Runs, load: Load) -> Concurrency:
    weights = counted.nodes if load is _NODES else None
    return load_ramp.concurrency(counted.starts, counted.ends, weights)


def _latency(
    cluster: Cluster | None, level: Concurrency, buckets: Buckets, edges: Floats
) -> Relation:
    """Relate hourly latencies of metadata servers to the mean concurrency in each hour.

    Hours in which none of the jobs ran are left out.
    """
    servers = Server.objects.filter(kind=Server.Kind.MDS)
    if cluster:
        servers = servers.filter(filesystem__clusters=cluster)
    first = clock.floor(buckets.start, _INTERVAL)
    rows = request_latency.by_interval(
        list(servers.values_list("pk", flat=True)), first, buckets.end, _INTERVAL
    )
    starts = rows["start"].dt.epoch("us").to_numpy() / 1e6
    begins = np.maximum(starts, edges[0])
    loads = level.mean(begins, np.minimum(starts + _INTERVAL.total_seconds(), edges[-1]))
    latencies = (rows["took_us"] / rows["requests"]).to_numpy()
    latencies = np.where(loads > 0, latencies, np.nan)  # idle hours may be most of all
    return _relation(MDS_LATENCY, "hours", (loads, latencies, begins), edges)


def _relation(
    metric: Metric,
    counted: str,
    columns: tuple[Floats, Floats, Floats],
    edges: Floats,
    strata: Ints | None = None,
) -> Relation:
    """Relate values to loads; `columns` are loads, values and times."""
    is_known = np.isfinite(columns[1])
    loads, values, moments = (column[is_known] for column in columns)
    medians, counts = _medians(values, moments, edges)
    return Relation(
        metric,
        counted,
        counts,
        medians,
        load_ramp.ramp(
            loads, values, _local_days(moments), None if strata is None else strata[is_known]
        ),
        load_ramp.cells(loads, values),
    )


def _medians(
    values: Floats, moments: Floats, edges: Floats
) -> tuple[list[float | None], list[int]]:
    """Return the median and the number of the values in each bucket of their times."""
    bucket = np.searchsorted(edges, moments, side="right") - 1
    counts = np.bincount(bucket, minlength=edges.size - 1)
    parts = np.split(values[np.argsort(bucket, kind="stable")], np.cumsum(counts)[:-1])
    return [float(np.median(part)) if part.size else None for part in parts], counts.tolist()


def _local_days(moments: Floats) -> Ints:
    """Return the number of the day of each time in the site's zone."""
    zone = timezone.get_current_timezone_name()
    times = pl.Series((moments * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))
    return times.dt.convert_time_zone(zone).dt.date().cast(pl.Int64).to_numpy()


def conclusion(relation: Relation, load: Load) -> str:
    """Return the conclusion of a relation in a sentence."""
    ramp, name = relation.ramp, relation.metric.title
    if not ramp.count:
        return f"{name} is unknown in this period."
    if ramp.is_other_mix:
        return (
            f"No conclusion about {_lower(name)}: the jobs at high load are of other applications "
            "or node counts than those at low load."
        )
    if (change := ramp.change) is None:
        bins = ramp.bins
        seen = _range(bins[0].low, bins[-1].high, load)
        return (
            f"No conclusion about {_lower(name)}: it needs {MIN_DAYS} days at a low and at a much "
            f"higher load. Seen: {seen}, {ramp.days} day{'s' if ramp.days != 1 else ''}."
        )
    bounds = " and ".join(_about(at.concurrency) for at in (change.first, change.last))
    subject = f"Between {bounds} {load.unit} {load.state}, the median {_lower(name)}"
    if change.effect.low == change.effect.high:
        median = with_unit(change.last.median, relation.metric.unit)
        return f"{subject} stayed at {median}, whichever days are left out."
    if not change.direction:
        return f"{subject} did not visibly change: {_effect(change, relation.metric)}."
    verb = "rose" if change.direction > 0 else "fell"
    return f"{subject} {verb} by {_effect(change, relation.metric)}."


def correlation(relation: Relation) -> str:
    """Return the correlation of daily values in a sentence; "" if it is unknown."""
    rho = relation.ramp.correlation
    if rho is None:
        return ""
    return (
        f"Daily values of {relation.ramp.days} days: Spearman correlation {rho.value:.2f} "
        f"(95 % interval {rho.low:.2f} to {rho.high:.2f})."
    )


def _range(low: float, high: float, load: Load) -> str:
    return f"from {significant(low)} to {significant(high)} {load.unit}"


def _effect(change: Change, metric: Metric) -> str:
    """Return size and interval, as sizes without a sign if the direction is known."""
    effect = change.effect
    numbers = [effect.value, effect.low, effect.high]
    if change.is_ratio:
        numbers, form, unit = [100 * (number - 1) for number in numbers], ".1f", "%"
    else:
        form, unit = f".{_DIGITS}g", str(metric.unit)
    if change.direction:
        numbers = [numbers[0], *sorted(numbers[1:], key=abs)]
        texts = [f"{abs(number):{form}}" for number in numbers]
    else:
        texts = [signed(number, form) for number in numbers]
    return f"{texts[0]} {unit} (95 % interval {texts[1]} to {texts[2]} {unit})"


def _about(load: float) -> str:
    return f"{load:,.0f}" if load >= _LARGE else f"{load:.1f}" if load >= 1 else significant(load)


def _lower(title: str) -> str:
    """Return a title within a sentence; abbreviations keep their letters."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]
