"""Totals of all principals together; what each did in 10 s without opcodes; a poll's operations."""

from django.db import migrations

TOTAL = """
CREATE TABLE telemetry_{name} (
    start timestamptz NOT NULL,
    server_id integer NOT NULL,
    service_id integer NOT NULL,
    opcode smallint NOT NULL,
    count bigint NOT NULL,
    timed bigint NOT NULL,
    service_us_sum bigint NOT NULL,
    service_us_min bigint NOT NULL,
    service_us_max bigint NOT NULL,
    queue_us_min bigint NOT NULL,
    queue_us_max bigint NOT NULL,
    total_us_sum bigint NOT NULL
);
SELECT create_hypertable('telemetry_{name}', by_range('start', INTERVAL '{chunk}'),
    create_default_indexes => false);
CREATE INDEX {name}_server ON telemetry_{name} (server_id, start);
"""

# The same as by the minute.
LOAD = """
CREATE TABLE telemetry_loadwindow (
    start timestamptz NOT NULL,
    job_id bigint NOT NULL,
    server_id integer NOT NULL,
    source_job_id integer NOT NULL,
    nid_id integer NOT NULL,
    kind smallint NOT NULL,
    count bigint NOT NULL,
    timed bigint NOT NULL,
    service_us_sum bigint NOT NULL,
    total_us_sum bigint NOT NULL
);
SELECT create_hypertable('telemetry_loadwindow', by_range('start', INTERVAL '1 day'),
    create_default_indexes => false);
CREATE INDEX loadwindow_job ON telemetry_loadwindow (job_id, start) WHERE job_id <> 0;
CREATE INDEX loadwindow_nid ON telemetry_loadwindow (nid_id, start) WHERE nid_id <> 0;
CREATE INDEX loadwindow_source_job ON telemetry_loadwindow (source_job_id, start)
    WHERE source_job_id <> 0 AND nid_id = 0;
CREATE INDEX loadwindow_server ON telemetry_loadwindow (server_id, start);
"""

IO = """
CREATE TABLE telemetry_iototal (
    start timestamptz NOT NULL,
    "end" timestamptz NOT NULL,
    metadata_operations bigint NOT NULL,
    filesystem_id integer NOT NULL,
    target_id integer NOT NULL,
    basis smallint NOT NULL
);
SELECT create_hypertable('telemetry_iototal', by_range('start', INTERVAL '30 days'),
    create_default_indexes => false);
CREATE INDEX iototal_target ON telemetry_iototal (filesystem_id, target_id, start);
"""

# What is there already. Where rows are gone that they are made of, they count as gone, too.
FILL_TOTAL = """
INSERT INTO telemetry_{into}
SELECT start, server_id, service_id, opcode, sum(count), sum(timed), sum(service_us_sum),
    coalesce(min(service_us_min) FILTER (WHERE timed > 0), 0), max(service_us_max),
    coalesce(min(queue_us_min) FILTER (WHERE timed > 0), 0), max(queue_us_max), sum(total_us_sum)
FROM telemetry_{made_of} GROUP BY 1, 2, 3, 4;
"""
FILL_LOAD = """
INSERT INTO telemetry_loadwindow
SELECT start, job_id, server_id, source_job_id, nid_id, kind, sum(count), sum(timed),
    sum(service_us_sum), sum(total_us_sum)
FROM telemetry_chargedrpc GROUP BY 1, 2, 3, 4, 5, 6;
"""
FILL_IO = """
INSERT INTO telemetry_iototal
SELECT start, "end", least(sum({operations}), 9223372036854775807), filesystem_id, target_id, basis
FROM telemetry_iowindow GROUP BY 1, 2, 4, 5, 6;
"""
GONE = """
INSERT INTO telemetry_dropped ("table", start, "end")
SELECT 'telemetry_{into}', start, "end" FROM telemetry_dropped
WHERE "table" = 'telemetry_{made_of}';
"""
UNDO = """
DROP TABLE telemetry_{into};
DELETE FROM telemetry_dropped WHERE "table" = 'telemetry_{into}';
"""
METADATA_OPERATIONS = (
    "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr",
    "setattr", "getxattr", "setxattr", "statfs", "sync", "migrate", "readpage",
)  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0013_asked_at")]
    operations = [
        migrations.RunSQL(
            create + GONE.format(into=into, made_of=made_of) + fill,
            reverse_sql=UNDO.format(into=into),
        )
        for into, made_of, create, fill in (
            *(
                (
                    into,
                    made_of,
                    TOTAL.format(name=into, chunk=chunk),
                    FILL_TOTAL.format(into=into, made_of=made_of),
                )
                for into, made_of, chunk in (
                    ("total", "chargedrpc", "7 days"),
                    ("totalminute", "rpcminute", "30 days"),
                    ("totaltenminutes", "rpctenminutes", "90 days"),
                )
            ),
            ("loadwindow", "chargedrpc", LOAD, FILL_LOAD),
            (
                "iototal",
                "iowindow",
                IO,
                FILL_IO.format(
                    operations=" + ".join(f'coalesce("{name}", 0)' for name in METADATA_OPERATIONS)
                ),
            ),
        )
    ]
