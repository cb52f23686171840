"""The loads of past jobs of a kind on a metadata server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection
from psycopg import sql

from collectors.tables import UTC_US
from ioportal.jobs.application_names import application_name_sql
from ioportal.jobs.models import JobStatistics
from ioportal.load.analysis.impact import US_PER_S
from ioportal.load.capacity import PERIOD, Method, local_day, union, usual_parameters
from ioportal.site.models import Target
from ioportal.telemetry import buckets, levels, piecewise
from ioportal.telemetry.models import IoWindow, Principal

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.load.capacity import ServerCapacity
    from ioportal.site.models import Server

MAX_JOBS = 1_000  # the latest of a kind
_OPERATIONS = """
SELECT coalesce(sum(metadata_operations), 0)::float8 FROM telemetry_iototal
WHERE target_id = ANY(%(targets)s) AND start >= %(start)s AND start < %(end)s AND basis <> %(TOTAL)s
"""
_JOBS = sql.SQL("""
SELECT j.id, j.started_at, j.ended_at, greatest(j.node_count, 1), s.metadata_rate,
    s.metadata_rpcs / nullif(s.metadata_rpc_rate, 0)
FROM jobs_job j JOIN jobs_jobstatistics s ON s.job_id = j.id
WHERE j.owner = %(user)s AND (%(application)s = '' OR {application} = %(application)s)
    AND j.cluster_id = ANY(%(clusters)s) AND j.started_at >= %(start)s AND j.started_at < %(end)s
    AND s.quality <> %(POOR)s
ORDER BY j.started_at DESC, j.id DESC LIMIT %(at_most)s
""").format(application=sql.SQL(application_name_sql("j.name")))
_JOB_COLUMNS = {
    "job": pl.Int64(),
    "started_at": UTC_US,
    "ended_at": UTC_US,
    "nodes": pl.Int64(),
    "operations_per_s": pl.Float64(),  # null: unknown
    "traced_s": pl.Float64(),  # of its run; null: not traced
}
_JOB_ROWS = sql.SQL("""
SELECT job_id, service_id, opcode, count, timed, service_us_sum FROM {table}
WHERE server_id = %(server)s AND kind = %(JOB)s AND job_id = ANY(%(jobs)s)
    AND start >= {start} AND start < {end}
""")
_JOB_WORK = sql.SQL("""
SELECT job_id,
    sum(coalesce(count * baseline_us, count * service_us_sum / nullif(timed, 0), 0))::float8
FROM ({rows}) k
LEFT JOIN unnest(%(services)s::integer[], %(opcodes)s::smallint[], %(baselines)s::float8[])
    AS b (service_id, opcode, baseline_us) USING (service_id, opcode)
GROUP BY 1
""")
LOADS = {  # of past jobs on a server
    "job": pl.Int64(),
    "day": pl.Int64(),  # of its start
    "nodes": pl.Int64(),
    "load": pl.Float64(),  # mean while it ran: seconds of usual time per second
}


def of_kind(
    server: Server, found: ServerCapacity, user: str, application: str
) -> pl.DataFrame | None:
    """Return the loads of the latest jobs of a kind on a server: columns of `LOADS`.

    With traces, the load is the usual time of a job's RPCs on the server per traced second. With
    statistics, it is the job's operations per second x the usual time of the server's requests per
    metadata operation. None: that ratio is unknown, because no operations were counted.

    Args:
        server: a metadata server.
        found: its capacity: method and range.
        user: owner of the jobs.
        application: application name; "": all jobs of the user.
    """
    jobs = _jobs(server, found, user, application)
    if found.method is Method.TRACES:
        work = _job_work(server.pk, found.end, jobs)
        loads = jobs.join(work, on="job").with_columns(load=pl.col("work_s") / pl.col("traced_s"))
    else:
        ratio = _work_per_operation(server, found)
        if ratio is None:
            return None
        loads = jobs.with_columns(load=pl.col("operations_per_s") * ratio)
    return loads.drop_nulls("load").select(
        "job", local_day("started_at").alias("day"), "nodes", pl.col("load")
    )


def _jobs(server: Server, found: ServerCapacity, user: str, application: str) -> pl.DataFrame:
    values: dict[str, Any] = {
        "user": user,
        "application": application,
        "clusters": list(server.filesystem.clusters.values_list("pk", flat=True)),
        "start": found.end - PERIOD,
        "end": found.end,
        "POOR": JobStatistics.Quality.POOR.value,
        "at_most": MAX_JOBS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_JOBS, values)
        return pl.DataFrame(cursor.fetchall(), schema=_JOB_COLUMNS, orient="row")


def _job_work(server_id: int, end: datetime, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the usual time of the RPCs of traced jobs on a server, in seconds."""
    columns = {"job": pl.Int64(), "work_us": pl.Float64()}
    traced = jobs.drop_nulls("traced_s")
    if traced.is_empty():
        return pl.DataFrame(schema={"job": pl.Int64(), "work_s": pl.Float64()})
    width = levels.ATTRIBUTED_RPCS.width
    started = traced["started_at"].to_list()
    ended = [at or end for at in traced["ended_at"].to_list()]
    pieces = piecewise.coarsest_pieces(
        levels.RPC_LEVELS, buckets.floor(min(started), width), buckets.ceil(max(ended), width)
    )
    values: dict[str, Any] = {
        **usual_parameters(server_id, end),
        "server": server_id,
        "JOB": Principal.JOB.value,
        "jobs": traced["job"].to_list(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_JOB_WORK.format(rows=union(_JOB_ROWS, pieces)), values)
        work = pl.DataFrame(cursor.fetchall(), schema=columns, orient="row")
    return work.select("job", work_s=pl.col("work_us") / US_PER_S)


def _work_per_operation(server: Server, found: ServerCapacity) -> float | None:
    """Return the usual time of the server's requests / metadata operations on its MDTs, seconds."""
    targets = Target.objects.mdts_of(server).values_list("pk", flat=True)
    values: dict[str, Any] = {
        "targets": list(targets),
        "start": found.start,
        "end": found.end,
        "TOTAL": IoWindow.Basis.TOTAL.value,
    }
    with connection.cursor() as cursor:
        cursor.execute(_OPERATIONS, values)
        (operations,) = cursor.fetchone()
    return found.work_s / operations if operations else None
