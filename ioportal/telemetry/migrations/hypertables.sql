-- The hypertables. Django's models read these tables and never alter them.
-- Columns are ordered by size, so that rows carry no padding.

CREATE EXTENSION IF NOT EXISTS timescaledb;

-- Columns that several tables have, for LIKE; dropped at the end.

CREATE TABLE rpc_times (
    count bigint NOT NULL, timed bigint NOT NULL,
    service_us_sum bigint NOT NULL, service_us_min bigint NOT NULL, service_us_max bigint NOT NULL,
    queue_us_min bigint NOT NULL, queue_us_max bigint NOT NULL, total_us_sum bigint NOT NULL
);
CREATE TABLE principal (
    start timestamptz NOT NULL, job_id bigint NOT NULL, server_id integer NOT NULL,
    source_job_id integer NOT NULL, nid_id integer NOT NULL, kind smallint NOT NULL
);
CREATE TABLE rpc_roll_up (
    LIKE principal, opcode smallint NOT NULL, service_id integer NOT NULL, LIKE rpc_times
);
CREATE TABLE load (
    LIKE principal, count bigint NOT NULL, timed bigint NOT NULL, service_us_sum bigint NOT NULL,
    total_us_sum bigint NOT NULL
);
CREATE TABLE rpc_total (
    start timestamptz NOT NULL, server_id integer NOT NULL, service_id integer NOT NULL,
    opcode smallint NOT NULL, LIKE rpc_times
);
CREATE TABLE counters (
    open bigint, close bigint, mknod bigint, link bigint, unlink bigint, mkdir bigint, rmdir bigint,
    rename bigint, getattr bigint, setattr bigint, getxattr bigint, setxattr bigint, statfs bigint,
    sync bigint, migrate bigint, fallocate bigint, readpage bigint, read bigint, write bigint,
    punch bigint, destroy bigint, "create" bigint, get_info bigint, set_info bigint,
    quotactl bigint, prealloc bigint, samedir_rename bigint, crossdir_rename bigint,
    parallel_rename_file bigint, parallel_rename_dir bigint, rename_trylocks bigint,
    read_bytes bigint, write_bytes bigint
);
-- Servers count the times of operations since Lustre 2.14. Null: unknown, or no operations.
CREATE TABLE operation_times (
    open_us bigint, close_us bigint, mknod_us bigint, link_us bigint, unlink_us bigint,
    mkdir_us bigint, rmdir_us bigint, rename_us bigint, getattr_us bigint, setattr_us bigint,
    getxattr_us bigint, setxattr_us bigint, statfs_us bigint, sync_us bigint, migrate_us bigint,
    readpage_us bigint, read_us bigint, write_us bigint, punch_us bigint, fallocate_us bigint,
    destroy_us bigint, create_us bigint, get_info_us bigint, set_info_us bigint,
    quotactl_us bigint, prealloc_us bigint
);

-- RPCs of traces. Attribution finds them by node, by interval and by job id.

CREATE TABLE telemetry_rpcwindow (
    start timestamptz NOT NULL, first timestamptz NOT NULL, last timestamptz NOT NULL,
    segment_id bigint NOT NULL, server_id integer NOT NULL, nid_id integer NOT NULL,
    source_job_id integer NOT NULL, service_id integer NOT NULL, opcode smallint NOT NULL,
    LIKE rpc_times
);
CREATE INDEX rpcwindow_nid ON telemetry_rpcwindow (nid_id, start);
CREATE INDEX rpcwindow_start ON telemetry_rpcwindow USING brin (start);
CREATE INDEX rpcwindow_source_job ON telemetry_rpcwindow (source_job_id, start)
    WHERE source_job_id <> 0;

