"""Evidence about load from outside jobs, and about the attribution of a filesystem's load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from psycopg import sql

from ioportal.findings.evidence import harm
from ioportal.findings.evidence.subject_evidence import CONTEXT, Evidence, frame_of, with_context
from ioportal.rules.evidence import (
    FILESYSTEM_EVIDENCE,
    HOST_EVIDENCE,
    HOUR,
    JOB_RECORD_DELAY,
    PEAK_SPAN,
)
from ioportal.rules.rule import Subject
from ioportal.site import process_names
from ioportal.site.models import Server, Target
from ioportal.telemetry import buckets, levels, piecewise
from ioportal.telemetry.models import IoWindow, Principal
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from ioportal.telemetry.piecewise import Piece

_WIDTHS = {Subject.HOST: PEAK_SPAN, Subject.FILESYSTEM: HOUR}
# RPCs to a filesystem's metadata servers by principal and bin.
_LOADS = sql.SQL("""
SELECT date_bin(%(width)s, start, %(since)s) AS bin,
    CASE WHEN kind = %(CONTRADICTED)s THEN %(HOST)s ELSE kind END AS kind,
    CASE
        WHEN kind IN (%(CONTRADICTED)s, %(HOST)s) THEN nid_id
        WHEN kind = %(PROCESS)s
            THEN (SELECT {key} FROM site_sourcejobid s WHERE s.id = source_job_id)
        ELSE 0
    END AS principal_id,
    sum(count)::float8 AS rpcs
FROM {table} WHERE server_id = ANY(%(servers)s) AND start >= {start} AND start < {end}
GROUP BY 1, 2, 3
""")
_OUTSIDE = sql.SQL("""
WITH loads AS MATERIALIZED (
    SELECT bin, kind, principal_id, sum(rpcs) AS rpcs FROM ({loads}) l GROUP BY 1, 2, 3
),
totals AS (SELECT bin, sum(rpcs) AS rpcs FROM loads GROUP BY 1),
-- Of a poll interval that is longer than a bin, the part of the bin.
polled AS MATERIALIZED (
    SELECT date_bin(%(width)s, "end" - interval '1 microsecond', %(since)s) AS bin, kind,
        nid_id AS principal_id,
        sum(metadata_operations * least(
            1, extract(epoch FROM %(width)s) / extract(epoch FROM "end" - start)
        ))::float8 AS operations
    FROM telemetry_hostwindow
    WHERE target_id = ANY(%(mdts)s) AND "end" > %(since)s AND "end" <= %(until)s AND "end" > start
    GROUP BY 1, 2, 3
),
polled_totals AS (SELECT bin, sum(operations) AS operations FROM polled GROUP BY 1),
bins AS (SELECT bin FROM totals UNION SELECT bin FROM polled_totals),
impacts AS (
    SELECT bins.bin, w.kind, w.principal_id, sum(w.impact_us)::float8 / 1e6 AS impact_s,
        sum(w.work_us)::float8 / nullif(sum(w.all_work_us), 0) AS impact_share,
        bool_or(w.is_estimated)::int::float8 AS impact_is_estimated
    FROM bins JOIN telemetry_impactwindow w
        ON w.start >= bins.bin + %(width)s - interval '1 hour' AND w.start < bins.bin + %(width)s
    WHERE w.server_id = ANY(%(servers)s)
        AND w.start >= %(since)s - interval '1 hour' AND w.start < %(until)s
    GROUP BY 1, 2, 3
)
SELECT kind || ':' || principal_id, l.rpcs, l.rpcs / nullif(totals.rpcs, 0),
    impacts.impact_s, impacts.impact_share, impacts.impact_is_estimated,
    p.operations, p.operations / nullif(polled_totals.operations, 0), bin + %(width)s
FROM loads l
FULL JOIN (SELECT * FROM polled WHERE kind = %(HOST)s) p USING (bin, kind, principal_id)
LEFT JOIN totals USING (bin)
LEFT JOIN polled_totals USING (bin)
LEFT JOIN impacts USING (bin, kind, principal_id)
WHERE kind IN (%(PROCESS)s, %(HOST)s) AND NOT (kind = %(HOST)s AND EXISTS (
    -- Forwarding nodes send the requests of others.
    SELECT FROM site_nid i JOIN site_node n ON n.id = i.node_id
    WHERE i.id = principal_id AND n.forwards
))
""")
# Job ids that no job explains, from hosts that never run jobs. Any process can invent one.
_UNKNOWN_IDS = sql.SQL("""
WITH totals AS MATERIALIZED (
    SELECT bin, sum(rpcs) AS rpcs, sum(rpcs) FILTER (WHERE kind = %(PENDING)s) AS pending_rpcs
    FROM ({loads}) l GROUP BY 1
),
ids AS MATERIALIZED (SELECT DISTINCT bin, source_job_id FROM ({pending}) p),
sent AS MATERIALIZED (
    SELECT ids.bin, w.nid_id, sum(w.count)::float8 AS rpcs
    FROM ids JOIN telemetry_rpcwindow w ON w.source_job_id = ids.source_job_id
        AND w.start >= ids.bin AND w.start < ids.bin + %(width)s
    WHERE w.server_id = ANY(%(servers)s) AND w.source_job_id <> 0
        AND w.start >= %(since)s AND w.start < %(until)s
    GROUP BY 1, 2
)
SELECT %(PENDING)s || ':' || s.nid_id, s.rpcs, s.rpcs / nullif(totals.rpcs, 0),
    s.rpcs / nullif(totals.pending_rpcs, 0) * impact.s,
    s.rpcs / nullif(totals.pending_rpcs, 0) * impact.share, impact.is_estimated, NULL, NULL,
    s.bin + %(width)s
