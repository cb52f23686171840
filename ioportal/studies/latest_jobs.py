"""The newest of the jobs that somebody asks for: all that is counted, and paged to, at once.

Of a million jobs nobody reads more than the first; narrower filters reach the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.core.exceptions import EmptyResultSet
from django.db import connection

from ioportal.jobs.keys import EachOf
from ioportal.jobs.models import Job

if TYPE_CHECKING:
    from ioportal.jobs.models import JobQuerySet

MOST = 10_000
_FIELDS = ("pk", "state", "quality", "queue", "owner")
_ALL = 0b1111
_FACTS = {0b0111: "state", 0b1011: "quality", 0b1101: "queue", 0b1110: "user"}

# The bits of grouping() are those of the facts that a row does not count by.
_NEWEST = """
WITH newest (id, state, quality, queue, owner) AS MATERIALIZED ({jobs})
SELECT grouping(state, quality, queue, owner), coalesce(state, quality, queue, owner), count(*),
    NULL
FROM newest
GROUP BY GROUPING SETS ((state), (quality), (queue), (owner))
UNION ALL
SELECT %s, NULL, count(*), array_agg(id) FROM newest
"""


@dataclass(frozen=True)
class Newest:
    """The newest jobs, at most `MOST`."""

    keys: list[int] = field(default_factory=list)  # newest first
    there_are_more: bool = False
    # How many of them have each value of a fact, most frequent first; None: not known.
    counts: dict[str, list[tuple[str | None, int]]] = field(default_factory=dict)

    @property
    def jobs(self) -> JobQuerySet:
        """The jobs."""
        return Job.objects.filter(pk__in=EachOf(self.keys))


def newest_of(jobs: JobQuerySet) -> Newest:
    """Find them and count them in one statement: whatever the filters cost, they cost it once."""
    asked = jobs.order_by("-started_at", "-pk").values_list(*_FIELDS)[: MOST + 1]
    try:
        statement, values = asked.query.sql_with_params()
    except EmptyResultSet:
        return Newest()
    counts: dict[str, list[tuple[str | None, int]]] = {fact: [] for fact in _FACTS.values()}
    keys: list[int] = []
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST.format(jobs=statement), [*values, _ALL])
        for grouped, value, count, found in cursor.fetchall():
            if grouped == _ALL:
                keys = found or []
            else:
                counts[_FACTS[grouped]].append((value, count))
    for values_of_fact in counts.values():
        values_of_fact.sort(key=lambda row: (-row[1], row[0] or ""))
    return Newest(keys[:MOST], len(keys) > MOST, counts)
