"""Roll-ups: charged windows by the minute and by ten, and what each principal did in them."""

from django.db import migrations

PRINCIPAL = """
    start timestamptz NOT NULL,
    job_id bigint NOT NULL,
    server_id integer NOT NULL,
    source_job_id integer NOT NULL,
    nid_id integer NOT NULL,
    kind smallint NOT NULL
"""

RPC = """
CREATE TABLE telemetry_{name} (
    {principal},
    opcode smallint NOT NULL,
    service_id integer NOT NULL,
    count bigint NOT NULL,
    timed bigint NOT NULL,
    service_us_sum bigint NOT NULL,
    service_us_min bigint NOT NULL,
    service_us_max bigint NOT NULL,
    queue_us_min bigint NOT NULL,
    queue_us_max bigint NOT NULL,
    total_us_sum bigint NOT NULL
);
"""

LOAD = """
CREATE TABLE telemetry_{name} (
    {principal},
    count bigint NOT NULL,
    timed bigint NOT NULL,
    service_us_sum bigint NOT NULL,
    total_us_sum bigint NOT NULL
);
"""

# As of the windows that they are made of: a server's interval, a job, a node, a job id.
INDEXES = """
SELECT create_hypertable('telemetry_{name}', by_range('start', INTERVAL '{chunk}'),
    create_default_indexes => false);
CREATE INDEX {name}_job ON telemetry_{name} (job_id, start) WHERE job_id <> 0;
CREATE INDEX {name}_nid ON telemetry_{name} (nid_id, start) WHERE nid_id <> 0;
CREATE INDEX {name}_source_job ON telemetry_{name} (source_job_id, start)
    WHERE source_job_id <> 0 AND nid_id = 0;
CREATE INDEX {name}_server ON telemetry_{name} (server_id, start);
"""

IO = """
CREATE TABLE telemetry_iotenminutes (
    bucket timestamptz NOT NULL,
    start timestamptz NOT NULL,
    "end" timestamptz NOT NULL,
    job_id bigint NOT NULL,
    metadata_operations bigint NOT NULL,
    filesystem_id integer NOT NULL,
    target_id integer NOT NULL,
    source_job_id integer NOT NULL,
    kind smallint NOT NULL,
    basis smallint NOT NULL,
    {counters}
);
"""

IO_INDEXES = """
SELECT create_hypertable('telemetry_iotenminutes', by_range('bucket', INTERVAL '30 days'),
    create_default_indexes => false);
CREATE INDEX iotenminutes_job ON telemetry_iotenminutes (job_id, bucket) WHERE job_id <> 0;
CREATE INDEX iotenminutes_source_job ON telemetry_iotenminutes (source_job_id, bucket);
CREATE INDEX iotenminutes_target
    ON telemetry_iotenminutes (filesystem_id, target_id, bucket);
"""

COUNTERS = (
    "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr", "setattr",
    "getxattr", "setxattr", "statfs", "sync", "migrate", "fallocate", "readpage", "read", "write",
    "punch", "destroy", "create", "get_info", "set_info", "quotactl", "prealloc", "samedir_rename",
    "crossdir_rename", "parallel_rename_file", "parallel_rename_dir", "rename_trylocks",
    "read_bytes", "write_bytes",
)  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0008_delta_models")]
    operations = [
        migrations.RunSQL(
            create.format(name=name, principal=PRINCIPAL) + INDEXES.format(name=name, chunk=chunk),
            reverse_sql=f"DROP TABLE telemetry_{name}",
        )
        for create, name, chunk in (
            (RPC, "rpcminute", "1 day"),
            (RPC, "rpctenminutes", "7 days"),
            (LOAD, "loadminute", "1 day"),
            (LOAD, "loadtenminutes", "7 days"),
        )
    ] + [
        migrations.RunSQL(
            IO.format(counters=", ".join(f'"{name}" bigint' for name in COUNTERS)) + IO_INDEXES,
            reverse_sql="DROP TABLE telemetry_iotenminutes",
        )
    ]
