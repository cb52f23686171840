"""Figures of jobs over time, one row per bucket, aggregated by the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import (
    Aggregate,
    Count,
    DateTimeField,
    F,
    Func,
    IntegerField,
    Max,
    Min,
    Q,
    Value,
)
from django.db.models.functions import Coalesce, Greatest
from django.db.models.lookups import GreaterThan
from django.utils import timezone

from ioportal.core.units import Source
from ioportal.jobs.analysis.trends import missing_reads
from ioportal.jobs.expressions import KNOWN_UNTIL, Quantiles, nodes
from ioportal.jobs.models import Job, JobStatistics
from ioportal.jobs.panda_jobs import FIGURES
from ioportal.jobs.populations.population_values import (
    BATCH_APPLICATION,
    PANDA_APPLICATION,
    PANDA_NODE_COUNT,
)
from ioportal.jobs.populations.selections import BATCH_JOBS, PANDA_JOBS
from ioportal.jobs.redefinitions import changes_opens
from ioportal.site.models import ServerVersion, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from django.db.models.expressions import Combinable

    from ioportal.core.timelines import Gap
    from ioportal.jobs.analysis.trends import Buckets
    from ioportal.jobs.models import JobQuerySet, WorkloadJobQuerySet
    from ioportal.metrics import Metric

    Jobs = JobQuerySet | WorkloadJobQuerySet
    Row = tuple[int, dict[str, float | None]]  # a bucket's number and values

_GAP_BINS = 400  # of a range: narrower gaps would be invisible on its chart
# Known for every job, without observations.
RECORDED = {Source.ACCOUNTING, Source.PANDA}

# Columns and types of the rows of each function; for `outcomes` they are in `Records`.
USE: dict[str, type[float]] = {
    "node_hours": float,
    "core_hours": float,
    "jobs_mean": float,
    "jobs_peak": int,
    "nodes_mean": float,
    "nodes_peak": float,
}
SPREAD: dict[str, type[float]] = {"n": int, "median": float, "p90": float}


@dataclass(frozen=True)
class Records:
    """Columns of job records, of batch jobs or PanDA jobs."""

    outcomes: dict[str, tuple[str, ...]]  # states of each outcome; empty: all other states
    known_until: Combinable  # end of the job, or the latest time it is known to have run
    nodes: Combinable
    cores: Combinable
    figure: Callable[[str], Combinable]  # column of a metric
    application: Combinable
    node_count: Combinable  # whole nodes; 0: unknown

    @property
    def ended(self) -> dict[str, type[float]]:
        """Columns and types of the rows of `outcomes`."""
        return dict.fromkeys(self.outcomes, int)

    def outcome_of(self, state: str) -> str:
        """Return the outcome of a final state."""
        matches = (outcome for outcome, states in self.outcomes.items() if state in states)
        return next(matches, "other")


_State = Job.State
BATCH_RECORDS = Records(
    outcomes={
        "completed": (_State.COMPLETED,),
        "failed": (_State.FAILED, _State.NODE_FAIL, _State.OUT_OF_MEMORY),
        "timeout": (_State.TIMEOUT,),
        "cancelled": (_State.CANCELLED, _State.PREEMPTED),
        "other": (),
    },
    known_until=KNOWN_UNTIL,
    nodes=nodes(),
    cores=F("core_count"),
    figure=lambda name: F(f"statistics__{name}"),
    application=BATCH_APPLICATION,
    node_count=F("node_count"),
)
PANDA_RECORDS = Records(
    outcomes={
        "finished": ("finished",),
        "failed": ("failed",),
        "cancelled": ("cancelled", "closed"),
        "other": (),
    },
    # A running job is known until the last change of its record.
    known_until=Coalesce("ended_at", Greatest("started_at", "modified_at")),
    nodes=Value(0),  # nodes belong to the batch job, which others share
    cores=F("core_count"),
    figure=FIGURES.__getitem__,
    application=PANDA_APPLICATION,
    node_count=PANDA_NODE_COUNT,
)

RECORDS = {BATCH_JOBS.name: BATCH_RECORDS, PANDA_JOBS.name: PANDA_RECORDS}

# The number of running jobs is constant between starts and ends of jobs. Edges of buckets are added
# as changes by 0, so that no interval lies in two buckets. Changes at the same time are peers of
# the window function: each has the sum of all.
_USE = """
WITH runs (begins, ends, nodes, cores) AS ({runs}),
buckets (edges) AS (SELECT %s::timestamptz[]),
changes (at, jobs, nodes, cores) AS (
    SELECT greatest(begins, edges[1]), 1, nodes, cores FROM runs, buckets
    UNION ALL
    SELECT least(ends, edges[cardinality(edges)]), -1, -nodes, -cores FROM runs, buckets
    UNION ALL
    SELECT unnest(edges), 0, 0, 0 FROM buckets
),
levels AS (
    SELECT at,
        extract(epoch FROM lead(at) OVER times - at)::float8 AS seconds,
        sum(jobs) OVER times AS jobs,
        sum(nodes) OVER times AS nodes,
        sum(cores) OVER times AS cores
    FROM changes
    WINDOW times AS (ORDER BY at)
)
SELECT width_bucket(at, edges) - 1,
    sum(nodes * seconds) / 3600,
    sum(cores * seconds) / 3600,
    sum(jobs * seconds) / sum(seconds),
    max(jobs),
    sum(nodes * seconds) / sum(seconds),
    max(nodes)
