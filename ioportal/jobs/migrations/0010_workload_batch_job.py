import django.db.models.deletion
import django.db.models.functions
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0009_job_list_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="workloadjob",
            name="batch_job",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="jobs.job",
            ),
        ),
        migrations.AddField(
            model_name="workloadjob",
            name="changed_at",
            field=models.DateTimeField(db_default=django.db.models.functions.Now()),
        ),
        migrations.RunSQL(
            """
            UPDATE jobs_workloadjob SET batch_job_id = sole.job_id
            FROM (
                SELECT workloadjob_id, min(job_id) AS job_id FROM jobs_workloadjob_jobs
                GROUP BY workloadjob_id HAVING count(*) = 1
            ) sole
            WHERE sole.workloadjob_id = jobs_workloadjob.id
            """,
            reverse_sql=migrations.RunSQL.noop,
        ),
        # Times in standings are whole microseconds now, as those of batch jobs are.
        migrations.RunSQL(
            """
            UPDATE jobs_workloadjob
            SET standing = '0' || replace(substr(standing, 1, 20), '.', '')
                || '0' || replace(substr(standing, 21, 20), '.', '')
                || '0' || replace(substr(standing, 41, 20), '.', '')
                || substr(standing, 61)
            """,
            reverse_sql=migrations.RunSQL.noop,
        ),
        # The rows' foreign keys are checked before their table changes again.
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", reverse_sql=migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="workloadjob",
            index=models.Index(fields=["changed_at"], name="workload_job_changed"),
        ),
    ]
