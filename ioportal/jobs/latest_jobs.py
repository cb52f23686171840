"""The latest of many jobs: counts and pages of the job list cover these.

Older jobs are reached with narrower filters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.core.exceptions import EmptyResultSet
from django.db import connection

from ioportal.jobs.expressions import EachOf
from ioportal.jobs.models import Job

if TYPE_CHECKING:
    from ioportal.jobs.models import JobQuerySet

MAX_JOBS = 10_000
_FIELDS = ("pk", "state", "quality", "queue", "owner")
_ALL = 0b1111
_COUNTED = {0b0111: "state", 0b1011: "quality", 0b1101: "queue", 0b1110: "user"}

# grouping() has a bit for each column that a row does not group by.
_LATEST = """
WITH latest (id, state, quality, queue, owner) AS MATERIALIZED ({jobs})
SELECT grouping(state, quality, queue, owner), coalesce(state, quality, queue, owner), count(*),
    NULL
FROM latest
GROUP BY GROUPING SETS ((state), (quality), (queue), (owner))
UNION ALL
SELECT %s, NULL, count(*), array_agg(id) FROM latest
"""


@dataclass(frozen=True)
class LatestJobs:
    """The latest jobs, at most `MAX_JOBS`."""

    keys: list[int] = field(default_factory=list)  # latest first
    has_more: bool = False
    # Number of jobs by value of a column, most frequent first; None: unknown.
    counts: dict[str, list[tuple[str | None, int]]] = field(default_factory=dict)

    @property
    def jobs(self) -> JobQuerySet:
        """The jobs."""
        return Job.objects.filter(pk__in=EachOf(self.keys))


def latest_jobs(jobs: JobQuerySet) -> LatestJobs:
    """Read and count the latest jobs in one statement, so that filters are evaluated once."""
    rows = jobs.order_by("-started_at", "-pk").values_list(*_FIELDS)[: MAX_JOBS + 1]
    try:
        statement, values = rows.query.sql_with_params()
    except EmptyResultSet:
        return LatestJobs()
    counts: dict[str, list[tuple[str | None, int]]] = {name: [] for name in _COUNTED.values()}
    keys: list[int] = []
    with connection.cursor() as cursor:
        cursor.execute(_LATEST.format(jobs=statement), [*values, _ALL])
        for grouped, value, count, ids in cursor.fetchall():
            if grouped == _ALL:
                keys = ids or []
            else:
                counts[_COUNTED[grouped]].append((value, count))
    for value_counts in counts.values():
        value_counts.sort(key=lambda row: (-row[1], row[0] or ""))
    return LatestJobs(keys[:MAX_JOBS], len(keys) > MAX_JOBS, counts)
