from django.db import migrations, models

import ioportal.alerts.outcomes


class Migration(migrations.Migration):
    dependencies = [
        ("alerts", "0008_requests"),
    ]

    operations = [
        migrations.AlterField(
            model_name="notificationcase",
            name="effect",
            field=models.TextField(blank=True),
        ),
        migrations.AlterField(
            model_name="notificationcase",
            name="outcome",
            field=models.CharField(
                choices=[
                    ("unknown", "unknown"),
                    ("improved", "improved"),
                    ("partly improved", "partly improved"),
                    ("unchanged", "unchanged"),
                    ("recurred", "recurred"),
                ],
                default=ioportal.alerts.outcomes.Outcome["UNKNOWN"],
                max_length=16,
            ),
        ),
    ]
