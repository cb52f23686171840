-- A busy site: %(jobs)s jobs that started at %(began)s and still run, each on one of two metadata
-- servers with polls every 10 s and traces, until %(now)s.
INSERT INTO jobs_job (
    cluster_id, batch_id, array_index, submitted_at, started_at, name, owner, project, queue, state,
    node_count, nodes, core_count, precedence, quality
)
SELECT c.id, 7000000 + n, '', %(began)s, %(began)s, 'run_' || n %% 40, 'u' || n %% 300, 'p' || n %% 40,
    (ARRAY['batch', 'debug', 'large'])[1 + n %% 3], 'running', 1 + n %% 64, '', 16, '', 'good'
FROM site_cluster c, generate_series(1, %(jobs)s) n WHERE c.name = 'c1';

INSERT INTO jobs_jobstatistics (
    job_id, computed_at, duration_s, node_count, cpu_efficiency, read_bytes, write_bytes,
    metadata_operations, opens, closes, open_close_ratio, metadata_operations_per_node,
    metadata_rate, peak_metadata_rate, quality, quality_reasons, covered_share, ambiguous_share, resets,
    count_open, count_close, count_getattr, count_unlink, count_mknod
)
SELECT id, %(now)s, 7200, node_count, NULL, 1e9 + id, 1e9, 90 * id, 40 * id, 40 * id, 1,
    90 * id / node_count, 90 * id / 7200.0, 90 * id / 3600.0, 'good', '[]', 1, 0, 0,
    40 * id, 40 * id, 10 * id, 0, 0
FROM jobs_job;

INSERT INTO findings_jobevidence (
    job_id, seen_until, filesystem_id, peak_operations, peak_operations_at, sustained_operations,
    sustained_operations_at, peak_stats, peak_stats_at, startup_operations, startup_opens
)
SELECT j.id, %(now)s, f.id, 4 * j.id, %(now)s, 8 * j.id, %(now)s, j.id, %(now)s, 9 * j.id, 3 * j.id
FROM jobs_job j, site_filesystem f;

INSERT INTO telemetry_coverage (source, source_id, start, "end", segment_id)
SELECT 'rpctrace', id, %(began)s, %(now)s, 1 FROM site_server
UNION ALL SELECT 'job_stats', id, %(began)s, %(now)s, 1 FROM site_target;
