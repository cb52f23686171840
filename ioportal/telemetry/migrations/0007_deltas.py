"""What agents reckon themselves: differences between two polls of counters."""

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

JOB_DELTA = f"""
CREATE TABLE telemetry_jobdelta (
    start timestamptz NOT NULL,
    "end" timestamptz NOT NULL,
    segment_id bigint NOT NULL,
    filesystem_id integer NOT NULL,
    target_id integer NOT NULL,
    source_job_id integer NOT NULL,
    basis smallint NOT NULL,
    {COUNTERS}
);
SELECT create_hypertable('telemetry_jobdelta', by_range('end', INTERVAL '1 day'),
    create_default_indexes => false);
-- Deriving a batch's windows; its account.
CREATE INDEX jobdelta_segment ON telemetry_jobdelta (segment_id);
"""

TARGET_DELTA = f"""
CREATE TABLE telemetry_targetdelta (
    start timestamptz NOT NULL,
    "end" timestamptz NOT NULL,
    segment_id bigint NOT NULL,
    target_id integer NOT NULL,
    basis smallint NOT NULL,
    {COUNTERS}
);
SELECT create_hypertable('telemetry_targetdelta', by_range('end', INTERVAL '7 days'),
    create_default_indexes => false);
-- What a target did while a job ran; a batch's account.
CREATE INDEX targetdelta_target ON telemetry_targetdelta (target_id, "end");
CREATE INDEX targetdelta_segment ON telemetry_targetdelta (segment_id);
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0006_service_snapshots")]
    operations = [
        migrations.RunSQL(JOB_DELTA, reverse_sql="DROP TABLE telemetry_jobdelta"),
        migrations.RunSQL(TARGET_DELTA, reverse_sql="DROP TABLE telemetry_targetdelta"),
    ]
