"""Periods of baselines know how much of them was traced; they are computed again."""

from datetime import timedelta

from django.db import migrations, models


class Migration(migrations.Migration):
    """Replace the start of the first trace."""

    dependencies = [("telemetry", "0002_hypertables")]

    operations = [
        migrations.RunSQL("TRUNCATE telemetry_baselineperiod CASCADE", migrations.RunSQL.noop),
        migrations.RemoveField("baselineperiod", "traced_from"),
        migrations.AddField(
            "baselineperiod",
            "traced",
            models.DurationField(default=timedelta(0)),
            preserve_default=False,
        ),
    ]
