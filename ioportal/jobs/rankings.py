"""Rankings: users, projects, applications, queues, jobs and PanDA tasks by a figure over jobs.

A job counts with its whole figures, nodes and node-hours, also if a range contains only a part of
its run. Ratios are over the jobs for which both figure and divisor are known (docs/metrics.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Max, Min

from collectors.tables import METADATA_OPERATIONS
from ioportal.core.units import Unit
from ioportal.jobs.application_names import application_name_sql
from ioportal.jobs.expressions import node_hours
from ioportal.metrics import BY_NAME, PANDA_METRICS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from django.db.models import QuerySet

MAX_RANKED = 10_000  # subjects
INTERVALS = 24  # of a sparkline


@dataclass(frozen=True)
class Subject:
    """A kind of ranked subjects.

    Args:
        name: used in addresses.
        title: of one.
        plural: of several.
        column: SQL expression of its key, of a job `j` or a link `w` to a PanDA task.
    """

    name: str
    title: str
    plural: str
    column: str


_NAME = application_name_sql("j.name")
# The text of `load.impact.job_groups.Application`; "": unknown.
_APPLICATION = (
    f"CASE WHEN j.owner <> '' AND {_NAME} <> '' THEN j.owner || ':' || {_NAME} ELSE '' END"
)
JOBS = Subject("job", "Job", "Jobs", "j.id::text")
TASKS = Subject("task", "PanDA task", "PanDA tasks", "w.task_id::text")
SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject("user", "User", "Users", "j.owner"),
        Subject("project", "Project", "Projects", "j.project"),
        Subject("application", "Application", "Applications", _APPLICATION),
        Subject("queue", "Queue", "Queues", "j.queue"),
        JOBS,
        TASKS,
    )
}


@dataclass(frozen=True)
class Measure:
    """A figure of jobs, summed over the jobs of a subject; otherwise the highest of a job."""

    name: str
    title: str
    unit: Unit
    column: str  # SQL expression of a job's value
    is_sum: bool = True


def _metric(name: str, *, is_sum: bool = True) -> Measure:
    metric = BY_NAME[name]
    title = metric.title if is_sum else f"{metric.title}, highest of a job"
    return Measure(name, title, metric.unit, f"s.{name}", is_sum)


_TOTALS = (
    "metadata_operations",
    "opens",
    "closes",
    "read_bytes",
    "write_bytes",
    "metadata_rpcs",
    "lock_enqueues",
)
_HIGHEST = ("peak_metadata_rate", "metadata_operations_per_node", "mean_operation_us")
_PANDA_MEANS = {"panda_stage_in_s": "w.stage_in_s", "panda_stage_out_s": "w.stage_out_s"}
MEASURES = {
    measure.name: measure
    for measure in (
        *map(_metric, _TOTALS),
        *(
            Measure(f"count_{kind}", kind, Unit.COUNT, f"s.count_{kind}")
            for kind in METADATA_OPERATIONS
            if kind not in {"open", "close"}
        ),
        Measure("impact_s", "Extra wait of others", Unit.SECONDS_OF_WAITING, "e.impact_s"),
        *(_metric(name, is_sum=False) for name in _HIGHEST),
        *(
            Measure(
                metric.name,
                f"{metric.title}, highest mean of a job",
                metric.unit,
                _PANDA_MEANS[metric.name],
                is_sum=False,
            )
            for metric in PANDA_METRICS
            if metric.name in _PANDA_MEANS
        ),
    )
}
PER = {"": "in total", "node_hour": "per node-hour", "node": "per node", "job": "per job"}
_DIVISORS = {"node_hour": "selected.node_hours", "node": "selected.nodes", "job": "1"}  # of a job


class Choice(NamedTuple):
    """Subject and measures of a ranking."""

    subject: Subject
    measure: Measure
    per: str  # of `PER`
    others: tuple[Measure, ...] = ()  # further columns
    min_node_hours: float = 0

    @property
    def measures(self) -> tuple[Measure, ...]:
        """All measures."""
        return (self.measure, *(other for other in self.others if other != self.measure))


class Ranked(NamedTuple):
    """A subject in its rank."""

    subject: str
    value: float
    jobs: int
    nodes: float | None
    node_hours: float | None
    unknown: int  # jobs of `jobs` whose value is unknown
    figures: tuple[float | None, ...]  # of `Choice.measures`

    @property
    def unknown_share(self) -> float:
        """The share of jobs whose value is unknown."""
        return self.unknown / self.jobs


# A job in several PanDA tasks counts for each in proportion to the task's PanDA jobs in it.
_TASK_PARTS = """
JOIN (
    SELECT w.batch_job_id, w.task_id,
        count(*)::float8 / sum(count(*)) OVER (PARTITION BY w.batch_job_id) AS part,
        avg(w.stage_in_s) AS stage_in_s, avg(w.stage_out_s) AS stage_out_s
    FROM jobs_workloadjob w
    WHERE w.task_id IS NOT NULL AND w.batch_job_id IN (SELECT job_id FROM selected)
    GROUP BY 1, 2
) w ON w.batch_job_id = j.id
"""
_JOB_MEANS = """
LEFT JOIN (
    SELECT batch_job_id, avg(stage_in_s) AS stage_in_s, avg(stage_out_s) AS stage_out_s
    FROM jobs_workloadjob
    WHERE batch_job_id IN (SELECT job_id FROM selected)
    GROUP BY 1
) w ON w.batch_job_id = j.id
"""
_SELECTED = """
WITH selected (job_id, node_hours, nodes, started_at) AS MATERIALIZED ({jobs})
"""
_FROM = """
FROM selected
JOIN jobs_job j ON j.id = selected.job_id
{links}
LEFT JOIN jobs_jobstatistics s ON s.job_id = j.id
LEFT JOIN findings_jobevidence e ON e.job_id = j.id
"""
_RANKED = (
    """