CREATE TABLE telemetry_attributedrpc (
    start timestamptz NOT NULL, job_id bigint NOT NULL, segment_id bigint NOT NULL,
    server_id integer NOT NULL, source_job_id integer NOT NULL, nid_id integer NOT NULL,
    service_id integer NOT NULL, opcode smallint NOT NULL, kind smallint NOT NULL,
    method smallint NOT NULL, LIKE rpc_times
);
-- Ambiguous operations are few, and are read whenever statistics of a job are computed.
CREATE INDEX attributedrpc_ambiguous ON telemetry_attributedrpc (start) WHERE kind = 5;
CREATE INDEX attributedrpc_contradicted ON telemetry_attributedrpc (start) WHERE kind = 7;

CREATE TABLE telemetry_rpcminute (LIKE rpc_roll_up);
CREATE TABLE telemetry_rpctenminutes (LIKE rpc_roll_up);
CREATE TABLE telemetry_loadwindow (LIKE load);
CREATE TABLE telemetry_loadminute (LIKE load);
CREATE TABLE telemetry_loadtenminutes (LIKE load);

-- A job's page; what runs on a node; operations with a job id that names no job, or several
-- (processes are found by their NID); a server's interval.
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'attributedrpc', 'rpcminute', 'rpctenminutes', 'loadwindow', 'loadminute', 'loadtenminutes'
    ] LOOP
        EXECUTE format('CREATE INDEX %I ON %I (job_id, start) WHERE job_id <> 0',
            name || '_job', 'telemetry_' || name);
        EXECUTE format('CREATE INDEX %I ON %I (nid_id, start) WHERE nid_id <> 0',
            name || '_nid', 'telemetry_' || name);
        EXECUTE format('CREATE INDEX %I ON %I (source_job_id, start)
            WHERE source_job_id <> 0 AND kind <> 2',
            name || '_source_job', 'telemetry_' || name);
        EXECUTE format('CREATE INDEX %I ON %I (server_id, start)',
            name || '_server', 'telemetry_' || name);
    END LOOP;
END $$;

CREATE TABLE telemetry_rpctotal (LIKE rpc_total);
CREATE INDEX rpctotal_server ON telemetry_rpctotal (server_id, start);
CREATE TABLE telemetry_rpctotalminute (LIKE rpc_total);
CREATE INDEX rpctotalminute_server ON telemetry_rpctotalminute (server_id, start);
CREATE TABLE telemetry_rpctotaltenminutes (LIKE rpc_total);
CREATE INDEX rpctotaltenminutes_server ON telemetry_rpctotaltenminutes (server_id, start);

-- RPCs by second of arrival in slow episodes: of senders, and attributed to principals.

CREATE TABLE telemetry_rpcsecond (
    start timestamptz NOT NULL, second timestamptz NOT NULL, segment_id bigint NOT NULL,
    count bigint NOT NULL, total_us_sum bigint NOT NULL, service_us_sum bigint NOT NULL,
    nids bigint NOT NULL, server_id integer NOT NULL, nid_id integer NOT NULL,
    source_job_id integer NOT NULL, service_id integer NOT NULL, opcode smallint NOT NULL
);
-- Attribution of a server's interval; the rows of a segment.
CREATE INDEX rpcsecond_server ON telemetry_rpcsecond (server_id, start);
CREATE INDEX rpcsecond_segment ON telemetry_rpcsecond (segment_id);

CREATE TABLE telemetry_attributedsecond (
    start timestamptz NOT NULL, second timestamptz NOT NULL, principal_id bigint NOT NULL,
    requests double precision NOT NULL, total_us double precision NOT NULL,
    clients double precision NOT NULL, server_id integer NOT NULL, service_id integer NOT NULL,
    opcode smallint NOT NULL, kind smallint NOT NULL, service_us double precision NOT NULL
);
CREATE INDEX attributedsecond_server ON telemetry_attributedsecond (server_id, start);

CREATE TABLE telemetry_impactwindow (
    start timestamptz NOT NULL, principal_id bigint NOT NULL, impact_us bigint NOT NULL,
    work_us bigint NOT NULL, all_work_us bigint NOT NULL, others_us bigint NOT NULL,
    others_usual_us bigint NOT NULL, server_id integer NOT NULL, kind smallint NOT NULL,
    is_estimated boolean DEFAULT false NOT NULL, outside_us bigint
);
CREATE INDEX impactwindow_principal ON telemetry_impactwindow (kind, principal_id, start);
CREATE INDEX impactwindow_server ON telemetry_impactwindow (server_id, start);

