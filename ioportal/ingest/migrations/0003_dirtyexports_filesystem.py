"""The filesystem of pending differences by client: workers share the filesystems."""

import django.db.models.deletion
from django.db import migrations, models

_OF_TARGETS = """
UPDATE ingest_dirtyexports d SET filesystem_id = t.filesystem_id
FROM ingest_segment_targets b JOIN site_target t ON t.id = b.target_id
WHERE b.segment_id = d.segment_id
"""


class Migration(migrations.Migration):
    dependencies = [
        ("ingest", "0002_awaitedrecords"),
        ("site", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="dirtyexports",
            name="filesystem",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, to="site.filesystem"
            ),
        ),
        migrations.RunSQL(_OF_TARGETS, migrations.RunSQL.noop),
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="dirtyexports",
            name="filesystem",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, to="site.filesystem"
            ),
        ),
    ]
