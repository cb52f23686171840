"""An index for the operations of a job's nodes."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0021_jobs_of_exports")]
    operations = [
        migrations.RunSQL(
            'CREATE INDEX hostwindow_job ON telemetry_hostwindow (job_id, "end") WHERE job_id <> 0',
            reverse_sql="DROP INDEX hostwindow_job",
        ),
    ]
