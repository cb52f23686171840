from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0015_source_formats"),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="quality",
            field=models.CharField(editable=False, max_length=8, null=True),
        ),
        migrations.RunSQL(
            "UPDATE jobs_job j SET quality = s.quality FROM jobs_jobstatistics s WHERE s.job_id = j.id",
            reverse_sql=migrations.RunSQL.noop,
        ),
        migrations.RemoveIndex(
            model_name="jobstatistics",
            name="statistics_quality",
        ),
        migrations.RemoveIndex(
            model_name="job",
            name="job_recent",
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                fields=["-started_at", "-id"],
                include=[
                    "cluster",
                    "name",
                    "owner",
                    "project",
                    "queue",
                    "state",
                    "quality",
                    "ended_at",
                    "node_count",
                ],
                name="job_recent",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["quality", "started_at"], name="job_quality"),
        ),
    ]
