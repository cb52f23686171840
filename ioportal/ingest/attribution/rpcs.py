"""Attribution of RPC windows: by their job id, otherwise by the allocation of their node.

`rpc_claims` decides who sent them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection
from django.utils import timezone
from psycopg import sql

from collectors.tables import UTC_US
from ioportal.ingest.attribution.rpc_claims import ACCOUNTED, CONSTANTS, KINDS, prepared
from ioportal.telemetry.copy import read_frame

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

# The rows that a server's or some jobs' attribution replaces: exactly the deleted rows are inserted
# again. A window whose job id is a job's (`named`) is found by that id, others by their node.
_OF_SERVER = "w.server_id = %(server)s"
_OF_WINDOWS = f"{_OF_SERVER} AND w.start = ANY(%(windows)s)"
# ("<> 0", here and below, selects the partial indexes, which contain no zeros.)
_OF_JOBS = """(
    w.nid_id = ANY(%(nids)s)
    OR w.source_job_id <> 0 AND w.source_job_id = ANY(%(source_job_ids)s)
)"""

_ATTRIBUTE = f"""{KINDS}
INSERT INTO telemetry_attributedrpc (
    start, segment_id, server_id, service_id, opcode, kind, job_id, source_job_id, nid_id, method,
    count, timed, service_us_sum, service_us_min, service_us_max,
    queue_us_min, queue_us_max, total_us_sum
)
SELECT start, segment_id, server_id, service_id, opcode, kind,
    CASE WHEN kind = %(JOB)s THEN matched_job_id ELSE 0 END AS principal_job,
    -- A contradicted claim keeps its job id and its NID, for whoever looks for its sender.
    CASE
        WHEN kind = %(JOB)s AND NOT contradicted OR kind = %(HOST)s THEN 0
        WHEN kind = %(PROCESS)s THEN process_name_id
        ELSE source_job_id
    END AS principal_source_job,
    CASE WHEN (named OR kind = %(JOB)s) AND NOT contradicted THEN 0 ELSE nid_id END
        AS principal_nid,
    CASE
        WHEN kind <> %(JOB)s THEN %(BY_NONE)s
        WHEN claim > 0 AND by_id_alone THEN %(JOB_ID_ALONE)s
        WHEN claim > 0 THEN (%(METHODS)s::smallint[])[claim]
        WHEN contradicted THEN %(CONTRADICTED_ID)s
        WHEN source_job_id <> 0 THEN %(BY_NODE_PROCESS)s
        ELSE %(BY_NODE)s
    END AS attributed_by,
    sum(count), sum(timed), sum(service_us_sum),
    coalesce(min(service_us_min) FILTER (WHERE timed > 0), 0), max(service_us_max),
    coalesce(min(queue_us_min) FILTER (WHERE timed > 0), 0), max(queue_us_max),
    sum(total_us_sum)
FROM attributed
WHERE %(jobs)s::bigint[] IS NULL
    OR CASE
        WHEN named THEN source_job_id = ANY(%(source_job_ids)s::integer[])
        ELSE kind <> %(JOB)s OR matched_job_id = ANY(%(jobs)s)
    END
GROUP BY start, segment_id, server_id, service_id, opcode, kind,
    principal_job, principal_source_job, principal_nid, attributed_by
"""

# The principals of each sender, which is a job id or, without one, a NID.
_SENDERS = f"""{KINDS}
SELECT start, service_id, opcode, source_job_id,
    CASE WHEN source_job_id = 0 THEN nid_id ELSE 0 END,
    CASE
        WHEN kind = %(CONTRADICTED)s THEN %(HOST)s
        WHEN kind = %(JOB)s AND claim > 0 AND by_id_alone THEN %(CLAIMED)s
        ELSE kind
    END AS principal_kind,
    CASE
        WHEN kind = %(JOB)s THEN matched_job_id
        WHEN kind = %(PROCESS)s THEN process
        WHEN kind IN (%(HOST)s, %(CONTRADICTED)s) THEN nid_id
        ELSE 0
    END,
    sum(timed)::bigint, count(DISTINCT nid_id)
FROM attributed
WHERE timed > 0
GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
SENDERS = {
    "start": UTC_US,
    **dict.fromkeys(
        ("service_id", "opcode", "source_job_id", "nid_id", "kind", "principal_id"), pl.Int64()
    ),
    **dict.fromkeys(("timed", "nids"), pl.Int64()),
}

_CLEAR_SERVER = """
DELETE FROM telemetry_attributedrpc
WHERE server_id = %(server)s AND start >= %(start)s AND start < %(end)s
"""

