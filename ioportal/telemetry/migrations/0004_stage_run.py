"""The latest successful run of each periodic task: its end shows a standstill."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Create the table."""

    dependencies = [("telemetry", "0003_traced_time_of_baselines")]

    operations = [
        migrations.CreateModel(
            name="StageRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stage", models.CharField(max_length=63, unique=True)),
                ("finished_at", models.DateTimeField()),
            ],
        ),
    ]
