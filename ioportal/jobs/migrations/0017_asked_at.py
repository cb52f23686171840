"""How long jobs wait for their statistics."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0016_job_list"),
    ]

    operations = [
        migrations.AddField(
            model_name="stalestatistics",
            name="asked_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
    ]
