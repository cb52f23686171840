"""A release names the agent that may take over."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """The agent that waits at the release is the one that was released."""

    dependencies = [("ingest", "0025_source_conflicts")]

    operations = [
        migrations.AddField("sender", "released", models.UUIDField(null=True)),
        migrations.RunSQL(
            "UPDATE ingest_sender SET released = rival WHERE is_released", migrations.RunSQL.noop
        ),
        migrations.RemoveField("sender", "is_released"),
    ]
