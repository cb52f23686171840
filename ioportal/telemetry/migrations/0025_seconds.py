"""RPCs by second of arrival in slow episodes: of senders, and attributed to principals."""

from django.db import migrations, models

_CREATE = """
CREATE TABLE telemetry_rpcsecond (
    start timestamptz NOT NULL, second timestamptz NOT NULL, segment_id bigint NOT NULL,
    count bigint NOT NULL, total_us_sum bigint NOT NULL, service_us_sum bigint NOT NULL,
    nids bigint NOT NULL, server_id integer NOT NULL, nid_id integer NOT NULL,
    source_job_id integer NOT NULL, service_id integer NOT NULL, opcode smallint NOT NULL
);
SELECT create_hypertable('telemetry_rpcsecond', by_range('start', INTERVAL '1 day'),
    create_default_indexes => false);
-- Attribution of a server's interval; the rows of a segment.
CREATE INDEX rpcsecond_server ON telemetry_rpcsecond (server_id, start);
CREATE INDEX rpcsecond_segment ON telemetry_rpcsecond (segment_id);
CREATE TABLE telemetry_attributedsecond (
    start timestamptz NOT NULL, second timestamptz NOT NULL, principal_id bigint NOT NULL,
    requests double precision NOT NULL, total_us double precision NOT NULL,
    clients double precision NOT NULL, server_id integer NOT NULL, service_id integer NOT NULL,
    opcode smallint NOT NULL, kind smallint NOT NULL
);
SELECT create_hypertable('telemetry_attributedsecond', by_range('start', INTERVAL '7 days'),
    create_default_indexes => false);
CREATE INDEX attributedsecond_server ON telemetry_attributedsecond (server_id, start);
"""
_DROP = "DROP TABLE telemetry_rpcsecond; DROP TABLE telemetry_attributedsecond"


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0024_outside_impact")]
    operations = [
        migrations.RunSQL(_CREATE, reverse_sql=_DROP),
        migrations.CreateModel(
            name="RpcSecond",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "segment_id",
                        "start",
                        "second",
                        "opcode",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("second", models.DateTimeField()),
                ("segment_id", models.BigIntegerField()),
                ("server_id", models.IntegerField()),
                ("nid_id", models.IntegerField()),
                ("source_job_id", models.IntegerField()),
                ("service_id", models.IntegerField()),
                ("opcode", models.SmallIntegerField()),
                ("count", models.BigIntegerField()),
                ("total_us_sum", models.BigIntegerField()),
                ("service_us_sum", models.BigIntegerField()),
                ("nids", models.BigIntegerField()),
            ],
            options={"managed": False},
        ),
        migrations.CreateModel(
            name="AttributedSecond",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "second",
                        "server_id",
                        "opcode",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("second", models.DateTimeField()),
                ("server_id", models.IntegerField()),
                ("service_id", models.IntegerField()),
                ("opcode", models.SmallIntegerField()),
                (
                    "kind",
                    models.SmallIntegerField(
                        choices=[
                            (1, "job"),
                            (2, "process"),
                            (3, "host"),
                            (4, "pending"),
                            (5, "ambiguous"),
                            (6, "unattributed"),
                            (7, "contradicted"),
                        ]
                    ),
                ),
                ("principal_id", models.BigIntegerField()),
                ("requests", models.FloatField()),
                ("total_us", models.FloatField()),
                ("clients", models.FloatField()),
            ],
            options={"managed": False},
        ),
    ]
