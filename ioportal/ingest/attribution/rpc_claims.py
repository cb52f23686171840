"""Who sent each RPC: the claims of job ids, and what proves or contradicts them.

A job id is a claim, which any process can forge. The node and the user id, which come from the
client's kernel, prove it or contradict it. A contradicted claim never names its job.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import connection

from ioportal.ingest.attribution.namesakes import ENDED_WITHIN, STARTS_WITHIN
from ioportal.rules.evidence import JOB_RECORD_DELAY
from ioportal.site import process_names
from ioportal.site.job_id_pattern import LUSTRE_CHARACTERS
from ioportal.telemetry import planner
from ioportal.telemetry.models import Method, Principal

if TYPE_CHECKING:
    from collections.abc import Generator

# In the statements, {rows} selects RPC windows.

# The NIDs of the windows and their nodes, in a table so that the planner knows their number. A job
# id from a NID without a node, or from a node that forwards others' I/O, cannot be verified.
_NIDS = """
CREATE TEMP TABLE attribution_nids ON COMMIT DROP AS
SELECT i.id, i.node_id, i.node_id IS NULL AND i.text <> '0@lo' AS unknown,
    i.node_id IS NULL OR n.forwards AS unverifiable, coalesce(n.forwards, false) AS forwards
FROM site_nid i LEFT JOIN site_node n ON n.id = i.node_id
WHERE i.id IN (
    SELECT w.nid_id FROM telemetry_rpcwindow w
    WHERE w.start >= %(start)s AND w.start < %(end)s AND {rows}
)
"""

_LONGEST_JOB = timedelta(days=1)  # most end earlier
# The latest time of which each cluster has job records; a wrong clock may give later ones. Without
# a running job, it has records of ended jobs only: records of long jobs arrive later.
ACCOUNTED = """
    SELECT id AS cluster_id, greatest(
        (SELECT max(started_at) FROM jobs_job j WHERE j.cluster_id = c.id AND started_at < now()),
        (SELECT max(ended_at) FROM jobs_job j WHERE j.cluster_id = c.id AND ended_at < now())
    ) - CASE WHEN EXISTS (
        SELECT FROM jobs_job j
        WHERE j.cluster_id = c.id AND ended_at IS NULL AND started_at < now()
    ) THEN interval '0' ELSE %(longest_job)s END AS accounted
    FROM site_cluster c
