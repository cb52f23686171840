"""Metadata operations of hosts outside jobs, from the export statistics of MDTs.

Exports and job_stats are two views of the same operations: their numbers are never added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection

from ioportal.telemetry.models import IoWindow, Principal

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

MAX_HOSTS = 10

_HOSTS = """
WITH windows AS MATERIALIZED (
    SELECT nid_id, kind, metadata_operations, metadata_us
    FROM telemetry_hostwindow
    WHERE target_id = ANY(%(targets)s) AND "end" > %(start)s AND "end" <= %(end)s
        AND basis <> %(TOTAL)s
),
total AS (SELECT sum(metadata_operations) AS operations FROM windows)
SELECT coalesce(n.name, i.text), sum(w.metadata_operations)::bigint,
    (sum(w.metadata_operations) / min(total.operations))::float8,
    (sum(w.metadata_us)
        / nullif(sum(w.metadata_operations) FILTER (WHERE w.metadata_us IS NOT NULL), 0))::float8
FROM windows w CROSS JOIN total
JOIN site_nid i ON i.id = w.nid_id LEFT JOIN site_node n ON n.id = i.node_id
WHERE w.kind = %(HOST)s
GROUP BY 1 HAVING sum(w.metadata_operations) > 0
ORDER BY 2 DESC, 1 LIMIT %(at_most)s
"""


class Host(NamedTuple):
    """The metadata operations of a host outside jobs."""

    name: str
    operations: int
    share: float  # of the operations of all clients
    mean_us: float | None  # None: the servers do not count times


def top_hosts(targets: Collection[int], start: datetime, end: datetime) -> list[Host]:
    """Return the busiest hosts in the poll intervals that end in (start, end]."""
    values: dict[str, Any] = {
        "targets": list(targets),
        "start": start,
        "end": end,
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "HOST": Principal.HOST.value,
        "at_most": MAX_HOSTS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_HOSTS, values)
        return [Host._make(row) for row in cursor.fetchall()]
