"""A job has one conflict per source, the latest: invented owners do not add up."""

import django.db.models.deletion
from django.db import migrations, models

_SOURCES = """
UPDATE ingest_ownerconflict c SET source_id = b.source_id
FROM ingest_batch b WHERE b.segment_id = c.segment_id;
DELETE FROM ingest_ownerconflict c USING ingest_ownerconflict later
WHERE later.job_id = c.job_id AND later.source_id IS NOT DISTINCT FROM c.source_id
    AND (later.segment_id, later.id) > (c.segment_id, c.id);
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
"""


class Migration(migrations.Migration):
    """Conflicts of files have no source."""

    dependencies = [
        ("ingest", "0027_displaced_claims"),
        ("site", "0005_nfs_servers"),
    ]

    operations = [
        migrations.RemoveConstraint("ownerconflict", "owner_conflict"),
        migrations.AddField(
            "ownerconflict",
            "source",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="site.source",
            ),
        ),
        migrations.RunSQL(_SOURCES, migrations.RunSQL.noop),
        migrations.AddConstraint(
            "ownerconflict",
            models.UniqueConstraint(
                fields=("job", "source"), name="owner_conflict", nulls_distinct=False
            ),
        ),
    ]