"""

# The jobs of each node that hold it, or that a job id may claim.
_HELD = """
CREATE TEMP TABLE attribution_held ON COMMIT DROP AS
WITH near AS MATERIALIZED (
    SELECT j.id, started_at, ended_at, coalesce(u.uid, 0) AS uid,
        dense_rank() OVER (ORDER BY owner, CASE owner WHEN '' THEN j.id END) AS owner
    FROM jobs_job j LEFT JOIN site_useraccount u ON u.name = j.owner
    WHERE started_at IS NOT NULL AND tstzrange(started_at, ended_at)
        && tstzrange(%(start)s - %(ended_within)s, %(end)s + %(starts_within)s)
)
SELECT a.node_id, j.id AS job_id, j.owner, j.uid, j.started_at, j.ended_at
FROM near j JOIN jobs_allocation a ON a.job_id = j.id
WHERE a.node_id IN (SELECT node_id FROM attribution_nids)
"""

# The times at which jobs of other owners hold a node of an owner, and at which processes of those
# that ended may still run there.
_OTHERS = """
CREATE TEMP TABLE attribution_others ON COMMIT DROP AS
WITH owners AS (
    SELECT node_id, owner, range_agg(tstzrange(started_at, ended_at)) AS held,
        range_agg(tstzrange(ended_at, ended_at + %(left_over)s))
            FILTER (WHERE ended_at IS NOT NULL) AS left_over
    FROM attribution_held
    GROUP BY node_id, owner
)
SELECT o.node_id, o.owner, range_agg(other.held) AS held, range_agg(other.left_over) AS left_over
FROM owners o JOIN owners other ON other.node_id = o.node_id AND other.owner <> o.owner
GROUP BY o.node_id, o.owner
"""

# The allocations of the node of each NID: `since` lists the times at which a job starts or ends
# on the node, `jobs` the number of the jobs from each time on, `job_ids` and `uids` the sums of
# their ids and of their owners' (0: not registered), and `shared` whether these are of several
# owners: then the squares of their numbers add up to more. `left_over` is when processes of another
# owner's job may still run there, if RPCs of a node of the job have ids. `accounted` is the
# latest time of which the node's cluster has job records.
_HOLDERS = f"""
CREATE TEMP TABLE attribution_holders ON COMMIT DROP AS
WITH held AS MATERIALIZED (
    SELECT * FROM attribution_held
    WHERE tstzrange(started_at, ended_at) && tstzrange(%(start)s, %(end)s)
),
changes AS (
    SELECT node_id, at, sum(jobs) AS jobs, sum(jobs * job_id) AS job_id,
        sum(jobs * owner) AS owner, sum(jobs * owner * owner) AS squares, sum(jobs * uid) AS uid
    FROM (
        SELECT node_id, started_at AS at, 1 AS jobs, job_id, owner, uid FROM held
        UNION ALL
        SELECT node_id, ended_at, -1, job_id, owner, uid FROM held WHERE ended_at IS NOT NULL
        UNION ALL
        SELECT DISTINCT node_id, timestamptz '-infinity', 0, 0, 0, 0 FROM held
    ) events
    GROUP BY node_id, at
),
slots AS (
    SELECT node_id, at, sum(jobs) OVER so_far AS jobs, sum(job_id) OVER so_far AS job_id,
        sum(owner) OVER so_far AS owner, sum(squares) OVER so_far AS squares,
        sum(uid) OVER so_far AS uid
    FROM changes
    WINDOW so_far AS (PARTITION BY node_id ORDER BY at)
),
nodes AS (
    SELECT node_id, array_agg(at ORDER BY at) AS since,
        array_agg(jobs::integer ORDER BY at) AS jobs,
        array_agg(job_id::bigint ORDER BY at) AS job_ids,
        array_agg(uid::bigint ORDER BY at) AS uids,
        CASE WHEN bool_or(jobs * squares > owner * owner)
            THEN array_agg(jobs * squares > owner * owner ORDER BY at)
        END AS shared
    FROM slots
    GROUP BY node_id
),
followers AS MATERIALIZED (
    SELECT node_id, job_id, started_at, ended_at,
        o.left_over * tstzmultirange(tstzrange(started_at, ended_at)) AS left_over
    FROM held JOIN attribution_others o USING (node_id, owner)
    WHERE o.left_over && tstzrange(started_at, ended_at)
),
-- Many traces have no ids, although counters have them. (Each limit prevents a join with all rows.)
nodes_with_ids AS (
    SELECT node_id
    FROM (
        SELECT node_id, lower(range_merge(range_agg(left_over))) AS start,
            upper(range_merge(range_agg(left_over))) AS until
        FROM followers GROUP BY node_id
    ) f
    CROSS JOIN LATERAL (
        SELECT FROM site_nid i JOIN telemetry_rpcwindow w ON w.nid_id = i.id
        WHERE i.node_id = f.node_id AND w.source_job_id <> 0
            AND w.start >= f.start - %(left_over)s AND w.start < f.until
        LIMIT 1
    ) id
),
jobs_with_ids AS (
    SELECT job_id
    FROM (SELECT DISTINCT job_id, started_at, ended_at FROM followers) f
    CROSS JOIN LATERAL (
        SELECT FROM jobs_namedjob n JOIN telemetry_rpcwindow w USING (source_job_id)
        JOIN site_nid i ON i.id = w.nid_id
        JOIN jobs_allocation a ON a.node_id = i.node_id AND a.job_id = f.job_id
        WHERE n.job_id = f.job_id AND w.source_job_id <> 0
            AND w.start >= f.started_at - interval '10 seconds'
            AND w.start < coalesce(f.ended_at, 'infinity')
        LIMIT 1
    ) id
),
after_others AS (
    SELECT node_id, range_agg(left_over) AS left_over
    FROM followers
    WHERE job_id IN (
        SELECT job_id FROM jobs_with_ids
        UNION SELECT job_id FROM followers JOIN nodes_with_ids USING (node_id)
    )
    GROUP BY node_id
)
SELECT i.id AS nid_id, i.unknown, i.unverifiable, n.since, n.jobs, n.job_ids, n.uids, n.shared,
    a.left_over, c.accounted
