"""Statistics of services as reads of servers showed them."""

from django.db import migrations, models

CREATE = """
CREATE TABLE telemetry_servicesnapshot (
    taken_at timestamptz NOT NULL,
    snapshot_at timestamptz,
    counted_since timestamptz,
    segment_id bigint NOT NULL,
    samples bigint NOT NULL,
    min bigint NOT NULL,
    max bigint NOT NULL,
    sum bigint NOT NULL,
    server_id integer NOT NULL,
    service_id integer NOT NULL,
    counter_id integer NOT NULL,
    unit smallint NOT NULL
);
SELECT create_hypertable('telemetry_servicesnapshot', by_range('taken_at', INTERVAL '1 day'),
    create_default_indexes => false);
-- A server's page.
CREATE INDEX servicesnapshot_server ON telemetry_servicesnapshot (server_id, taken_at);
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0005_ambiguous_indexes")]
    operations = [
        migrations.RunSQL(CREATE, "DROP TABLE telemetry_servicesnapshot"),
        migrations.CreateModel(
            name="ServiceSnapshot",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "segment_id",
                        "taken_at",
                        "service_id",
                        "counter_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("taken_at", models.DateTimeField()),
                ("segment_id", models.BigIntegerField()),
                ("server_id", models.IntegerField()),
                ("service_id", models.IntegerField()),
                ("counter_id", models.IntegerField()),
                (
                    "unit",
                    models.SmallIntegerField(
                        choices=[
                            (1, "reqs"),
                            (2, "usec"),
                            (3, "sec"),
                            (4, "bufs"),
                            (5, "bytes"),
                            (6, "pages"),
                            (7, "regs"),
                        ]
                    ),
                ),
                ("snapshot_at", models.DateTimeField(null=True)),
                ("counted_since", models.DateTimeField(null=True)),
                ("samples", models.BigIntegerField()),
                ("min", models.BigIntegerField()),
                ("max", models.BigIntegerField()),
                ("sum", models.BigIntegerField()),
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
                ],
                max_length=16,
            ),
        ),
    ]
