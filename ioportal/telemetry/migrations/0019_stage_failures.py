"""Stages whose latest run failed, for the health page."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("telemetry", "0018_impact_windows"),
    ]

    operations = [
        migrations.CreateModel(
            name="StageFailure",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stage", models.CharField(max_length=63, unique=True)),
                ("since", models.DateTimeField(auto_now_add=True)),
                ("failed_at", models.DateTimeField()),
                ("runs", models.IntegerField(default=1)),
                ("error", models.TextField()),
                ("sqlstate", models.CharField(blank=True, max_length=5)),
            ],
        ),
    ]