FROM attribution_nids i
LEFT JOIN nodes n ON n.node_id = i.node_id
LEFT JOIN after_others a ON a.node_id = i.node_id
LEFT JOIN site_node s ON s.id = i.node_id
LEFT JOIN ({ACCOUNTED}) c USING (cluster_id)
"""

# Process names that count for themselves: a name without a user id identifies no user, and a
# process may invent thousands. Further names of a key count under its busiest name: renaming hides
# nothing. Other keys count for their host, unless it forwards requests of other hosts.
_PROCESSES = """
CREATE TEMP TABLE attribution_processes ON COMMIT DROP AS
WITH names AS (
    SELECT w.server_id, w.nid_id, w.start, w.source_job_id, {key} AS key, sum(w.count) AS work
    FROM telemetry_rpcwindow w
    JOIN attribution_nids i ON i.id = w.nid_id
    JOIN site_sourcejobid s ON s.id = w.source_job_id AND s.batch_id = '' AND s.launch = ''
    WHERE w.start >= %(start)s AND w.start < %(end)s AND w.source_job_id <> 0 AND {rows}
        AND (i.forwards OR {uid} IS NOT NULL)
    GROUP BY 1, 2, 3, 4, 5
),
of_keys AS (
    SELECT *, sum(work) OVER of_key AS key_work,
        first_value(source_job_id) OVER (of_key ORDER BY work DESC, source_job_id) AS busiest
    FROM names WINDOW of_key AS (PARTITION BY server_id, nid_id, start, key)
),
places AS (
    SELECT *, row_number() OVER (
        PARTITION BY server_id, nid_id, start
        ORDER BY source_job_id = busiest DESC,
            CASE source_job_id WHEN busiest THEN key_work ELSE work END DESC, source_job_id
    ) AS place
    FROM of_keys
)
SELECT server_id, nid_id, start, source_job_id, key,
    CASE WHEN place <= %(most_processes)s THEN source_job_id ELSE busiest END AS name_id
FROM (
    SELECT *, min(place) OVER (PARTITION BY server_id, nid_id, start, key) AS key_place FROM places
) ranked
WHERE key_place <= %(most_processes)s
"""

# The registered users whose processes sent a job id, by its user id. In a process's name, only
# clients that add user ids to all job ids prove it; an id of the greatest length may be cut off.
_UIDS = """
CREATE TEMP TABLE attribution_uids ON COMMIT DROP AS
SELECT s.id AS source_job_id, u.uid
FROM site_sourcejobid s
JOIN site_filesystem f ON f.id = s.filesystem_id
JOIN site_useraccount u ON u.uid > 0 AND u.uid = CASE
    WHEN s.batch_id <> '' OR s.launch <> '' THEN s.uid
    WHEN strpos(f.job_id_pattern, '(?P<uid>') > 0 AND octet_length(s.text) < %(cut_off)s THEN {uid}
END
WHERE s.id IN (
    SELECT w.source_job_id FROM telemetry_rpcwindow w
    WHERE w.start >= %(start)s AND w.start < %(end)s AND w.source_job_id <> 0 AND {rows}
)
"""

# The jobs that each job id claims in each of its windows, and jobs that ended just before it.
_CLAIMED = """
CREATE TEMP TABLE attribution_claimed ON COMMIT DROP AS
SELECT k.source_job_id, k.start, c.*, c.over AND EXISTS (
    SELECT FROM jobs_job j WHERE j.id = c.job_id AND j.ended_at > k.start - %(left_over)s
) AS left_over
FROM (
    SELECT DISTINCT w.source_job_id, w.start
    FROM telemetry_rpcwindow w
    JOIN site_sourcejobid s ON s.id = w.source_job_id AND (s.batch_id <> '' OR s.launch <> '')
    WHERE w.start >= %(start)s AND w.start < %(end)s AND w.source_job_id <> 0 AND {rows}
) k
LEFT JOIN LATERAL jobs_claimed(k.source_job_id, k.start, k.start + interval '10 seconds') c ON true
"""

# Claims that a node's allocation proves: the NIDs of the nodes of each claimed job. While it does
# not run and another owner's job holds the node, the node proves nothing (`doubtful`), or, not near
# its run, the contrary (`refuted`).
_PROVEN = """
CREATE TEMP TABLE attribution_proven ON COMMIT DROP AS
SELECT i.id AS nid_id, h.job_id,
    o.held - tstzmultirange(tstzrange(h.started_at, h.ended_at)) AS doubtful,
    o.held - tstzmultirange(tstzrange(h.started_at - %(margin)s, h.ended_at + %(margin)s))
        AS refuted
