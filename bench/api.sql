-- Two PanDA jobs inside each batch job that ended.
DELETE FROM jobs_workloadjob_jobs;
DELETE FROM jobs_workloadjob;

INSERT INTO jobs_workloadjob (cluster_id, panda_id, task_id, reported_batch_id, batch_id, array_index, site,
    host, state, error, "user", transformation, created_at, started_at, ended_at, modified_at, core_count,
    cpu_s, precedence, batch_job_id, changed_at)
SELECT cluster_id, 10000000 + 2 * j.id + n, 1 + j.id / 500, batch_id, batch_id, '', 'QUEUE_' || j.id % 40,
    nodes, CASE WHEN j.id % 10 = 0 THEN 'failed' ELSE 'finished' END, '', 'user ' || j.id % 90, 'sim',
    submitted_at, started_at, ended_at, ended_at, 16, 3600, '', j.id, ended_at
FROM jobs_job j, generate_series(0, 1) n WHERE ended_at IS NOT NULL;

INSERT INTO jobs_workloadjob_jobs (workloadjob_id, job_id) SELECT id, batch_job_id FROM jobs_workloadjob;
