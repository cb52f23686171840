"""Up to when it was reckoned what is usual on a server."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("telemetry", "0015_total_models"),
    ]

    operations = [
        migrations.CreateModel(
            name="BaselinePeriod",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("server_id", models.IntegerField()),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("seen_from", models.DateTimeField()),
                ("reckoned_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("server_id", "end"), name="baselineperiod")
                ],
            },
        ),
    ]