CREATE TABLE telemetry_requestwindow (
    start timestamptz NOT NULL, first timestamptz NOT NULL, last timestamptz NOT NULL,
    segment_id bigint NOT NULL, count bigint NOT NULL, server_id integer NOT NULL,
    nid_id integer NOT NULL, service_id integer NOT NULL, opcode smallint NOT NULL
);
CREATE INDEX requestwindow_server ON telemetry_requestwindow (server_id, start);

-- Counters as they were read, and their differences: windows of a batch, and reconciliation.

CREATE TABLE telemetry_servicesnapshot (
    taken_at timestamptz NOT NULL, snapshot_at timestamptz, counted_since timestamptz,
    segment_id bigint NOT NULL, samples bigint NOT NULL, min bigint NOT NULL,
    max bigint NOT NULL, sum bigint NOT NULL, server_id integer NOT NULL,
    service_id integer NOT NULL, counter_id integer NOT NULL, unit smallint NOT NULL
);
CREATE INDEX servicesnapshot_server ON telemetry_servicesnapshot (server_id, taken_at);

CREATE TABLE telemetry_jobsnapshot (
    taken_at timestamptz NOT NULL, segment_id bigint NOT NULL, target_id integer NOT NULL,
    source_job_id integer NOT NULL, snapshot_at timestamptz, entry_started_at timestamptz,
    LIKE counters, LIKE operation_times
);
CREATE INDEX jobsnapshot_target ON telemetry_jobsnapshot (target_id, taken_at);
CREATE INDEX jobsnapshot_job ON telemetry_jobsnapshot (source_job_id, taken_at);

CREATE TABLE telemetry_targetsnapshot (
    taken_at timestamptz NOT NULL, segment_id bigint NOT NULL, target_id integer NOT NULL,
    snapshot_at timestamptz, LIKE counters, LIKE operation_times
);
CREATE INDEX targetsnapshot_target ON telemetry_targetsnapshot (target_id, taken_at);

CREATE TABLE telemetry_jobdelta (
    start timestamptz NOT NULL, "end" timestamptz NOT NULL, segment_id bigint NOT NULL,
    filesystem_id integer NOT NULL, target_id integer NOT NULL, source_job_id integer NOT NULL,
    basis smallint NOT NULL, LIKE counters, LIKE operation_times
);
CREATE INDEX jobdelta_segment ON telemetry_jobdelta (segment_id);
-- Totals of a target: few rows, read when its files are loaded.
CREATE INDEX jobdelta_total ON telemetry_jobdelta (target_id, "end") WHERE basis = 5;

CREATE TABLE telemetry_targetdelta (
    start timestamptz NOT NULL, "end" timestamptz NOT NULL, segment_id bigint NOT NULL,
    target_id integer NOT NULL, basis smallint NOT NULL, LIKE counters, LIKE operation_times
);
CREATE INDEX targetdelta_segment ON telemetry_targetdelta (segment_id);
CREATE INDEX targetdelta_target ON telemetry_targetdelta (target_id, "end");

-- Attributed counters: a job's page; a segment's reconciliation; a target's interval, derived again.

CREATE TABLE telemetry_iowindow (
    start timestamptz NOT NULL, "end" timestamptz NOT NULL, job_id bigint NOT NULL,
    segment_id bigint NOT NULL, filesystem_id integer NOT NULL, target_id integer NOT NULL,
    source_job_id integer NOT NULL, kind smallint NOT NULL, basis smallint NOT NULL,
    LIKE counters, LIKE operation_times
);
CREATE INDEX iowindow_job ON telemetry_iowindow (job_id, start) WHERE job_id <> 0;
CREATE INDEX iowindow_source_job ON telemetry_iowindow (source_job_id, start);
CREATE INDEX iowindow_segment ON telemetry_iowindow (segment_id);
CREATE INDEX iowindow_target ON telemetry_iowindow (filesystem_id, target_id, start);
CREATE INDEX iowindow_ambiguous ON telemetry_iowindow (start) WHERE kind = 5;
CREATE INDEX iowindow_contradicted ON telemetry_iowindow (start) WHERE kind = 7;

