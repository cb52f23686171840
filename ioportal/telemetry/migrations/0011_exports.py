"""Operations of hosts outside jobs, from export statistics."""

from django.db import migrations, models

_CREATE = """
CREATE TABLE telemetry_hostwindow (
    start timestamptz NOT NULL, "end" timestamptz NOT NULL, segment_id bigint NOT NULL,
    metadata_operations bigint NOT NULL, metadata_us bigint, target_id integer NOT NULL,
    nid_id integer NOT NULL, kind smallint NOT NULL, basis smallint NOT NULL
);
SELECT create_hypertable('telemetry_hostwindow', by_range('end', INTERVAL '7 days'),
    create_default_indexes => false);
-- Windows of a batch; hosts that turn out to have a job; a target's interval.
CREATE INDEX hostwindow_segment ON telemetry_hostwindow (segment_id);
CREATE INDEX hostwindow_nid ON telemetry_hostwindow (nid_id, "end") WHERE nid_id <> 0;
CREATE INDEX hostwindow_target ON telemetry_hostwindow (target_id, "end");
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0010_group_impact")]
    operations = [
        migrations.RunSQL(_CREATE, reverse_sql="DROP TABLE telemetry_hostwindow"),
        migrations.CreateModel(
            name="HostWindow",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "segment_id",
                        "end",
                        "target_id",
                        "nid_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("segment_id", models.BigIntegerField()),
                ("target_id", models.IntegerField()),
                ("nid_id", models.IntegerField()),
                ("kind", models.SmallIntegerField()),
                ("basis", models.SmallIntegerField()),
                ("metadata_operations", models.BigIntegerField()),
                ("metadata_us", models.BigIntegerField(null=True)),
            ],
            options={"managed": False},
        ),
        migrations.AlterField(
            model_name="coverage",
            name="source",
            field=models.CharField(
                choices=[
                    ("rpctrace", "RPC trace of a server"),
                    ("job_stats", "job_stats of a target"),
                    ("md_stats", "md_stats of a target"),
                    ("exports", "export statistics of a target"),
                    ("mds_stats", "statistics of a server's services"),
                    ("req_history", "request history of a server"),
                ],
                max_length=16,
            ),
        ),
    ]
