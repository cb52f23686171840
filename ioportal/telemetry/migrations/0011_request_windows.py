"""Requests that servers kept: counted by who sent them."""

from django.db import migrations, models

CREATE = """
CREATE TABLE telemetry_requestwindow (
    start timestamptz NOT NULL,
    first timestamptz NOT NULL,
    last timestamptz NOT NULL,
    segment_id bigint NOT NULL,
    count bigint NOT NULL,
    server_id integer NOT NULL,
    nid_id integer NOT NULL,
    service_id integer NOT NULL,
    opcode smallint NOT NULL
);
SELECT create_hypertable('telemetry_requestwindow', by_range('start', INTERVAL '1 day'),
    create_default_indexes => false);
-- A server's page.
CREATE INDEX requestwindow_server ON telemetry_requestwindow (server_id, start);
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0010_roll_up_models")]
    operations = [
        migrations.RunSQL(CREATE, "DROP TABLE telemetry_requestwindow"),
        migrations.CreateModel(
            name="RequestWindow",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "segment_id",
                        "start",
                        "nid_id",
                        "opcode",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("segment_id", models.BigIntegerField()),
                ("server_id", models.IntegerField()),
                ("nid_id", models.IntegerField()),
                ("service_id", models.IntegerField()),
                ("opcode", models.SmallIntegerField()),
                ("count", models.BigIntegerField()),
                ("first", models.DateTimeField()),
                ("last", models.DateTimeField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.AlterField(
            model_name="coverage",
            name="source",
            field=models.CharField(
                choices=[
                    ("rpctrace", "RPC trace of a server"),
                    ("job_stats", "job_stats of a target"),
                    ("md_stats", "md_stats of a target"),
                    ("mds_stats", "statistics of a server's services"),
                    ("req_history", "requests that a server kept"),
                ],
                max_length=16,
            ),
        ),
    ]
