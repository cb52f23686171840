-- A year of the registered centre: %(jobs)s jobs in [%(began)s, %(ended)s) with their figures, and the servers'
-- counters of the last two days. Few users have most of the jobs, figures cover many powers of ten,
-- and rows are in order of submission, as in a portal after a long time.

SELECT setseed(0.5);

INSERT INTO site_nid (text, node_id, registered)
SELECT n || '@gni', min(site_node.id), true
FROM generate_series(1, 1400) n LEFT JOIN site_node ON site_node.id %% 1400 = n GROUP BY n;

-- Ranks are distributed by the square of the logarithm: the first user has 30 %% of the jobs. Users
-- after the twentieth worked only in one quarter of the year.
INSERT INTO jobs_job (cluster_id, batch_id, array_index, submitted_at, started_at, ended_at, name,
    owner, project, queue, state, exit_status, node_count, core_count, cpu_s, time_limit_s, nodes,
    precedence, quality)
SELECT clusters[cluster], 3000000 + n, '', submitted, started,
    CASE WHEN ended < %(ended)s THEN ended END,
    'run_' || floor(30 * random() ^ 2) || '_' || n %% 1000,
    'u' || rank || CASE WHEN rank < 20 THEN '' ELSE 'q' || extract(quarter FROM submitted) END,
    'prj' || rank * 7 %% 150,
    (ARRAY['batch', 'batch', 'batch', 'debug', 'large', 'backfill'])[1 + floor(random() * 6)::int],
    CASE
        WHEN started IS NULL THEN 'pending' WHEN ended >= %(ended)s THEN 'running'
        WHEN luck < .80 THEN 'completed' WHEN luck < .92 THEN 'failed'
        WHEN luck < .96 THEN 'cancelled' WHEN luck < .995 THEN 'timeout' ELSE 'node_fail'
    END,
    0, nodes, 16 * nodes, 8 * nodes * extract(epoch FROM ended - started), 86400,
    'c' || cluster || '-node[1-' || nodes || ']', repeat('0', 60),
    CASE
        WHEN started IS NULL OR observed > .99 THEN NULL
        WHEN observed < .85 THEN 'good' WHEN observed < .95 THEN 'partial' ELSE 'poor'
    END
FROM (
    SELECT n, submitted, started, started + run AS ended, random() AS luck,
        random() AS observed,
        (ARRAY[1, 1, 1, 1, 1, 1, 1, 2, 2, 3])[1 + floor(random() * 10)::int] AS cluster,
        floor(exp(ln(2000) * random() ^ 2))::int AS rank,
        floor(2 ^ (12 * random() ^ 2))::int AS nodes
    FROM (
        SELECT n, submitted, least(exp(random_normal(7, 1.6)), 86400) * interval '1 s' AS run,
            CASE WHEN submitted + wait < %(ended)s THEN submitted + wait END AS started
        FROM (
            SELECT n, -7200 * ln(1 - random()) * interval '1 s' AS wait,
                %(began)s::timestamptz
                    + (%(ended)s::timestamptz - %(began)s) * (n::float8 / %(jobs)s) AS submitted
            FROM generate_series(0, %(jobs)s - 1) n
        ) submissions
    ) starts
) runs, (SELECT array_agg(id ORDER BY name) AS clusters FROM site_cluster) named;

INSERT INTO jobs_jobstatistics (job_id, computed_at, duration_s, node_count, cpu_efficiency,
    read_bytes, write_bytes, read_bytes_per_node, write_bytes_per_node, mean_read_bytes,
    mean_write_bytes, metadata_operations, opens, closes, open_close_ratio,
    metadata_operations_per_node, metadata_rate, peak_metadata_rate, peak_resolution_s,
    startup_share, largest_target_share, metadata_rpcs, metadata_rpc_rate, mean_service_us,
    max_service_us, mean_queue_us, quality, quality_reasons, covered_share, ambiguous_share, resets,
    count_open, count_close, count_mknod, count_unlink, count_mkdir, count_rmdir, count_rename,
    count_getattr, count_setattr, count_getxattr, count_setxattr, count_statfs, count_sync)
