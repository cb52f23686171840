-- A busy site: 2,000 principals, half of them on each server, each with seven kinds of RPCs in every
-- window: 14,000 rows per 10 s, 5 million per hour. Also operations on two MDTs, polled every minute.
INSERT INTO site_sourcejobid (filesystem_id, text, batch_id, array_index, launch)
SELECT f.id, 'cp.' || n, '', '', '' FROM site_filesystem f, generate_series(1, 100) n;

INSERT INTO site_nid (text, registered) SELECT n || '@tcp', false FROM generate_series(1, 100) n;

INSERT INTO jobs_job (
    cluster_id, batch_id, array_index, submitted_at, started_at, ended_at, name, owner, project,
    queue, state, node_count, nodes, core_count, precedence
)
SELECT c.id, 7000000 + n, '', %(start)s, %(start)s, %(end)s, 'run', 'u' || n %% 300, 'p' || n %% 40,
    'batch', 'completed', 1 + n %% 64, '', 16, ''
FROM site_cluster c, generate_series(1, 1799) n;

CREATE TABLE bench_principal AS
SELECT row_number() OVER () AS n, *
FROM (
    SELECT 1 AS kind, id AS job_id, 0 AS source_job_id, 0 AS nid_id FROM jobs_job
    UNION ALL SELECT 2, 0, id, 0 FROM site_sourcejobid
    UNION ALL SELECT 3, 0, 0, id FROM site_nid
    UNION ALL SELECT 4, 0, 0, 0
) p;

INSERT INTO telemetry_coverage (source, source_id, start, "end", segment_id)
SELECT 'rpctrace', id, %(start)s, %(end)s, 1 FROM site_server WHERE kind = 'mds';
INSERT INTO telemetry_coverage (source, source_id, start, "end", segment_id)
SELECT 'job_stats', id, %(start)s, %(end)s, 1 FROM site_target WHERE kind = 'mdt';
