"""Others' waiting by 10 s and principal; what of it is to be reckoned."""

import django.db.models.functions.datetime
from django.db import migrations, models

CREATE = """
CREATE TABLE telemetry_impactwindow (
    start timestamptz NOT NULL,
    who bigint NOT NULL,
    impact_us bigint NOT NULL,
    service_us bigint NOT NULL,
    work_us bigint NOT NULL,
    others_us bigint NOT NULL,
    others_usual_us bigint NOT NULL,
    server_id integer NOT NULL,
    kind smallint NOT NULL
);
SELECT create_hypertable('telemetry_impactwindow', by_range('start', INTERVAL '7 days'),
    create_default_indexes => false);
CREATE INDEX impactwindow_who ON telemetry_impactwindow (kind, who, start);
CREATE INDEX impactwindow_server ON telemetry_impactwindow (server_id, start);
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0017_unknown_counters")]
    operations = [
        migrations.RunSQL(CREATE, reverse_sql="DROP TABLE telemetry_impactwindow"),
        migrations.CreateModel(
            name="ImpactWindow",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "server_id",
                        "kind",
                        "who",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("server_id", models.IntegerField()),
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
                        ]
                    ),
                ),
                ("who", models.BigIntegerField()),
                ("impact_us", models.BigIntegerField()),
                ("service_us", models.BigIntegerField()),
                ("work_us", models.BigIntegerField()),
                ("others_us", models.BigIntegerField()),
                ("others_usual_us", models.BigIntegerField()),
            ],
            options={"managed": False},
        ),
        migrations.CreateModel(
            name="TouchedImpact",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "asked_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("server_id", models.IntegerField(null=True)),
            ],
            options={"abstract": False},
        ),
    ]
