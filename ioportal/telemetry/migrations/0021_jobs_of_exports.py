"""The job of the nodes whose export statistics are added up."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0020_latest_first")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE telemetry_hostwindow ADD COLUMN job_id bigint NOT NULL DEFAULT 0",
            reverse_sql="ALTER TABLE telemetry_hostwindow DROP COLUMN job_id",
            state_operations=[
                migrations.AddField("hostwindow", "job_id", models.BigIntegerField(default=0))
            ],
        ),
    ]
