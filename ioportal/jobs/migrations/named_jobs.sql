-- Jobs by the job ids of sources: all candidates, and those at a time.

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
WHERE s.launch <> '' AND l.job_id IS NOT NULL;

-- Jobs that a job id may mean in [start, end]: jobs that run, that begin soon (clock differences), or
-- that ended recently (write-back and clean-up still carry the id). The job id comes from the
-- environment of a process, so it is a claim. User id and host come from the client's kernel: they
-- prove the claim or contradict it, or are unknown (NULL). Root works for everyone.
CREATE FUNCTION jobs_claimed(
    of_source_job_id bigint, of_start timestamptz, of_end timestamptz
) RETURNS TABLE (
    job_id bigint, running boolean, over boolean, has_nodes boolean, by_uid boolean, by_host boolean
) LANGUAGE sql STABLE AS $$
    SELECT j.id,
        j.started_at < greatest(of_end, of_start + interval '1 microsecond')
            AND coalesce(j.ended_at, 'infinity') > of_start,
        coalesce(j.ended_at, 'infinity') + interval '1 minute' <= of_start,
        EXISTS (SELECT FROM jobs_allocation a WHERE a.job_id = j.id),
        CASE WHEN s.uid <> 0 THEN (
            SELECT u.uid = s.uid FROM site_useraccount u WHERE u.name = j.owner
        ) END,
        CASE
            WHEN s.host = '' THEN NULL
            WHEN EXISTS (
                SELECT FROM jobs_allocation a JOIN site_node n ON n.id = a.node_id
                WHERE a.job_id = j.id AND n.name IN (s.host, split_part(s.host, '.', 1))
            ) THEN true
            WHEN EXISTS (
                SELECT FROM site_node n JOIN site_filesystem_clusters f USING (cluster_id)
                WHERE f.filesystem_id = s.filesystem_id AND NOT n.forwards
                    AND n.name IN (s.host, split_part(s.host, '.', 1))
            ) AND EXISTS (SELECT FROM jobs_allocation a WHERE a.job_id = j.id) THEN false
        END
    FROM site_sourcejobid s
    JOIN (
        SELECT s.id AS source_job_id, j.*
        FROM site_sourcejobid s
        JOIN site_filesystem_clusters f ON f.filesystem_id = s.filesystem_id
        JOIN jobs_job j ON j.cluster_id = f.cluster_id AND j.batch_id = s.batch_id
            AND (s.array_index = '' OR j.array_index = s.array_index)
        WHERE s.id = of_source_job_id AND s.batch_id <> ''
        UNION
        SELECT s.id, j.*
        FROM site_sourcejobid s
        JOIN site_filesystem_clusters f ON f.filesystem_id = s.filesystem_id
        JOIN jobs_launch l ON l.cluster_id = f.cluster_id AND l.name = s.launch
        JOIN jobs_job j ON j.id = l.job_id
        WHERE s.id = of_source_job_id AND s.launch <> ''
    ) j ON j.source_job_id = s.id
    WHERE s.id = of_source_job_id
        AND j.started_at < of_end + interval '5 minutes'
        AND coalesce(j.ended_at, 'infinity') > of_start - interval '1 hour'
$$;

-- The job of a counter, whose source names no client. Claims that are proven precede others, and
-- running jobs precede others. Unproven, a job is not named from a minute after its end.
CREATE FUNCTION jobs_job_named(
    of_source_job_id bigint, of_start timestamptz, of_end timestamptz
) RETURNS TABLE (jobs bigint, job_id bigint, contradicted boolean) LANGUAGE sql STABLE AS $$
    SELECT count(*) FILTER (WHERE claim > 0), min(job_id) FILTER (WHERE claim > 0),
        coalesce(max(claim) < 0, false)
    FROM (
        SELECT job_id, claim, rank() OVER (ORDER BY claim DESC, running DESC) AS place
        FROM (
            SELECT job_id, running,
                CASE
                    WHEN NOT by_uid OR NOT by_host THEN -1
                    WHEN by_host THEN 3
                    WHEN by_uid THEN 2
                    WHEN over THEN 0
                    ELSE 1
                END AS claim
            FROM jobs_claimed(of_source_job_id, of_start, of_end)
        ) claims
    ) ranked
    WHERE place = 1
$$;
