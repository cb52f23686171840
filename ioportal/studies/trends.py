"""Figures of jobs over time, a row per bucket: everything is added up by the database."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import Count, DateTimeField, F, Func, IntegerField, Max, Min, Value
from django.db.models.functions import Coalesce, Greatest
from django.db.models.lookups import GreaterThan

from ioportal.jobs.models import Job
from ioportal.jobs.runs import KNOWN_UNTIL, NODES
from ioportal.jobs.workloads import FIGURES
from ioportal.site.models import ServerVersion
from ioportal.studies.quantiles import Quantiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from django.db.models.expressions import Combinable

    from ioportal.analysis.metrics import Metric
    from ioportal.analysis.trends import Buckets
    from ioportal.jobs.models import JobQuerySet, WorkloadJobQuerySet

    Jobs = JobQuerySet | WorkloadJobQuerySet
    Row = tuple[int, dict[str, float | None]]  # a bucket's number and values

# What the rows of each question have, and as what numbers; `Records` say what outcomes there are.
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
    """Where the records of what is counted, batch jobs or PanDA jobs, say what trends show."""

    outcomes: dict[str, tuple[str, ...]]  # by the states that mean them; of no state: all others
    known_until: Combinable  # the end, or up to when a run is known
    nodes: Combinable
    cores: Combinable
    figure: Callable[[str], Combinable]  # of a metric

    @property
    def ended(self) -> dict[str, type[float]]:
        """What the rows of `outcomes` have."""
        return dict.fromkeys(self.outcomes, int)

    def outcome_of(self, state: str) -> str:
        """Return what a state in the record of what has ended means."""
        found = (outcome for outcome, states in self.outcomes.items() if state in states)
        return next(found, "other")


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
    nodes=NODES,
    cores=F("core_count"),
    figure=lambda name: F(f"statistics__{name}"),
)
PANDA_RECORDS = Records(
    outcomes={
        "finished": ("finished",),
        "failed": ("failed",),
        "cancelled": ("cancelled", "closed"),
        "other": (),
    },
    # While it runs, up to when its record was last changed.
    known_until=Coalesce("ended_at", Greatest("started_at", "modified_at")),
    nodes=Value(0),  # they are those of the batch job, which holds others besides
    cores=F("core_count"),
    figure=FIGURES.__getitem__,
)

# How many jobs run changes where one begins or ends; in between it is constant. Edges of buckets
# are changes by nothing, so that no such interval lies in two buckets. Changes of one moment are
# peers of the window: each of them has the sum of all.
_USE = """
WITH runs (begins, ends, nodes, cores) AS ({runs}),
asked (edges) AS (SELECT %s::timestamptz[]),
changes (at, jobs, nodes, cores) AS (
    SELECT greatest(begins, edges[1]), 1, nodes, cores FROM runs, asked
    UNION ALL
    SELECT least(ends, edges[cardinality(edges)]), -1, -nodes, -cores FROM runs, asked
    UNION ALL
    SELECT unnest(edges), 0, 0, 0 FROM asked
),
levels AS (
    SELECT at,
        extract(epoch FROM lead(at) OVER moments - at)::float8 AS seconds,
        sum(jobs) OVER moments AS jobs,
        sum(nodes) OVER moments AS nodes,
        sum(cores) OVER moments AS cores
    FROM changes
    WINDOW moments AS (ORDER BY at)
)
SELECT width_bucket(at, edges) - 1,
    sum(nodes * seconds) / 3600,
    sum(cores * seconds) / 3600,
    sum(jobs * seconds) / sum(seconds),
    max(jobs),
    sum(nodes * seconds) / sum(seconds),
    max(nodes)
FROM levels, asked
WHERE at < edges[cardinality(edges)]
GROUP BY 1
"""


class _Bucket(Func):
    """The number of the bucket that a moment is in, from 0."""

    function = "width_bucket"
    template = "%(function)s(%(expressions)s) - 1"
    output_field = IntegerField()

    def __init__(self, moment: str, buckets: Buckets) -> None:
        edges = Value(list(buckets.edges), ArrayField(DateTimeField()))
        super().__init__(F(moment), edges)


def extent(jobs: Jobs, records: Records) -> tuple[datetime, datetime] | None:
    """Return when the first of some jobs began and the last of them ended; None: none ran."""
    found = jobs.aggregate(first=Min("started_at"), last=Max(records.known_until))
    return (found["first"], found["last"]) if found["first"] else None


def outcomes(jobs: Jobs, records: Records, buckets: Buckets) -> Iterator[Row]:
    """Yield how many jobs ended in each bucket, and how: `Records.ended`."""
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


def use(jobs: Jobs, records: Records, buckets: Buckets) -> Iterator[Row]:
    """Yield what jobs used in each bucket, their parts inside it only: `USE`."""
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
    """Yield how a metric is spread among the jobs that began in each bucket: `SPREAD`."""
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


def upgrades(start: datetime, end: datetime) -> list[tuple[datetime, str]]:
    """Return when servers went on with another version in [start, end), those of one kind together.

    The version that a server is known with first is no upgrade.
    """
    versions = ServerVersion.objects.select_related("server__filesystem").order_by(
        "server", "since"
    )
    changes = (
        after
        for _, of_server in groupby(versions, key=lambda version: version.server_id)
        for before, after in pairwise(of_server)
        if after.version != before.version and start <= after.since < end
    )
    return sorted({(change.since, _words(change)) for change in changes})


def _words(change: ServerVersion) -> str:
    server = change.server
    return f"{server.filesystem}: {server.get_kind_display()} {change.version}"
