from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("alerts", "0007_releases"),
    ]

    operations = [
        migrations.AddField(
            model_name="notificationcase",
            name="request",
            field=models.CharField(blank=True, default="", max_length=600),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="notification",
            name="step",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", ""),
                    ("thanks", "thanks"),
                    ("green light", "green light"),
                    ("reminder", "reminder"),
                    ("escalation", "escalation"),
                ],
                max_length=16,
            ),
        ),
    ]
