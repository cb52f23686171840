"""Estimated impact, where a server was not traced."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0013_application_texts")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE telemetry_impactwindow "
            "ADD COLUMN is_estimated boolean NOT NULL DEFAULT false;",
            reverse_sql="ALTER TABLE telemetry_impactwindow DROP COLUMN is_estimated;",
        ),
    ]
