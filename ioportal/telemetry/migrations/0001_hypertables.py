"""The hypertables: Timescale's own DDL. Django's models read these tables and never alter them.

Columns are ordered by size, so that rows carry no padding.
"""

from django.contrib.postgres.operations import BtreeGistExtension, TrigramExtension
from django.db import migrations

COUNTERS = ", ".join(
    f'"{name}" bigint'
    for name in (
        "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr",
        "setattr", "getxattr", "setxattr", "statfs", "sync", "migrate", "fallocate", "readpage",
        "read", "write", "punch", "destroy", "create", "get_info", "set_info", "quotactl",
        "prealloc", "samedir_rename", "crossdir_rename", "parallel_rename_file",
        "parallel_rename_dir", "rename_trylocks", "read_bytes", "write_bytes",
    )
)  # fmt: skip
TIMES = """
    count bigint NOT NULL, timed bigint NOT NULL,
    service_us_sum bigint NOT NULL, service_us_min bigint NOT NULL, service_us_max bigint NOT NULL,
    queue_us_min bigint NOT NULL, queue_us_max bigint NOT NULL, total_us_sum bigint NOT NULL
"""
PRINCIPAL = """
    start timestamptz NOT NULL, job_id bigint NOT NULL, server_id integer NOT NULL,
    source_job_id integer NOT NULL, nid_id integer NOT NULL, kind smallint NOT NULL
"""
RPC_ROLL_UP = f"{PRINCIPAL}, opcode smallint NOT NULL, service_id integer NOT NULL, {TIMES}"
LOAD = f"""
    {PRINCIPAL}, count bigint NOT NULL, timed bigint NOT NULL, service_us_sum bigint NOT NULL,
    total_us_sum bigint NOT NULL
"""
TOTAL = f"""
    start timestamptz NOT NULL, server_id integer NOT NULL, service_id integer NOT NULL,
    opcode smallint NOT NULL, {TIMES}
"""

# Name, column of time, interval of a chunk, columns.
TABLES = (
    (
        "rpcwindow", "start", "1 hour",
        f"""
        start timestamptz NOT NULL, first timestamptz NOT NULL, last timestamptz NOT NULL,
        segment_id bigint NOT NULL, server_id integer NOT NULL, nid_id integer NOT NULL,
        source_job_id integer NOT NULL, service_id integer NOT NULL, opcode smallint NOT NULL,
        {TIMES}
        """,
    ),
    (
        "attributedrpc", "start", "1 day",
        f"""
        start timestamptz NOT NULL, job_id bigint NOT NULL, segment_id bigint NOT NULL,
        server_id integer NOT NULL, source_job_id integer NOT NULL, nid_id integer NOT NULL,
        service_id integer NOT NULL, opcode smallint NOT NULL, kind smallint NOT NULL,
        method smallint NOT NULL, {TIMES}
        """,
    ),
    ("rpcminute", "start", "1 day", RPC_ROLL_UP),
    ("rpctenminutes", "start", "7 days", RPC_ROLL_UP),
    ("loadwindow", "start", "1 day", LOAD),
    ("loadminute", "start", "1 day", LOAD),
    ("loadtenminutes", "start", "7 days", LOAD),
    ("rpctotal", "start", "7 days", TOTAL),
    ("rpctotalminute", "start", "30 days", TOTAL),
    ("rpctotaltenminutes", "start", "90 days", TOTAL),
    (
        "impactwindow", "start", "7 days",
        """
        start timestamptz NOT NULL, principal_id bigint NOT NULL, impact_us bigint NOT NULL,
        service_us bigint NOT NULL, work_us bigint NOT NULL, others_us bigint NOT NULL,
        others_usual_us bigint NOT NULL, server_id integer NOT NULL, kind smallint NOT NULL
        """,
    ),
    (
        "requestwindow", "start", "1 day",
        """
        start timestamptz NOT NULL, first timestamptz NOT NULL, last timestamptz NOT NULL,
        segment_id bigint NOT NULL, count bigint NOT NULL, server_id integer NOT NULL,
        nid_id integer NOT NULL, service_id integer NOT NULL, opcode smallint NOT NULL
        """,
    ),
    (
        "servicesnapshot", "taken_at", "1 day",
        """
        taken_at timestamptz NOT NULL, snapshot_at timestamptz, counted_since timestamptz,
        segment_id bigint NOT NULL, samples bigint NOT NULL, min bigint NOT NULL,
        max bigint NOT NULL, sum bigint NOT NULL, server_id integer NOT NULL,
        service_id integer NOT NULL, counter_id integer NOT NULL, unit smallint NOT NULL
        """,
    ),
    (
        "jobsnapshot", "taken_at", "1 day",
        f"""
        taken_at timestamptz NOT NULL, segment_id bigint NOT NULL, target_id integer NOT NULL,
        source_job_id integer NOT NULL, snapshot_at timestamptz, entry_started_at timestamptz,
        {COUNTERS}
        """,
    ),
    (
        "targetsnapshot", "taken_at", "7 days",
        f"""
        taken_at timestamptz NOT NULL, segment_id bigint NOT NULL, target_id integer NOT NULL,
        snapshot_at timestamptz, {COUNTERS}
        """,
    ),
    (
        "jobdelta", "end", "1 day",
        f"""
        start timestamptz NOT NULL, "end" timestamptz NOT NULL, segment_id bigint NOT NULL,
        filesystem_id integer NOT NULL, target_id integer NOT NULL, source_job_id integer NOT NULL,
        basis smallint NOT NULL, {COUNTERS}
        """,
    ),
    (
        "targetdelta", "end", "7 days",
        f"""
        start timestamptz NOT NULL, "end" timestamptz NOT NULL, segment_id bigint NOT NULL,
        target_id integer NOT NULL, basis smallint NOT NULL, {COUNTERS}
        """,
    ),
    (
        "iowindow", "start", "7 days",
        f"""
        start timestamptz NOT NULL, "end" timestamptz NOT NULL, job_id bigint NOT NULL,
        segment_id bigint NOT NULL, filesystem_id integer NOT NULL, target_id integer NOT NULL,
        source_job_id integer NOT NULL, kind smallint NOT NULL, basis smallint NOT NULL,
        {COUNTERS}
        """,
    ),
    (
        "iotenminutes", "bucket", "30 days",
        f"""
        bucket timestamptz NOT NULL, start timestamptz NOT NULL, "end" timestamptz NOT NULL,
        job_id bigint NOT NULL, metadata_operations bigint NOT NULL, filesystem_id integer NOT NULL,
        target_id integer NOT NULL, source_job_id integer NOT NULL, kind smallint NOT NULL,
        basis smallint NOT NULL, {COUNTERS}
        """,
    ),
    (
        "iototal", "start", "30 days",
        """
        start timestamptz NOT NULL, "end" timestamptz NOT NULL, metadata_operations bigint NOT NULL,
        filesystem_id integer NOT NULL, target_id integer NOT NULL, basis smallint NOT NULL
        """,
    ),
)  # fmt: skip

