"""The hypertables: Timescale's own DDL, which Django's models only read."""

from django.db import migrations

COUNTERS = """
    "open" bigint,
    "close" bigint,
    "mknod" bigint,
    "link" bigint,
    "unlink" bigint,
    "mkdir" bigint,
    "rmdir" bigint,
    "rename" bigint,
    "getattr" bigint,
    "setattr" bigint,
    "getxattr" bigint,
    "setxattr" bigint,
    "statfs" bigint,
    "sync" bigint,
    "migrate" bigint,
    "fallocate" bigint,
    "readpage" bigint,
    "read" bigint,
    "write" bigint,
    "punch" bigint,
    "destroy" bigint,
    "create" bigint,
    "get_info" bigint,
    "set_info" bigint,
    "quotactl" bigint,
    "prealloc" bigint,
    "samedir_rename" bigint,
    "crossdir_rename" bigint,
    "parallel_rename_file" bigint,
    "parallel_rename_dir" bigint,
    "rename_trylocks" bigint,
    "read_bytes" bigint,
    "write_bytes" bigint
"""

TIMES = """
    count bigint NOT NULL,
    timed bigint NOT NULL,
    service_us_sum bigint NOT NULL,
    service_us_min bigint NOT NULL,
    service_us_max bigint NOT NULL,
    queue_us_min bigint NOT NULL,
    queue_us_max bigint NOT NULL,
    total_us_sum bigint NOT NULL
"""

RPC_WINDOW = f"""
CREATE TABLE telemetry_rpcwindow (
    start timestamptz NOT NULL,
    first timestamptz NOT NULL,
    last timestamptz NOT NULL,
    segment_id bigint NOT NULL,
    server_id integer NOT NULL,
    nid_id integer NOT NULL,
    source_job_id integer NOT NULL,
    service_id smallint NOT NULL,
    opcode smallint NOT NULL,
    {TIMES}
);
SELECT create_hypertable('telemetry_rpcwindow', by_range('start', INTERVAL '1 hour'),
    create_default_indexes => false);
CREATE INDEX rpcwindow_nid ON telemetry_rpcwindow (nid_id, start);
CREATE INDEX rpcwindow_start ON telemetry_rpcwindow USING brin (start);
"""

CHARGED_RPC = f"""
CREATE TABLE telemetry_chargedrpc (
    start timestamptz NOT NULL,
    job_id bigint NOT NULL,
    segment_id bigint NOT NULL,
    server_id integer NOT NULL,
    source_job_id integer NOT NULL,
    nid_id integer NOT NULL,
    service_id smallint NOT NULL,
    opcode smallint NOT NULL,
    kind smallint NOT NULL,
    method smallint NOT NULL,
    {TIMES}
);
SELECT create_hypertable('telemetry_chargedrpc', by_range('start', INTERVAL '1 day'),
    create_default_indexes => false);
-- A job's page; re-charging a job.
CREATE INDEX chargedrpc_job ON telemetry_chargedrpc (job_id, start) WHERE job_id <> 0;
-- Re-charging nodes; what is ambiguous on them.
CREATE INDEX chargedrpc_nid ON telemetry_chargedrpc (nid_id, start) WHERE nid_id <> 0;
-- Re-charging a server's interval; an overview.
CREATE INDEX chargedrpc_server ON telemetry_chargedrpc (server_id, start);
"""

JOB_SNAPSHOT = f"""
CREATE TABLE telemetry_jobsnapshot (
    taken_at timestamptz NOT NULL,
    segment_id bigint NOT NULL,
    target_id integer NOT NULL,
    source_job_id integer NOT NULL,
    snapshot_at timestamptz,
    entry_started_at timestamptz,
    {COUNTERS}
);
SELECT create_hypertable('telemetry_jobsnapshot', by_range('taken_at', INTERVAL '1 day'),
    create_default_indexes => false);
CREATE INDEX jobsnapshot_target ON telemetry_jobsnapshot (target_id, taken_at);
CREATE INDEX jobsnapshot_job ON telemetry_jobsnapshot (source_job_id, taken_at);
"""

TARGET_SNAPSHOT = f"""
CREATE TABLE telemetry_targetsnapshot (
    taken_at timestamptz NOT NULL,
    segment_id bigint NOT NULL,
    target_id integer NOT NULL,
    snapshot_at timestamptz,
    {COUNTERS}
);
SELECT create_hypertable('telemetry_targetsnapshot', by_range('taken_at', INTERVAL '7 days'),
    create_default_indexes => false);
CREATE INDEX targetsnapshot_target ON telemetry_targetsnapshot (target_id, taken_at);
"""

IO_WINDOW = f"""
CREATE TABLE telemetry_iowindow (
    start timestamptz NOT NULL,
    "end" timestamptz NOT NULL,
    job_id bigint NOT NULL,
    segment_id bigint NOT NULL,
    filesystem_id integer NOT NULL,
    target_id integer NOT NULL,
    source_job_id integer NOT NULL,
    kind smallint NOT NULL,
    basis smallint NOT NULL,
    {COUNTERS}
);
SELECT create_hypertable('telemetry_iowindow', by_range('start', INTERVAL '7 days'),
    create_default_indexes => false);
-- A job's page; re-charging a job.
CREATE INDEX iowindow_job ON telemetry_iowindow (job_id, start) WHERE job_id <> 0;
CREATE INDEX iowindow_source_job ON telemetry_iowindow (source_job_id, start);
-- A segment's account.
CREATE INDEX iowindow_segment ON telemetry_iowindow (segment_id);
-- Deriving a target's interval anew.
CREATE INDEX iowindow_target ON telemetry_iowindow (filesystem_id, target_id, start);
"""


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.RunSQL("CREATE EXTENSION IF NOT EXISTS timescaledb", migrations.RunSQL.noop),
    ] + [
        migrations.RunSQL(ddl, reverse_sql=f"DROP TABLE telemetry_{name}")
        for name, ddl in (
            ("rpcwindow", RPC_WINDOW),
            ("chargedrpc", CHARGED_RPC),
            ("jobsnapshot", JOB_SNAPSHOT),
            ("targetsnapshot", TARGET_SNAPSHOT),
            ("iowindow", IO_WINDOW),
        )
    ]