CREATE TABLE telemetry_iotenminutes (
    bucket timestamptz NOT NULL, start timestamptz NOT NULL, "end" timestamptz NOT NULL,
    job_id bigint NOT NULL, metadata_operations bigint NOT NULL, filesystem_id integer NOT NULL,
    target_id integer NOT NULL, source_job_id integer NOT NULL, kind smallint NOT NULL,
    basis smallint NOT NULL, LIKE counters, LIKE operation_times
);
CREATE INDEX iotenminutes_job ON telemetry_iotenminutes (job_id, bucket) WHERE job_id <> 0;
CREATE INDEX iotenminutes_source_job ON telemetry_iotenminutes (source_job_id, bucket);
CREATE INDEX iotenminutes_target ON telemetry_iotenminutes (filesystem_id, target_id, bucket);

CREATE TABLE telemetry_iototal (
    start timestamptz NOT NULL, "end" timestamptz NOT NULL, metadata_operations bigint NOT NULL,
    filesystem_id integer NOT NULL, target_id integer NOT NULL, basis smallint NOT NULL
);
CREATE INDEX iototal_target ON telemetry_iototal (filesystem_id, target_id, start);

-- Operations of hosts outside jobs, and of jobs' nodes, from export statistics.

CREATE TABLE telemetry_hostwindow (
    start timestamptz NOT NULL, "end" timestamptz NOT NULL, segment_id bigint NOT NULL,
    metadata_operations bigint NOT NULL, metadata_us bigint, target_id integer NOT NULL,
    nid_id integer NOT NULL, kind smallint NOT NULL, basis smallint NOT NULL,
    job_id bigint DEFAULT 0 NOT NULL
);
-- Windows of a batch; hosts that turn out to have a job; a target's interval; a job's nodes.
CREATE INDEX hostwindow_segment ON telemetry_hostwindow (segment_id);
CREATE INDEX hostwindow_nid ON telemetry_hostwindow (nid_id, "end") WHERE nid_id <> 0;
CREATE INDEX hostwindow_target ON telemetry_hostwindow (target_id, "end");
CREATE INDEX hostwindow_job ON telemetry_hostwindow (job_id, "end") WHERE job_id <> 0;

SELECT create_hypertable(
    format('telemetry_%s', name)::regclass, by_range(time, chunk), create_default_indexes => false
) FROM (
    VALUES
        ('rpcwindow', 'start', interval '1 hour'),
        ('attributedrpc', 'start', '1 day'),
        ('rpcminute', 'start', '1 day'),
        ('rpctenminutes', 'start', '7 days'),
        ('loadwindow', 'start', '1 day'),
        ('loadminute', 'start', '1 day'),
        ('loadtenminutes', 'start', '7 days'),
        ('rpctotal', 'start', '7 days'),
        ('rpctotalminute', 'start', '30 days'),
        ('rpctotaltenminutes', 'start', '90 days'),
        ('rpcsecond', 'start', '1 day'),
        ('attributedsecond', 'start', '7 days'),
        ('impactwindow', 'start', '7 days'),
        ('requestwindow', 'start', '1 day'),
        ('servicesnapshot', 'taken_at', '1 day'),
        ('jobsnapshot', 'taken_at', '1 day'),
        ('targetsnapshot', 'taken_at', '7 days'),
        ('jobdelta', 'end', '1 day'),
        ('targetdelta', 'end', '7 days'),
        ('iowindow', 'start', '7 days'),
        ('iotenminutes', 'bucket', '30 days'),
        ('iototal', 'start', '30 days'),
        ('hostwindow', 'end', '7 days')
) AS hypertables (name, time, chunk);

DROP TABLE rpc_times, principal, rpc_roll_up, load, rpc_total, counters, operation_times;
