"""A release of a waiting agent expires; earlier ones have."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds the time of the release."""

    dependencies = [("ingest", "0028_conflicts_by_source")]

    operations = [
        migrations.AddField("sender", "released_at", models.DateTimeField(null=True)),
    ]
