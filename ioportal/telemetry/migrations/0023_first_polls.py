"""An index for the totals of a target: few rows, read when its files are loaded."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0022_exports_by_job")]
    operations = [
        migrations.RunSQL(
            'CREATE INDEX jobdelta_total ON telemetry_jobdelta (target_id, "end") WHERE basis = 5',
            reverse_sql="DROP INDEX jobdelta_total",
        ),
    ]
