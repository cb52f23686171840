"""Campaigns as groups of jobs."""

from django.db import migrations, models

_KINDS = [(11, "user"), (12, "project"), (13, "application"), (14, "campaign")]


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0026_service_times_by_second")]
    operations = [
        migrations.AlterField("JobGroup", "kind", models.SmallIntegerField(choices=_KINDS)),
    ]
