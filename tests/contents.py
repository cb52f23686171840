"""Contents of the database without ids, to compare loads."""

from functools import cache

from django.core.management import call_command
from django.db import connection
from psycopg import sql

_JOB = (
    "(SELECT concat_ws('/', c.name, j.batch_id, j.array_index, j.submitted_at) FROM jobs_job j "
    "JOIN site_cluster c ON c.id = j.cluster_id WHERE j.id = t.job_id)"
)
_BATCH_JOB = _JOB.replace("t.job_id", "t.batch_job_id")
_SEGMENT = "(SELECT g.digest FROM ingest_segment g WHERE g.id = t.segment_id)"
_SOURCE_JOB = (
    "(SELECT concat_ws('/', f.name, s.text) FROM site_sourcejobid s "
    "JOIN site_filesystem f ON f.id = s.filesystem_id WHERE s.id = t.source_job_id)"
)
_NODE = (
    "(SELECT concat_ws('/', c.name, n.name) FROM site_node n "
    "JOIN site_cluster c ON c.id = n.cluster_id WHERE n.id = t.node_id)"
)
# Columns with ids, and a name for each id.
_MEANING = {
    "job_id": _JOB,
    "batch_job_id": _BATCH_JOB,
    "segment_id": _SEGMENT,
    "source_job_id": _SOURCE_JOB,
    "node_id": _NODE,
    "nid_id": "(SELECT i.text FROM site_nid i WHERE i.id = t.nid_id)",
    "service_id": "(SELECT s.name FROM site_service s WHERE s.id = t.service_id)",
    "counter_id": "(SELECT c.name FROM site_counter c WHERE c.id = t.counter_id)",
    "server_id": "(SELECT s.name FROM site_server s WHERE s.id = t.server_id)",
    "target_id": "(SELECT s.name FROM site_target s WHERE s.id = t.target_id)",
    "filesystem_id": "(SELECT f.name FROM site_filesystem f WHERE f.id = t.filesystem_id)",
    "cluster_id": "(SELECT c.name FROM site_cluster c WHERE c.id = t.cluster_id)",
    "workload_job_id": "(SELECT w.panda_id FROM jobs_workloadjob w WHERE w.id = t.workload_job_id)",
    "workloadjob_id": "(SELECT w.panda_id FROM jobs_workloadjob w WHERE w.id = t.workloadjob_id)",
}
_OWN_ID = {"id", "precedence", "source_id"}  # by way of loading: agent or file
_CLOCK = {"loaded_at", "computed_at", "changed_at"}  # time of loading
RAW = (
    "telemetry_rpcwindow", "telemetry_jobsnapshot", "telemetry_targetsnapshot",
    "telemetry_servicesnapshot", "telemetry_requestwindow", "telemetry_rpcsecond",
    "telemetry_jobdelta", "telemetry_targetdelta",
)  # fmt: skip
DERIVED = (
    "telemetry_attributedrpc", "telemetry_iowindow", "telemetry_attributedsecond",
    "jobs_jobstatistics",
)  # fmt: skip
FACTS = (
    "jobs_job", "jobs_allocation", "jobs_launch", "jobs_workloadjob", "jobs_workloadjob_jobs",
    "site_nid", "ingest_segment", "ingest_batch", "ingest_reject", "ingest_accountingrecord",
    "telemetry_coverage",
)  # fmt: skip


def rows(*tables):
    """Return the rows of some tables as sorted lists of strings, with names in place of ids."""
    return {table: _rows(table) for table in tables}


def everything():
    """Return the rows of every table that log files fill."""
    return rows(*RAW, *DERIVED, *FACTS)


def forget():
    """Empty the tables with loaded data, but keep the registration."""
    loaded = [*RAW, *DERIVED, *(table for table in FACTS if table != "site_nid")]
    with connection.cursor() as cursor:
        for table in loaded:
            cursor.execute(sql.SQL("TRUNCATE {} CASCADE").format(sql.Identifier(table)))


def remove():
    """Remove all rows."""
    call_command("flush", interactive=False, verbosity=0, reset_sequences=False)
    empty_hypertables()


def empty_hypertables():
    """Empty the hypertables, which Django does not manage."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT hypertable_name FROM timescaledb_information.hypertables")
        for (table,) in cursor.fetchall():  # one by one: each chunk takes locks
            cursor.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(table)))


@cache
def _columns(table):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s ORDER BY 1",
            [table],
        )
        return [name for (name,) in cursor.fetchall() if name not in _OWN_ID | _CLOCK]


def _rows(table):
    names = _columns(table)
    with connection.cursor() as cursor:
        columns = [
            sql.SQL(_MEANING[name]) if name in _MEANING else sql.Identifier(name) for name in names
        ]
        cursor.execute(
            sql.SQL("SELECT {} FROM {} t").format(
                sql.SQL(", ").join(columns), sql.Identifier(table)
            )
        )
        return sorted(
            " ".join(f"{name}={value}" for name, value in zip(names, row, strict=True))
            for row in cursor.fetchall()
        )
