"""Jobs without a recorded end ran past their time limits: their statistics are computed again."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0026_bytes_again"),
    ]

    operations = [
        migrations.RunSQL(
            """
            INSERT INTO jobs_stalestatistics (job_id)
            SELECT s.job_id FROM jobs_jobstatistics s JOIN jobs_job j ON j.id = s.job_id
            WHERE j.ended_at IS NULL AND j.time_limit_s IS NOT NULL
            """,
            reverse_sql=migrations.RunSQL.noop,
        )
    ]