FROM levels, buckets
WHERE at < edges[cardinality(edges)]
GROUP BY 1
"""


class _Bucket(Func):
    """The index of the bucket of a time."""

    function = "width_bucket"
    template = "%(function)s(%(expressions)s) - 1"
    output_field = IntegerField()

    def __init__(self, moment: str, buckets: Buckets) -> None:
        edges = Value(list(buckets.edges), ArrayField(DateTimeField()))
        super().__init__(F(moment), edges)


def extent(jobs: Jobs, records: Records) -> tuple[datetime, datetime] | None:
    """Return the earliest start and the latest end of jobs; None without a started job."""
    bounds = jobs.aggregate(first=Min("started_at"), last=Max(records.known_until))
    return (bounds["first"], bounds["last"]) if bounds["first"] else None


def outcomes(jobs: Jobs, records: Records, buckets: Buckets) -> Iterator[Row]:
    """Yield the number of jobs that ended in each bucket, by outcome: `Records.ended`."""
    rows = (
        jobs.filter(ended_at__gte=buckets.start, ended_at__lt=buckets.end)
        .order_by()
        .annotate(bucket=_Bucket("ended_at", buckets))
        .values_list("bucket", "state")
        .annotate(jobs=Count("pk"))
        .order_by("bucket")
    )
    for bucket, counts in groupby(rows, key=lambda row: row[0]):
        ended: dict[str, float | None] = dict.fromkeys(records.outcomes, 0)
        for _, state, count in counts:
            outcome = records.outcome_of(state)
            ended[outcome] = (ended[outcome] or 0) + count
        yield bucket, ended


def completed_per_day(jobs: Jobs, records: Records, start: datetime, end: datetime) -> float:
    """Return the jobs that completed in [start, end) per day."""
    states = next(iter(records.outcomes.values()))
    completed = jobs.filter(state__in=states, ended_at__gte=start, ended_at__lt=end).order_by()
    return completed.count() / ((end - start) / timedelta(days=1))


def use(jobs: Jobs, records: Records, buckets: Buckets) -> Iterator[Row]:
    """Yield the resource use of jobs within each bucket: `USE`."""
    runs = (
        jobs.filter(
            GreaterThan(records.known_until, Value(buckets.start)), started_at__lt=buckets.end
        )
        .order_by()
        .values_list("started_at", records.known_until, records.nodes, records.cores)
    )
    statement, values = runs.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(_USE.format(runs=statement), [*values, list(buckets.edges)])
        rows = cursor.fetchall()
    for bucket, *figures in rows:
        yield bucket, dict(zip(USE, figures, strict=True))


def spread(jobs: Jobs, records: Records, metric: Metric, buckets: Buckets) -> Iterator[Row]:
    """Yield the spread of a metric among jobs that started in each bucket: `SPREAD`."""
    rows = (
        jobs.alias(figure=records.figure(metric.name))
        .filter(started_at__gte=buckets.start, started_at__lt=buckets.end, figure__isnull=False)
        .order_by()
        .annotate(bucket=_Bucket("started_at", buckets))
        .values_list("bucket")
        .annotate(n=Count("pk"), quantiles=Quantiles("figure", (0.5, 0.9)))
    )
    for bucket, n, (median, p90) in rows:
        yield bucket, {"n": n, "median": median, "p90": p90}


def medians(
    jobs: Jobs, records: Records, metrics: Iterable[Metric], buckets: Buckets, fewest: int
) -> Iterator[Row]:
    """Yield the medians of metrics among jobs that started in each bucket, without poor data.

    Metrics known for fewer jobs than `fewest` are absent. One query for all metrics.
    """
    names = [metric.name for metric in metrics]
    figures = {f"{name}_figure": records.figure(name) for name in names}
    aggregates: dict[str, Aggregate] = {}
    for metric in metrics:
        is_known = Q(**{f"{metric.name}_figure__isnull": False}) & ~poor(metric)
        aggregates[f"{metric.name}_n"] = Count("pk", filter=is_known)
        aggregates[f"{metric.name}_median"] = Quantiles(
            f"{metric.name}_figure", (0.5,), filter=is_known
        )
    rows: Any = (
        jobs.filter(started_at__gte=buckets.start, started_at__lt=buckets.end)
        .order_by()
        .annotate(bucket=_Bucket("started_at", buckets), **figures)
        .values("bucket")
        .annotate(**aggregates)
    )
    for row in rows:
        known = [name for name in names if row[f"{name}_n"] >= fewest]
        yield row["bucket"], {name: row[f"{name}_median"][0] for name in known}


def poor(metric: Metric) -> Q:
    """Return the condition that the data of a metric is poor; records are never poor."""
    is_poor = JobStatistics.Quality.POOR
    if metric.source in RECORDED:
        return Q(pk__in=[])
    if metric.source is Source.JOB_STATS:
        return Q(quality=is_poor) | Q(statistics__bytes_quality=is_poor)
    return Q(quality=is_poor)


def unread(start: datetime, end: datetime) -> list[Gap]:
    """Return the intervals of [start, end) without reads of some or all MDT counters.

    The future is no gap.
    """
    end = min(end, timezone.now())
    if start >= end:
        return []
    mdts = {mdt.pk: mdt.poll_gap for mdt in Target.objects.filter(kind=Target.Kind.MDT)}
    width = max([(end - start) / _GAP_BINS, *mdts.values()])
    count = -(-(end - start) // width)
    reads = coverage.read_in_bins(Coverage.Source.JOB_STATS, mdts.keys(), start, width, count)
    edges = [min(end, start + number * width) for number in range(count + 1)]
    return missing_reads(reads, edges)


def upgrades(start: datetime, end: datetime) -> list[tuple[datetime, str]]:
    """Return upgrades of servers in [start, end), merged by kind of server.

    The first known version of a server is not an upgrade.
    """
    versions = ServerVersion.objects.select_related("server__filesystem").order_by(
        "server", "since"
    )
    changes = (
        (before, after)
        for _, server_versions in groupby(versions, key=lambda version: version.server_id)
        for before, after in pairwise(server_versions)
        if after.version != before.version and start <= after.since < end
    )
    return sorted({(after.since, _label(before, after)) for before, after in changes})


def _label(before: ServerVersion, after: ServerVersion) -> str:
    server = after.server
    is_mds = server.kind == server.Kind.MDS
    meaning = (
        " (counts other requests as opens)"
        if is_mds and changes_opens(before.version, after.version)
        else ""
    )
    return f"{server.filesystem}: {server.get_kind_display()} {after.version}{meaning}"
