"""A colon between user and application name: user names may contain blanks."""

from django.db import migrations

_RENAME = "UPDATE telemetry_jobgroup SET text = regexp_replace(text, '{}', '{}') WHERE kind = 13"


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0011_exports")]
    operations = [migrations.RunSQL(_RENAME.format(" ", ":"), _RENAME.format(":", " "))]