_CLEAR_JOBS = """
DELETE FROM telemetry_attributedrpc
WHERE start >= %(start)s AND start < %(end)s AND (
    job_id <> 0 AND job_id = ANY(%(jobs)s) AND method IN (%(BY_NODE)s, %(BY_NODE_PROCESS)s)
    OR job_id <> 0 AND job_id = ANY(%(namesakes)s) AND method = ANY(%(BY_JOB_ID)s)
    OR nid_id <> 0 AND nid_id = ANY(%(nids)s)
    OR source_job_id <> 0 AND source_job_id = ANY(%(source_job_ids)s)
        AND kind <> %(PROCESS)s
)
"""


def attribute_server(server_id: int, start: datetime, end: datetime) -> None:
    """Derive all attributed rows of a server in [start, end), both window boundaries."""
    values = {"server": server_id, "start": start, "end": end}
    values |= {"jobs": None, "source_job_ids": None}
    _attribute(_CLEAR_SERVER, _OF_SERVER, values)


def attribute_jobs(
    *,
    job_ids: set[int],
    nids: set[int],
    namesakes: set[int],
    source_job_ids: set[int],
    start: datetime,
    end: datetime,
) -> None:
    """Derive the rows attributed by nodes and by job ids in [start, end).

    Args:
        job_ids: jobs to attribute by their nodes.
        nids: the NIDs of all their nodes, current and former. Rows of a job fold its nodes, so all
            are needed.
        namesakes: jobs to attribute by source job ids.
        source_job_ids: all ids that claim one of the namesakes, and all ids in the windows of
            `nids`.
        start: a window boundary.
        end: a window boundary.
    """
    values = {
        "jobs": sorted(job_ids),
        "nids": sorted(nids),
        "namesakes": sorted(namesakes),
        "source_job_ids": sorted(source_job_ids),
        "start": start,
        "end": end,
    }
    _attribute(_CLEAR_JOBS, _OF_JOBS, values)


# Clusters with whose records attribution may change.
_AWAIT = f"""
INSERT INTO ingest_awaitedrecords (server_id, cluster_id, start, "end", noted_at)
SELECT s.id, cluster_id, %(start)s, %(end)s, %(now)s
FROM site_server s
JOIN site_filesystem_clusters USING (filesystem_id)
JOIN ({ACCOUNTED}) a USING (cluster_id)
WHERE s.id = %(server)s AND (accounted >= %(end)s + %(record_delay)s) IS NOT true AND EXISTS (
    SELECT FROM telemetry_attributedrpc w
    WHERE w.server_id = %(server)s AND w.start >= %(start)s AND w.start < %(end)s
        AND (w.kind = %(PENDING)s OR w.method = %(JOB_ID_ALONE)s AND NOT EXISTS (
            SELECT FROM jobs_allocation n WHERE n.job_id = w.job_id
        ))
)
"""
_REQUEST_AWAITED = f"""
WITH done AS (
    DELETE FROM ingest_awaitedrecords w USING ({ACCOUNTED}) a
    WHERE a.cluster_id = w.cluster_id AND (
        accounted >= w."end" + %(record_delay)s OR noted_at < %(now)s - %(longest_wait)s
    )
    RETURNING server_id, start, "end", accounted >= w."end" + %(record_delay)s AS is_accounted
)
INSERT INTO ingest_dirtytrace (server_id, start, "end", has_rows)
SELECT DISTINCT server_id, start, "end" - interval '1 microsecond', true
FROM done WHERE is_accounted
"""
_LONGEST_WAIT = timedelta(days=3)  # clusters may have no jobs any more


def await_records(server_id: int, start: datetime, end: datetime) -> None:
    """Note [start, end) of a server if its RPCs await job records, for `request_awaited`."""
    _execute_awaiting(_AWAIT, {"server": server_id, "start": start, "end": end})


def request_awaited() -> None:
    """Request the attribution of intervals whose job records should have arrived.

    Where jobs are known that started later than the usual delay of a record, accounting works, and
    the missing records are unlikely to come.
    """
    _execute_awaiting(_REQUEST_AWAITED, {})


def _execute_awaiting(query: str, values: dict[str, Any]) -> None:
    values = {**CONSTANTS, **values, "now": timezone.now(), "longest_wait": _LONGEST_WAIT}
    with connection.cursor() as cursor:
        cursor.execute(query, values)


def senders(server_id: int, windows: Sequence[datetime]) -> pl.DataFrame:
    """Return the principals of a server's senders in some windows: columns of `SENDERS`."""
    values = {"server": server_id, "windows": windows, "start": min(windows)}
    values |= {"end": max(windows) + timedelta(microseconds=1)}
    with prepared(_OF_WINDOWS, values) as parameters:
        query = sql.SQL(_SENDERS.format(rows=_OF_WINDOWS))
        return read_frame(query, SENDERS, parameters)


def _attribute(clear: str, rows: str, values: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(clear, CONSTANTS | values)
        with prepared(rows, values) as parameters:
            cursor.execute(_ATTRIBUTE.format(rows=rows), parameters)