SELECT id, ended, duration, node_count, random(), read, written, read / node_count,
    written / node_count, read / 1000, written / 1000, 4 * opens, opens, closes,
    opens::float8 / closes, 4 * opens / node_count, 4 * opens / duration,
    (4 + 20 * random()) * opens / duration, 600, random() ^ 3, random() ^ 2,
    traced, traced / duration, 300 + traced %% 900, 9000 + traced %% 90000, 100 + traced %% 300,
    quality,
    CASE WHEN quality = 'good' THEN '[]'::jsonb ELSE '["Reads cover 93 %% of the run."]' END, 1, 0, 0,
    opens, closes, opens * random(), opens * random(), opens * random(), opens * random(),
    opens * random(), opens * random(), opens * random(), opens * random(), opens * random(),
    opens * random(), opens * random()
FROM (
    SELECT id, node_count, quality, ended,
        greatest(1, extract(epoch FROM ended - started_at))::float8 AS duration,
        CASE WHEN luck > .04 THEN exp(random_normal(20, 3))::bigint END AS read,
        CASE WHEN luck > .04 THEN exp(random_normal(19, 3))::bigint END AS written,
        CASE WHEN luck > .03 THEN 1 + exp(random_normal(8, 2.2))::bigint END AS opens,
        CASE WHEN luck > .03 THEN 1 + exp(random_normal(7.5, 2.2))::bigint END AS closes,
        CASE WHEN luck BETWEEN .5 AND .52 THEN 1 + exp(random_normal(9, 2))::bigint END AS traced
    FROM (
        SELECT id, node_count, quality, started_at, coalesce(ended_at, %(ended)s) AS ended,
            random() AS luck
        FROM jobs_job WHERE quality IS NOT NULL ORDER BY id
    ) begun
) drawn;

-- Many jobs use the first nodes of each cluster, as in a small cluster.
INSERT INTO jobs_allocation (job_id, node_id)
SELECT j.id, first.id + (j.id + n) %% 400
FROM jobs_job j
JOIN (SELECT cluster_id, min(id) AS id FROM site_node GROUP BY 1) first USING (cluster_id)
CROSS JOIN generate_series(0, 1) n;

INSERT INTO jobs_launch (cluster_id, name, batch_id, array_index, node_count, nodes, command, job_id)
SELECT cluster_id, batch_id || '.0', batch_id, '', node_count, nodes, 'simulate', id
FROM jobs_job WHERE id %% 5 = 0;

INSERT INTO site_sourcejobid (filesystem_id, text, batch_id, array_index, launch)
SELECT f.id, batch_id, batch_id, '', '' FROM jobs_job, site_filesystem f
UNION ALL
SELECT f.id, (9000000 + n)::text, (9000000 + n)::text, '', ''
FROM generate_series(1, 200) n, site_filesystem f;

-- All metadata targets are read every ten minutes.
INSERT INTO ingest_segment (format, digest, name, start, "end", loaded_at, lines, accepted, rejected,
    irrelevant, rejected_by_reason, records, operations)
SELECT 'job_stats', md5(at::text), 'job_stats-' || at, at, at, at, 300, 300, 0, 0, '{}', 300, 99999
FROM generate_series(%(began)s::timestamptz, %(ended)s, '10 min') at;

INSERT INTO ingest_segment_targets (segment_id, target_id)
SELECT s.id, t.id FROM ingest_segment s, site_target t;

INSERT INTO telemetry_coverage (source, source_id, start, "end", segment_id)
SELECT 'job_stats', t.id, s.start, s.start, s.id FROM ingest_segment s, site_target t;

INSERT INTO telemetry_iowindow (start, "end", job_id, segment_id, filesystem_id, target_id,
    source_job_id, kind, basis, "open", "close", "getattr")
SELECT s.start - interval '10 min', s.start, j.id, s.id, t.filesystem_id, t.id, i.id, 1, 1,
    1000 * random(), 900 * random(), 2000 * random()
FROM jobs_job j
JOIN site_sourcejobid i USING (batch_id)
JOIN ingest_segment s ON s.start > j.started_at
    AND s.start < coalesce(j.ended_at, %(ended)s) + interval '10 min'
