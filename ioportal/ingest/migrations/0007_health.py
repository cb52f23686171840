"""How long pending rows wait; the newest batch of a source, and refused lines, by indexes."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ingest", "0006_req_history"),
        ("jobs", "0017_asked_at"),
    ]

    operations = [
        migrations.AddField(
            model_name="toucheddeltas",
            name="asked_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.AddField(
            model_name="touchedjob",
            name="asked_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.AddField(
            model_name="touchedreads",
            name="asked_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.AddField(
            model_name="touchedtrace",
            name="asked_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.AddIndex(
            model_name="batch",
            index=models.Index(fields=["source", "-id"], name="batch_newest"),
        ),
        migrations.AddIndex(
            model_name="segment",
            index=models.Index(
                condition=models.Q(("rejected__gt", 0)),
                fields=["-loaded_at"],
                name="segment_rejected",
            ),
        ),
    ]
