"""Bytes that no OST counted were stored as 0: all statistics are computed again."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0025_bytes_quality"),
    ]

    operations = [
        migrations.RunSQL(
            "INSERT INTO jobs_stalestatistics (job_id) SELECT job_id FROM jobs_jobstatistics",
            reverse_sql=migrations.RunSQL.noop,
        )
    ]