JOIN site_target t ON t.id %% 2 = j.id %% 2
WHERE coalesce(j.ended_at, %(ended)s) > %(ended)s::timestamptz - interval '2 days';

-- The last day is traced.
INSERT INTO telemetry_coverage (source, source_id, start, "end", segment_id)
SELECT 'rpctrace', id, %(ended)s::timestamptz - interval '1 day', %(ended)s, 0 FROM site_server;

INSERT INTO telemetry_attributedrpc (start, job_id, segment_id, server_id, source_job_id, nid_id,
    service_id, opcode, kind, method, count, timed, service_us_sum, service_us_min, service_us_max,
    queue_us_min, queue_us_max, total_us_sum)
SELECT at, j.id, 0, s.id, 0, 0, 1, opcode, 1, 2, 90, 90, 9000, 20, 900, 5, 500, 12000
FROM (SELECT * FROM jobs_job WHERE ended_at IS NULL ORDER BY started_at LIMIT 1) j
CROSS JOIN generate_series(
    greatest(j.started_at, %(ended)s::timestamptz - interval '1 day'), %(ended)s, '10 s'
) at
CROSS JOIN generate_series(33, 38) opcode
CROSS JOIN (SELECT min(id) AS id FROM site_server) s;

-- Thirty processes outside jobs send requests all day.
INSERT INTO telemetry_attributedrpc (start, job_id, segment_id, server_id, source_job_id, nid_id,
    service_id, opcode, kind, method, count, timed, service_us_sum, service_us_min, service_us_max,
    queue_us_min, queue_us_max, total_us_sum)
SELECT at, 0, 0, s.id, p.id, 0, 1, 33, 2, 2, 90, 90, 9000 * random(), 20, 900, 5, 500,
    9000 + 9000 * random()
FROM generate_series(
    %(ended)s::timestamptz - interval '1 day', %(ended)s::timestamptz - interval '10 s', '10 s'
) at
CROSS JOIN (SELECT id FROM site_sourcejobid ORDER BY id LIMIT 30) p
CROSS JOIN (SELECT min(id) AS id FROM site_server) s;

INSERT INTO site_service (id, name) VALUES (1, 'mdt');

INSERT INTO load_pinnedbaseline (server_id, service_id, opcode, baseline_us, since, pinned_at,
    pinned_by, why)
SELECT min(id), 1, 33, 120, %(began)s, %(began)s, '', '' FROM site_server;

INSERT INTO jobs_workloadjob (cluster_id, panda_id, reported_batch_id, batch_id, array_index, site, host,
    state, error, "user", transformation, started_at, ended_at, core_count, cpu_s, precedence, batch_job_id,
    changed_at)
SELECT cluster_id, 5000000 + n, batch_id, batch_id, '', 'LAKE', nodes, 'finished', '', 'prod', 'sim',
    started_at, %(ended)s, 16, 3600, '', id, %(ended)s
FROM (SELECT * FROM jobs_job WHERE ended_at IS NULL ORDER BY started_at LIMIT 1) j,
    generate_series(1, 300) n;

INSERT INTO jobs_workloadjob_jobs (workloadjob_id, job_id)
SELECT w.id, j.id FROM jobs_workloadjob w JOIN jobs_job j USING (cluster_id, batch_id);

-- Ten PanDA jobs ran inside each of some batch jobs.
INSERT INTO jobs_workloadjob (cluster_id, panda_id, reported_batch_id, batch_id, array_index, site, host,
    state, error, "user", transformation, started_at, ended_at, core_count, cpu_s, setup_s, precedence,
    batch_job_id, changed_at)
SELECT cluster_id, 6000000 + 10 * j.id + n, batch_id, batch_id, '', 'LAKE', nodes, 'finished', '', 'prod',
    'sim', started_at, ended_at, 16, 3600 * random(), 60 * random(), '', j.id, ended_at
FROM (SELECT * FROM jobs_job WHERE ended_at IS NOT NULL ORDER BY id LIMIT 25000) j,
    generate_series(0, 9) n;