SELECT subject, value, jobs, nodes, node_hours, unknown, {names}
FROM (
    SELECT {subject} AS subject, {value} AS value, count(*) AS jobs,
        sum(selected.nodes * {part})::float8 AS nodes,
        sum(selected.node_hours * {part})::float8 AS node_hours,
        sum(selected.node_hours * {part}) FILTER (WHERE {is_known})::float8 AS known_node_hours,
        count(*) - count(*) FILTER (WHERE {is_known}) AS unknown, {figures}
"""
    + _FROM
    + """
    GROUP BY 1
) totals
WHERE value IS NOT NULL AND coalesce(known_node_hours, 0) >= %(min_node_hours)s
ORDER BY 2 DESC, 1 LIMIT %(limit)s
"""
)
_OVER_TIME = (
    """
SELECT {subject}, least(width_bucket(
    extract(epoch FROM selected.started_at), %(first)s, %(last)s, %(intervals)s
), %(intervals)s) - 1, {value}
"""
    + _FROM
    + """
WHERE {subject} = ANY(%(subjects)s) AND selected.started_at IS NOT NULL
GROUP BY 1, 2
"""
)


def ranking(jobs: QuerySet[Any], choice: Choice) -> list[Ranked]:
    """Return the subjects of some visible jobs, highest value first: at most `MAX_RANKED`."""
    figures = [_figure(measure, choice.subject) for measure in choice.measures]
    names = [f"figure_{n}" for n in range(len(figures))]
    query = (
        _with_value(_RANKED, choice)
        .replace("{names}", ", ".join(names))
        .replace("{figures}", ", ".join(map("{} AS {}".format, figures, names)))
    )
    values = {"min_node_hours": choice.min_node_hours, "limit": MAX_RANKED}
    selected = jobs.values_list("pk", node_hours(), "node_count", "started_at")
    rows = _rows(query, selected, choice, values)
    return [Ranked._make((*row[:6], tuple(row[6:]))) for row in rows]


def over_time(
    jobs: QuerySet[Any], choice: Choice, subjects: Collection[str]
) -> dict[str, list[float | None]]:
    """Return the value of some subjects in `INTERVALS` equal intervals of the jobs' starts.

    A sum is 0 without jobs. None: the values of all jobs are unknown, or a ratio or maximum is over
    no jobs.
    """
    empty = 0.0 if choice.measure.is_sum and not choice.per else None
    series = {subject: [empty] * INTERVALS for subject in subjects}
    period = jobs.aggregate(first=Min("started_at"), last=Max("started_at"))
    if period["first"] is None:
        return series
    first, last = (period[name].timestamp() for name in ("first", "last"))
    values = {
        "first": first,
        "last": max(last, first + 1),
        "intervals": INTERVALS,
        "subjects": list(subjects),
    }
    selected = jobs.values_list("pk", node_hours(), "node_count", "started_at")
    query = _with_value(_OVER_TIME, choice)
    for subject, interval, value in _rows(query, selected, choice, values):
        series[subject][interval] = value
    return series


def _with_value(query: str, choice: Choice) -> str:
    """Insert the ranked value of a group of jobs, and the condition that a job has one."""
    value, figure = _figure(choice.measure, choice.subject), choice.measure.column
    is_known = f"{figure} IS NOT NULL"
    if choice.per:
        divisor = _DIVISORS[choice.per]
        is_known = f"{is_known} AND {divisor} > 0"  # unknown nodes are stored as 0
        part = _part(choice.subject)
        value = (
            f"sum({figure} * {part}) FILTER (WHERE {is_known})::float8"
            f" / sum({divisor} * {part}) FILTER (WHERE {is_known})::float8"
        )
    return query.replace("{value}", value).replace("{is_known}", is_known)


def _figure(measure: Measure, subject: Subject) -> str:
    if not measure.is_sum:
        return f"max({measure.column})::float8"
    return f"sum({measure.column} * {_part(subject)})::float8"


def _part(subject: Subject) -> str:
    return "w.part" if subject is TASKS else "1"


def _links(choice: Choice) -> str:
    """Return the join of a job with its PanDA jobs, where the ranking needs it."""
    if choice.subject is TASKS:
        return _TASK_PARTS
    is_panda = any(measure.name in _PANDA_MEANS for measure in choice.measures)
    return _JOB_MEANS if is_panda else ""


def _rows(
    query: str, selected: QuerySet[Any], choice: Choice, values: dict[str, Any]
) -> Sequence[tuple[Any, ...]]:
    """Return the rows of a query over selected jobs: key, node-hours, nodes and start of each."""
    try:
        statement, given = selected.order_by().query.sql_with_params()
    except EmptyResultSet:
        return []
    names = {f"selected_{n}": value for n, value in enumerate(given)}
    text = (_SELECTED + query).format(
        jobs=statement % tuple(f"%({name})s" for name in names),
        subject=choice.subject.column,
        links=_links(choice),
        part=_part(choice.subject),
    )
    with connection.cursor() as cursor:
        cursor.execute(text, {**names, **values})
        rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
        return rows
