"""A view: which jobs a source's job id may name, each with its time."""

from django.db import migrations

NAMED_JOB = """
CREATE VIEW jobs_namedjob AS
SELECT s.id AS source_job_id, j.id AS job_id, j.started_at,
    coalesce(j.ended_at, 'infinity') AS ended_at
FROM jobs_sourcejobid s
JOIN jobs_filesystem_clusters f ON f.filesystem_id = s.filesystem_id
JOIN jobs_job j ON j.cluster_id = f.cluster_id AND j.batch_id = s.batch_id
    AND (s.array_index = '' OR j.array_index = s.array_index)
WHERE s.batch_id <> '' AND j.started_at IS NOT NULL
UNION ALL
SELECT s.id, j.id, j.started_at, coalesce(j.ended_at, 'infinity')
FROM jobs_sourcejobid s
JOIN jobs_filesystem_clusters f ON f.filesystem_id = s.filesystem_id
JOIN jobs_launch l ON l.cluster_id = f.cluster_id AND l.name = s.launch
JOIN jobs_job j ON j.id = l.job_id
WHERE s.launch <> '' AND j.started_at IS NOT NULL
"""


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial")]
    operations = [migrations.RunSQL(NAMED_JOB, reverse_sql="DROP VIEW jobs_namedjob")]