FROM sent s JOIN totals USING (bin)
CROSS JOIN LATERAL (
    SELECT sum(impact_us)::float8 / 1e6 AS s,
        sum(work_us)::float8 / nullif(sum(all_work_us), 0) AS share,
        bool_or(is_estimated)::int::float8 AS is_estimated
    FROM telemetry_impactwindow
    WHERE kind = %(PENDING)s AND server_id = ANY(%(servers)s)
        AND start >= s.bin + %(width)s - interval '1 hour' AND start < s.bin + %(width)s
) impact
JOIN site_nid i ON i.id = s.nid_id JOIN site_node n ON n.id = i.node_id
WHERE NOT n.forwards AND NOT EXISTS (SELECT FROM jobs_allocation a WHERE a.node_id = n.id)
""")
_PENDING = sql.SQL("""
SELECT date_bin(%(width)s, start, %(since)s) AS bin, source_job_id
FROM {table} WHERE server_id = ANY(%(servers)s) AND start >= {start} AND start < {end}
    AND kind = %(PENDING)s
""")
# Contradicted job ids by the job that holds the sending node; without exactly one job, by NID.
_CONTRADICTED = sql.SQL("""
SELECT c.subject, sum(c.count)::float8, count(DISTINCT coalesce(-i.node_id, i.id))::float8,
    c.bin + %(width)s
FROM ({contradicted}) c
JOIN site_nid i ON i.id = c.nid_id LEFT JOIN site_node n ON n.id = i.node_id
WHERE n.forwards IS NOT true
GROUP BY c.bin, c.subject
""")
_CONTRADICTED_ROWS = sql.SQL("""
SELECT date_bin(%(width)s, start, %(since)s) AS bin,
    kind || ':' || CASE WHEN kind = %(JOB)s THEN job_id ELSE nid_id END AS subject, nid_id, count
FROM {table} WHERE server_id = ANY(%(servers)s) AND start >= {start} AND start < {end}
    AND kind IN (%(JOB)s, %(CONTRADICTED)s) AND source_job_id <> 0 AND nid_id <> 0
""")
_UNATTRIBUTED = sql.SQL("""
SELECT %(filesystem)s::text, sum(rpcs),
    coalesce(sum(rpcs) FILTER (WHERE kind = %(UNATTRIBUTED)s), 0), bin + %(width)s
FROM ({loads}) l GROUP BY bin
""")


# Operations of processes outside jobs by job_stats; all operations of a user id are one subject.
_PROCESSES = sql.SQL("""
WITH counted AS MATERIALIZED (
    SELECT date_bin(%(width)s, w."end" - interval '1 microsecond', %(since)s) AS bin, w.kind,
        w.source_job_id,
        sum({operations} * least(
            1, extract(epoch FROM %(width)s) / extract(epoch FROM w."end" - w.start)
        ))::float8 AS operations
    FROM telemetry_iowindow w
    WHERE w.target_id = ANY(%(mdts)s) AND w.start >= %(since)s - interval '1 day'
        AND w."end" > %(since)s AND w."end" <= %(until)s AND w."end" > w.start
        AND w.basis <> %(TOTAL)s
    GROUP BY 1, 2, 3
),
totals AS (SELECT bin, sum(operations) AS operations FROM counted GROUP BY 1),
processes AS (
    SELECT c.bin, c.source_job_id, c.operations, {uid} AS uid
    FROM counted c JOIN site_sourcejobid s ON s.id = c.source_job_id
    WHERE c.kind = %(PROCESS)s
)
SELECT %(PROCESS)s || ':' || coalesce(-1 - p.uid, p.source_job_id),
    sum(p.operations), sum(p.operations) / nullif(min(totals.operations), 0), min(u.name),
    p.bin + %(width)s