FROM (SELECT DISTINCT job_id FROM attribution_claimed) c
JOIN attribution_held h USING (job_id)
JOIN attribution_nids i USING (node_id)
LEFT JOIN attribution_others o USING (node_id, owner)
"""


def _claim(proven: str, unverifiable: str) -> str:
    """Return SQL for the strength of a claim: -1 contradicted, 0 none, 1 to 4 as `_METHODS`."""
    return f"""
        CASE
            WHEN NOT by_uid THEN -1
            WHEN {proven} AND by_uid THEN 4
            WHEN {proven} THEN 3
            WHEN NOT {unverifiable} AND has_nodes THEN -1
            WHEN by_uid THEN 2
            WHEN over THEN 0
            ELSE 1
        END"""


# The claims of each job id by the times at which they change: their number, and of a single one its
# job and its strength where its node is the job's, is another one, or is unknown.
_NAMED = f"""
CREATE TEMP TABLE attribution_named ON COMMIT DROP AS
SELECT source_job_id, array_agg(start ORDER BY start) AS starts,
    array_agg(jobs ORDER BY start) AS jobs, array_agg(job_id ORDER BY start) AS job_ids,
    array_agg(proven ORDER BY start) AS proven, array_agg(elsewhere ORDER BY start) AS elsewhere,
    array_agg(unverified ORDER BY start) AS unverified, array_agg(over ORDER BY start) AS over,
    array_agg(left_over ORDER BY start) AS left_over
FROM (
    SELECT *, lag(claim) OVER (PARTITION BY source_job_id ORDER BY start) AS previous
    FROM (
        SELECT *, ROW(jobs, job_id, proven, elsewhere, unverified, over, left_over) AS claim
        FROM (
            SELECT source_job_id, start, count(job_id) AS jobs, min(job_id) AS job_id,
                min({_claim("true", "false")}) AS proven,
                min({_claim("false", "false")}) AS elsewhere,
                min({_claim("false", "true")}) AS unverified, bool_or(over) AS over,
                bool_or(left_over) AS left_over
            FROM attribution_claimed
            GROUP BY source_job_id, start
        ) claims
    ) rows
) successive
WHERE claim IS DISTINCT FROM previous
GROUP BY source_job_id
"""

# Job ids with several claims at a time: the strongest ones by NID.
_CONTESTED = f"""
CREATE TEMP TABLE attribution_contested ON COMMIT DROP AS
SELECT source_job_id, start, nid_id, min(claim) AS claim, count(*) AS jobs, min(job_id) AS job_id,
    bool_and(over) AS over, bool_and(left_over) AS left_over