# Of attributed windows and their roll-ups: a job's page; what runs on a node; operations with a job
# id that names no job, or several (rows of jobs carry no id); a server's interval.
BY_PRINCIPAL = {
    "job": "(job_id, start) WHERE job_id <> 0",
    "nid": "(nid_id, start) WHERE nid_id <> 0",
    "source_job": "(source_job_id, start) WHERE source_job_id <> 0 AND nid_id = 0",
    "server": "(server_id, start)",
}
INDEXES = {
    # Attribution of windows by node, by interval and by job id.
    "rpcwindow": {
        "nid": "(nid_id, start)",
        "start": "USING brin (start)",
        "source_job": "(source_job_id, start) WHERE source_job_id <> 0",
    },
    # Ambiguous operations are few, and are read whenever statistics of a job are computed.
    "attributedrpc": BY_PRINCIPAL | {"ambiguous": "(start) WHERE kind = 5"},
    "rpcminute": BY_PRINCIPAL,
    "rpctenminutes": BY_PRINCIPAL,
    "loadwindow": BY_PRINCIPAL,
    "loadminute": BY_PRINCIPAL,
    "loadtenminutes": BY_PRINCIPAL,
    "rpctotal": {"server": "(server_id, start)"},
    "rpctotalminute": {"server": "(server_id, start)"},
    "rpctotaltenminutes": {"server": "(server_id, start)"},
    "impactwindow": {"principal": "(kind, principal_id, start)", "server": "(server_id, start)"},
    "requestwindow": {"server": "(server_id, start)"},
    "servicesnapshot": {"server": "(server_id, taken_at)"},
    "jobsnapshot": {"target": "(target_id, taken_at)", "job": "(source_job_id, taken_at)"},
    "targetsnapshot": {"target": "(target_id, taken_at)"},
    # Windows of a batch; reconciliation.
    "jobdelta": {"segment": "(segment_id)"},
    "targetdelta": {"segment": "(segment_id)", "target": '(target_id, "end")'},
    # A job's page; a segment's reconciliation; a target's interval, derived again.
    "iowindow": {
        "job": "(job_id, start) WHERE job_id <> 0",
        "source_job": "(source_job_id, start)",
        "segment": "(segment_id)",
        "target": "(filesystem_id, target_id, start)",
        "ambiguous": "(start) WHERE kind = 5",
    },
    "iotenminutes": {
        "job": "(job_id, bucket) WHERE job_id <> 0",
        "source_job": "(source_job_id, bucket)",
        "target": "(filesystem_id, target_id, bucket)",
    },
    "iototal": {"target": "(filesystem_id, target_id, start)"},
}


def create(name: str, time: str, chunk: str, columns: str) -> str:
    """Return the statements that create a hypertable and its indexes."""
    indexes = "".join(
        f"CREATE INDEX {name}_{suffix} ON telemetry_{name} {index};\n"
        for suffix, index in INDEXES[name].items()
    )
    return f"""
CREATE TABLE telemetry_{name} ({columns});
SELECT create_hypertable('telemetry_{name}', by_range('{time}', INTERVAL '{chunk}'),
    create_default_indexes => false);
{indexes}
"""


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    run_before = [("jobs", "0001_initial")]  # its indexes need the extensions
    operations = [
        migrations.RunSQL("CREATE EXTENSION IF NOT EXISTS timescaledb", migrations.RunSQL.noop),
        BtreeGistExtension(),
        TrigramExtension(),
        *(
            migrations.RunSQL(
                create(name, time, chunk, columns), reverse_sql=f"DROP TABLE telemetry_{name}"
            )
            for name, time, chunk, columns in TABLES
        ),
    ]