FROM processes p JOIN totals USING (bin)
LEFT JOIN site_useraccount u ON u.uid = p.uid
GROUP BY p.bin, coalesce(-1 - p.uid, p.source_job_id)
""")
_PROCESS_COLUMNS = {
    name: HOST_EVIDENCE[name]
    for name in ("subject", "process_operations", "process_operations_share")
} | {"owner": CONTEXT["owner"]}
_CONTRADICTED_COLUMNS = {
    name: HOST_EVIDENCE[name] for name in ("subject", "contradicted_rpcs", "contradicted_hosts")
}
_OF_CAPACITY = {"capacity_per_s", "capacity_is_registered"}
_OF_OTHER_QUERIES = ((_PROCESS_COLUMNS.keys() | _CONTRADICTED_COLUMNS) - {"subject"}) | _OF_CAPACITY
_COLUMNS = {
    Subject.HOST: {
        name: kind for name, kind in HOST_EVIDENCE.items() if name not in _OF_OTHER_QUERIES
    },
    Subject.FILESYSTEM: FILESYSTEM_EVIDENCE,
}


def for_hosts(filesystem: int, until: datetime) -> Evidence:
    """Return the load from outside jobs in the five minutes before a time.

    Job ids count as unknown or contradicted after the usual delay of a job's record.
    """
    outside = _load_evidence(Subject.HOST, _OUTSIDE, filesystem, (until - PEAK_SPAN, until))
    until -= JOB_RECORD_DELAY
    unknown = _load_evidence(Subject.HOST, _UNKNOWN_IDS, filesystem, (until - PEAK_SPAN, until))
    return _joined(outside, unknown, _contradicted(filesystem, until - PEAK_SPAN, until))


def for_hosts_between(filesystem: int, start: datetime, end: datetime) -> Evidence:
    """Return the load from outside jobs in each five minutes of [start, end); hosts may recur."""
    return _joined(
        *(
            _load_evidence(Subject.HOST, query, filesystem, (start, end))
            for query in (_OUTSIDE, _UNKNOWN_IDS)
        ),
        _contradicted(filesystem, start, end),
        _processes(filesystem, start, end),
    )


def for_processes(filesystem: int, until: datetime) -> Evidence:
    """Return the operations of processes outside jobs in the five minutes before a time."""
    return _processes(filesystem, until - PEAK_SPAN, until)


def _processes(filesystem: int, start: datetime, end: datetime) -> Evidence:
    return _load_evidence(Subject.HOST, _PROCESSES, filesystem, (start, end), _PROCESS_COLUMNS)


def _contradicted(filesystem: int, start: datetime, end: datetime) -> Evidence:
    return _load_evidence(
        Subject.HOST, _CONTRADICTED, filesystem, (start, end), _CONTRADICTED_COLUMNS
    )


def _joined(*parts: Evidence) -> Evidence:
    return Evidence(Subject.HOST, pl.concat(part.frame for part in parts))


def for_filesystem(filesystem: int, until: datetime) -> Evidence:
    """Return attributed and unattributed RPCs of the hour before a time."""
    return for_filesystem_between(filesystem, until - HOUR, until)


def for_filesystem_between(filesystem: int, start: datetime, end: datetime) -> Evidence:
    """Return attributed and unattributed RPCs of each hour in [start, end)."""
    return _load_evidence(Subject.FILESYSTEM, _UNATTRIBUTED, filesystem, (start, end))


def _load_evidence(
    kind: Subject,
    query: sql.SQL,
    filesystem: int,
    span: tuple[datetime, datetime],
    names: dict[str, pl.DataType] | None = None,
) -> Evidence:
    width = _WIDTHS[kind]
    servers = Server.objects.filter(filesystem=filesystem, kind=Server.Kind.MDS)
    mdts = Target.objects.filter(filesystem=filesystem, kind=Target.Kind.MDT)
    # Several bins must begin at bucket edges of all levels in use.
    edge = levels.LOAD_WINDOWS.width if span[1] - span[0] <= width else width
    since, until = buckets.ceil(span[0], edge), buckets.ceil(span[1], edge)
    filling = [level for level in levels.LOAD_LEVELS if not width % level.width]
    pieces = piecewise.coarsest_pieces(filling, since, until)
    values = {
        **{kind.name: kind.value for kind in Principal},
        "servers": [server.pk for server in servers],
        "mdts": list(mdts.values_list("pk", flat=True)),
        "since": since,
        "until": until,
        "width": width,
        "filesystem": filesystem,
        "TOTAL": IoWindow.Basis.TOTAL.value,
    }
    rows = query.format(
        loads=_union(_LOADS, pieces),
        pending=_union(_PENDING, pieces),
        contradicted=_union(_CONTRADICTED_ROWS, pieces),
        operations=metadata_operations("w"),
        uid=sql.SQL(process_names.UID_OF_TEXT),
    )
    columns = {**(names or _COLUMNS[kind]), "until": CONTEXT["until"]}
    frame = frame_of(rows, columns, values).with_columns(filesystem=pl.lit(filesystem, pl.Int64))
    return with_context(kind, harm.with_capacity(frame), filesystem)


def _union(query: sql.SQL, pieces: Iterable[Piece]) -> sql.Composed:
    """Return a query over the tables of some pieces."""
    return sql.SQL(" UNION ALL ").join(
        query.format(
            table=sql.Identifier(piece.level.table),
            start=sql.Literal(piece.start),
            end=sql.Literal(piece.end),
            key=sql.SQL(process_names.KEY_OF_TEXT),
        )
        for piece in pieces
    )
