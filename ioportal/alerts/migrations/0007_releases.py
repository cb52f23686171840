from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("alerts", "0006_audit"),
    ]

    operations = [
        migrations.AddField(
            model_name="notification",
            name="requested_by",
            field=models.CharField(blank=True, default="", max_length=150),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="notification",
            name="released_at",
            field=models.DateTimeField(null=True),
        ),
    ]
