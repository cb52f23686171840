"""Jobs by the job ids of sources: all candidates, and those at a time."""

from django.db import migrations

NAMED_JOB = """
CREATE VIEW jobs_namedjob AS
SELECT s.id AS source_job_id, j.id AS job_id
FROM site_sourcejobid s
JOIN site_filesystem_clusters f ON f.filesystem_id = s.filesystem_id
JOIN jobs_job j ON j.cluster_id = f.cluster_id AND j.batch_id = s.batch_id
    AND (s.array_index = '' OR j.array_index = s.array_index)
WHERE s.batch_id <> ''
UNION ALL
SELECT s.id, l.job_id
FROM site_sourcejobid s
JOIN site_filesystem_clusters f ON f.filesystem_id = s.filesystem_id
JOIN jobs_launch l ON l.cluster_id = f.cluster_id AND l.name = s.launch
WHERE s.launch <> '' AND l.job_id IS NOT NULL
"""


# Jobs that ran in [start, end] take precedence over jobs that begin soon (clock differences) or ended
# recently (write-back and clean-up still carry the id). One row: the number of
# matching jobs, and the job if there is exactly one.
JOB_NAMED = """
CREATE FUNCTION jobs_job_named(
    of_source_job_id bigint, of_start timestamptz, of_end timestamptz
) RETURNS TABLE (jobs bigint, job_id bigint) LANGUAGE sql STABLE AS $$
    SELECT
        CASE WHEN running > 0 THEN running ELSE near END,
        CASE WHEN running > 0 THEN running_job ELSE near_job END
    FROM (
        SELECT count(DISTINCT c.id) FILTER (WHERE c.running) AS running,
            min(c.id) FILTER (WHERE c.running) AS running_job,
            count(DISTINCT c.id) AS near, min(c.id) AS near_job
        FROM (
            SELECT j.id, j.started_at < greatest(of_end, of_start + interval '1 microsecond')
                AND coalesce(j.ended_at, 'infinity') > of_start AS running
            FROM site_sourcejobid s
            JOIN site_filesystem_clusters f ON f.filesystem_id = s.filesystem_id
            JOIN jobs_job j ON j.cluster_id = f.cluster_id AND j.batch_id = s.batch_id
                AND (s.array_index = '' OR j.array_index = s.array_index)
            WHERE s.id = of_source_job_id AND s.batch_id <> ''
                AND j.started_at < of_end + interval '5 minutes'
                AND coalesce(j.ended_at, 'infinity') > of_start - interval '1 hour'
            UNION ALL
            SELECT j.id, j.started_at < greatest(of_end, of_start + interval '1 microsecond')
                AND coalesce(j.ended_at, 'infinity') > of_start
            FROM site_sourcejobid s
            JOIN site_filesystem_clusters f ON f.filesystem_id = s.filesystem_id
            JOIN jobs_launch l ON l.cluster_id = f.cluster_id AND l.name = s.launch
            JOIN jobs_job j ON j.id = l.job_id
            WHERE s.id = of_source_job_id AND s.launch <> ''
                AND j.started_at < of_end + interval '5 minutes'
                AND coalesce(j.ended_at, 'infinity') > of_start - interval '1 hour'
        ) c
    ) candidates
$$
"""


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial")]
    operations = [
        migrations.RunSQL(NAMED_JOB, reverse_sql="DROP VIEW jobs_namedjob"),
        migrations.RunSQL(JOB_NAMED, reverse_sql="DROP FUNCTION jobs_job_named"),
    ]
