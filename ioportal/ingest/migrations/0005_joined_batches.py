"""Old batches of a stream and day become one segment."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ingest", "0004_windows_across_reads")]

    operations = [
        migrations.CreateModel(
            name="SegmentPart",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                (
                    "segment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="ingest.segment",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="batch", name="first_sequence", field=models.BigIntegerField(null=True)
        ),
        migrations.RunSQL(
            "UPDATE ingest_batch SET first_sequence = sequence", migrations.RunSQL.noop
        ),
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="batch", name="first_sequence", field=models.BigIntegerField()
        ),
    ]
