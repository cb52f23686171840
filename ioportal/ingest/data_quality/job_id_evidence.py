"""The evidence for the job ids in recent data, for the health page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import connection

from ioportal.telemetry.models import Method, Principal

if TYPE_CHECKING:
    from datetime import datetime

RPC_PERIOD: Final = timedelta(hours=1)
COUNTER_PERIOD: Final = timedelta(days=1)

_OF_RPCS = """
SELECT sum(count)::float8,
    sum(count) FILTER (WHERE method = ANY(%(by_node)s))::float8,
    sum(count) FILTER (WHERE method = %(by_uid)s)::float8,
    sum(count) FILTER (WHERE method = ANY(%(unverified)s))::float8,
    sum(count) FILTER (WHERE kind = %(CONTRADICTED)s OR method = %(contradicted_id)s)::float8
FROM telemetry_attributedrpc
WHERE start >= %(since)s AND start < %(now)s AND kind IN (%(JOB)s, %(CONTRADICTED)s)
"""
# A counter of a job either has the owner's uid or the host of an own node, or no evidence.
_OF_COUNTERS = """
SELECT sum(operations)::float8,
    sum(operations) FILTER (WHERE kind = %(JOB)s AND has_host)::float8,
    sum(operations) FILTER (WHERE kind = %(JOB)s AND NOT has_host AND has_uid)::float8,
    sum(operations) FILTER (WHERE kind = %(JOB)s AND NOT has_host AND NOT has_uid)::float8,
    sum(operations) FILTER (WHERE kind = %(CONTRADICTED)s)::float8
FROM (
    SELECT w.kind, w.metadata_operations AS operations,
        EXISTS (
            SELECT FROM jobs_allocation a JOIN site_node n ON n.id = a.node_id
            WHERE a.job_id = w.job_id AND s.host <> ''
                AND n.name IN (s.host, split_part(s.host, '.', 1))
        ) AS has_host,
        s.uid > 0 AND EXISTS (
            SELECT FROM jobs_job j JOIN site_useraccount u ON u.name = j.owner
            WHERE j.id = w.job_id AND u.uid = s.uid
        ) AS has_uid
    FROM telemetry_iotenminutes w JOIN site_sourcejobid s ON s.id = w.source_job_id
    WHERE w.bucket >= %(since)s AND w.bucket < %(now)s AND w.kind IN (%(JOB)s, %(CONTRADICTED)s)
) counted
"""


@dataclass(frozen=True)
class JobIdEvidence:
    """Operations of jobs in recent data, by the evidence for their jobs."""

    source: str
    operations: float
    by_node: float  # operations verified by node
    by_uid: float  # verified by user id
    unverified: float
    contradicted: float


def job_id_evidence(now: datetime) -> list[JobIdEvidence]:
    """Return the evidence in recent traces and counters; sources without operations are omitted."""
    values: dict[str, Any] = {
        **{kind.name: kind.value for kind in (Principal.JOB, Principal.CONTRADICTED)},
        "by_node": [Method.NODE, Method.NODE_PROCESS, Method.JOB_ID_NODE],
        "by_uid": Method.JOB_ID_UID,
        "unverified": [Method.JOB_ID, Method.JOB_ID_ALONE],
        "contradicted_id": Method.CONTRADICTED_ID,
        "now": now,
    }
    evidence = []
    with connection.cursor() as cursor:
        for source, query, period in (
            ("RPC traces, last hour", _OF_RPCS, RPC_PERIOD),
            ("Counters, last 24 hours", _OF_COUNTERS, COUNTER_PERIOD),
        ):
            cursor.execute(query, values | {"since": now - period})
            operations, *parts = cursor.fetchone()
            if operations:
                evidence.append(JobIdEvidence(source, operations, *(part or 0.0 for part in parts)))
    return evidence