FROM (
    SELECT *, rank() OVER (
        PARTITION BY source_job_id, start, nid_id ORDER BY claim DESC, running DESC
    ) AS place
    FROM (
        SELECT k.source_job_id, k.start, k.nid_id, c.job_id, c.running, c.over, c.left_over,
            {_claim("p.job_id IS NOT NULL", "i.unverifiable")} AS claim
        FROM (
            SELECT DISTINCT w.source_job_id, w.start, w.nid_id
            FROM telemetry_rpcwindow w
            JOIN (
                SELECT source_job_id, start FROM attribution_claimed
                GROUP BY source_job_id, start HAVING count(*) > 1
            ) several USING (source_job_id, start)
            WHERE w.start >= %(start)s AND w.start < %(end)s AND w.source_job_id <> 0 AND {{rows}}
        ) k
        JOIN attribution_claimed c USING (source_job_id, start)
        JOIN attribution_nids i ON i.id = k.nid_id
        LEFT JOIN attribution_proven p ON p.nid_id = k.nid_id AND p.job_id = c.job_id
    ) claims
) ranked
WHERE place = 1
GROUP BY source_job_id, start, nid_id
"""

# The kind of principal of each window.
KINDS = """
WITH claiming AS (
    SELECT w.*, h.unknown, h.unverifiable, h.accounted,
        h.jobs[width_bucket(w.first, h.since)] AS jobs,
        h.job_ids[width_bucket(w.first, h.since)] AS job_id,
        coalesce(h.since[width_bucket(w.first, h.since) + 1], 'infinity') AS until,
        -- At any time from the first to the last record.
        true = ANY(h.shared[width_bucket(w.first, h.since):width_bucket(w.last, h.since)])
            AS shared,
        n.source_job_id IS NOT NULL AS named,
        coalesce(c.jobs, n.jobs[width_bucket(w.start, n.starts)]) AS named_jobs,
        coalesce(c.job_id, n.job_ids[width_bucket(w.start, n.starts)]) AS named_job_id,
        CASE
            WHEN c.claim IS NOT NULL THEN c.claim
            WHEN p.job_id IS NOT NULL THEN n.proven[width_bucket(w.start, n.starts)]
            WHEN h.unverifiable THEN n.unverified[width_bucket(w.start, n.starts)]
            ELSE n.elsewhere[width_bucket(w.start, n.starts)]
        END AS strength,
        coalesce(c.over, n.over[width_bucket(w.start, n.starts)]) AS over,
        coalesce(c.left_over, n.left_over[width_bucket(w.start, n.starts)]) AS left_over,
        p.doubtful && t.during AS doubtful, p.refuted && t.during AS refuted,
        h.left_over && t.during AS after_others,
        u.uid <> h.uids[width_bucket(w.first, h.since)] AS foreign_uid,
        s.key AS process, s.name_id AS process_name_id
    FROM telemetry_rpcwindow w
    -- From the first record, or before: what waits in a queue was sent earlier.
    CROSS JOIN LATERAL (SELECT tstzrange(least(w.first, w.last - least(
        w.queue_us_max * interval '1 microsecond', %(ended_within)s
    )), w.last, '[]') AS during) t
    JOIN attribution_holders h ON h.nid_id = w.nid_id
    LEFT JOIN attribution_named n ON n.source_job_id = w.source_job_id
    LEFT JOIN attribution_contested c ON c.source_job_id = w.source_job_id
        AND c.start = w.start AND c.nid_id = w.nid_id
    LEFT JOIN attribution_proven p ON p.nid_id = w.nid_id
        AND p.job_id = coalesce(c.job_id, n.job_ids[width_bucket(w.start, n.starts)])
    LEFT JOIN attribution_uids u ON u.source_job_id = w.source_job_id
    LEFT JOIN attribution_processes s ON s.source_job_id = w.source_job_id
        AND s.start = w.start AND s.nid_id = w.nid_id AND s.server_id = w.server_id
    WHERE w.start >= %(start)s AND w.start < %(end)s AND {rows}
),
candidates AS (
    SELECT w.*,
        -- A contradicted user id on the job's own node is nobody's proof. Another user's process is
        -- not the job's, nor is what another job left on the node: its id, or whatever lacks the id
        -- that the job sends, unless its user id is the owner's.
        k.job_id IS NOT NULL OR foreign_uid IS true OR (strength = 3 AND left_over) IS true
            OR (foreign_uid IS NOT false AND after_others) IS true AS of_others,
        -- The node of a job that is over may be another job's now. With several jobs, it proves
        -- nothing, and anybody there can send the id of another owner's job.
        CASE
            -- Of no job, or of one without known nodes. A record may come later, but seldom does.
            WHEN accounted >= w.start + %(record_delay)s AND NOT unverifiable
                AND (jobs > 0 AND named_jobs = 0 OR jobs = 1 AND strength = 1) THEN -1
            WHEN strength = 3 AND (over AND jobs > 0 OR refuted) THEN -1
            WHEN strength = 3 AND jobs > 1 THEN 1
            ELSE strength
        END AS claim,
        -- Others can send the id, too: from a shared node, or one that proves nothing.
        strength = 1 OR strength = 3 AND (shared OR unverifiable OR doubtful) AS by_id_alone
    FROM claiming w
    LEFT JOIN (SELECT DISTINCT source_job_id, start, job_id FROM attribution_claimed) k
        ON k.source_job_id = w.source_job_id AND k.start = w.start AND k.job_id = w.job_id
),
attributed AS (
    SELECT *,
        CASE
            WHEN named_jobs = 0 AND claim >= 0 OR claim = 0 THEN %(PENDING)s
            WHEN claim > 0 AND named_jobs = 1 THEN %(JOB)s
            WHEN claim > 0 THEN %(AMBIGUOUS)s
            -- Not across a start or end of a job: first and last record must be on one side.
            WHEN jobs = 1 AND last < until AND NOT of_others THEN %(JOB)s
            WHEN named THEN %(CONTRADICTED)s
            WHEN process IS NOT NULL THEN %(PROCESS)s
            WHEN source_job_id <> 0 THEN %(HOST)s
            WHEN jobs > 1 OR last >= until THEN %(AMBIGUOUS)s
            WHEN unknown THEN %(UNATTRIBUTED)s
            ELSE %(HOST)s
        END AS kind,
        CASE WHEN claim > 0 THEN named_job_id ELSE job_id END AS matched_job_id,
        coalesce(claim < 0, false) AS contradicted
    FROM candidates
    OFFSET 0  -- computes each kind once, not at each use below
)
"""

_OF_TEXT = {"uid": process_names.UID_OF_TEXT, "key": process_names.KEY_OF_TEXT}
_MOST_PROCESSES = 20  # of a NID in a window
# Processes of a job that ended may still run on its node, or its data are still written.
LEFT_OVER = timedelta(minutes=10)
_MARGIN = timedelta(minutes=1)  # clock differences and write-back
# By the strength of claims.
_METHODS = (Method.JOB_ID, Method.JOB_ID_UID, Method.JOB_ID_NODE, Method.JOB_ID_NODE)
CONSTANTS: dict[str, Any] = {
    **{kind.name: kind.value for kind in Principal},
    "most_processes": _MOST_PROCESSES,
    "cut_off": LUSTRE_CHARACTERS,
    "left_over": LEFT_OVER,
    "margin": _MARGIN,
    "starts_within": STARTS_WITHIN,
    "ended_within": ENDED_WITHIN,
    "record_delay": JOB_RECORD_DELAY,
    "longest_job": _LONGEST_JOB,
    "BY_NONE": Method.NONE.value,
    "BY_NODE": Method.NODE.value,
    "BY_NODE_PROCESS": Method.NODE_PROCESS.value,
    "CONTRADICTED_ID": Method.CONTRADICTED_ID.value,
    "JOB_ID_ALONE": Method.JOB_ID_ALONE.value,
    "METHODS": list(_METHODS),
    "BY_JOB_ID": [*_METHODS, Method.JOB_ID_ALONE],
}

_TABLES = {
    "attribution_nids": _NIDS,
    "attribution_held": _HELD,
    "attribution_others": _OTHERS,
    "attribution_holders": _HOLDERS,
    "attribution_processes": _PROCESSES,
    "attribution_uids": _UIDS,
    "attribution_claimed": _CLAIMED,
    "attribution_proven": _PROVEN,
    "attribution_named": _NAMED,
    "attribution_contested": _CONTESTED,
}


@contextmanager
def prepared(rows: str, values: dict[str, Any]) -> Generator[dict[str, Any]]:
    """Create the tables that attribution reads; yield the parameters of its queries."""
    values = CONSTANTS | values
    with connection.cursor() as cursor:
        for table, create in _TABLES.items():
            cursor.execute(create.format(rows=rows, **_OF_TEXT), values)
            cursor.execute(f"ANALYZE {table}")
        # The groups of an hour fit in this memory.
        with planner.settings(enable_nestloop="off", enable_sort="off", work_mem="128MB"):
            yield values
        cursor.execute(f"DROP TABLE {', '.join(_TABLES)}")
