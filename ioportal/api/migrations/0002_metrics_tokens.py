"""Tokens to read metrics."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("api", "0001_tokens"),
    ]

    operations = [
        migrations.AlterField(
            model_name="token",
            name="scope",
            field=models.CharField(
                choices=[
                    ("ingest", "send batches of one source"),
                    ("metrics", "read the portal's metrics"),
                ],
                max_length=8,
            ),
        ),
    ]
