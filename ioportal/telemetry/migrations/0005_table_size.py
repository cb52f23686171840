"""Sizes of the tables without chunks by day: their growth is forecast, too."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Create the table."""

    dependencies = [("telemetry", "0004_stage_run")]

    operations = [
        migrations.CreateModel(
            name="TableSize",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("table", models.CharField(max_length=63)),
                ("day", models.DateField()),
                ("bytes", models.BigIntegerField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=["table", "day"], name="tablesize")],
            },
        ),
    ]
