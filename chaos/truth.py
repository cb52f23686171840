"""Content of a source, counted in its text, and the corresponding content of the database.

The project's parsers and queries are not used: two patterns parse the text, and SQL reads the
tables.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import psycopg

    from chaos.source import Principal, Source

Counts = Counter[tuple[object, ...]]

_RPC = re.compile(
    rb"Handled RPC .*:x(?P<xid>\d+):12345-(?P<nid>\S+?@\w+):(?P<opcode>\d+):(?P<job>\S*) Request"
)
_ENTRY = re.compile(r"- job_id: +(?P<job>\S*)")
_COUNTER = re.compile(r"  (?P<kind>\w+): +\{ samples: +(?P<samples>\d+),(?:.* sum: +(?P<sum>\d+))?")
BYTES = ("read_bytes", "write_bytes")
_KINDS = (
    "open", "close", "mkdir", "unlink", "getattr", "setattr", "statfs", "read", "write", "punch",
    *BYTES,
)  # fmt: skip
_PRINCIPALS = (
    "job", "process", "host", "pending", "ambiguous", "unattributed", "contradicted",
)  # fmt: skip

_RAW_RPCS = """
SELECT v.name, n.text, coalesce(s.text, ''), w.opcode, sum(w.count)
FROM telemetry_rpcwindow w JOIN site_server v ON v.id = w.server_id
JOIN site_nid n ON n.id = w.nid_id LEFT JOIN site_sourcejobid s ON s.id = w.source_job_id
WHERE w.start >= %(begin)s AND w.start < %(end)s GROUP BY 1, 2, 3, 4
"""
_ATTRIBUTED_RPCS = """
SELECT v.name, w.kind, CASE WHEN w.kind = 1 THEN j.batch_id ELSE coalesce(s.text, n.text) END,
    sum(w.count)
FROM telemetry_{table} w JOIN site_server v ON v.id = w.server_id
LEFT JOIN jobs_job j ON j.id = w.job_id LEFT JOIN site_sourcejobid s ON s.id = w.source_job_id
LEFT JOIN site_nid n ON n.id = w.nid_id
WHERE w.start >= %(begin)s AND w.start < %(end)s GROUP BY 1, 2, 3
"""
_ATTRIBUTED_TABLES = {
    "attributed RPCs": "attributedrpc",
    "RPCs by minute": "rpcminute",
    "RPCs by ten minutes": "rpctenminutes",
    "load by minute": "loadminute",
    "load by ten minutes": "loadtenminutes",
}
_SUMS = ", ".join(f'sum(w."{kind}")' for kind in _KINDS)
_ALL = " + ".join(f'coalesce(sum(w."{kind}"), 0)' for kind in _KINDS)
_OF_SEED = "(w.source_job_id = 0 OR s.text = ANY(%(jobs)s))"
_RAW_OPERATIONS = f"""
SELECT coalesce(t.name, 'OSTs'), coalesce(s.text, ''), {_SUMS}
FROM telemetry_jobdelta w LEFT JOIN site_sourcejobid s ON s.id = w.source_job_id
LEFT JOIN site_target t ON t.id = w.target_id
WHERE {_OF_SEED} GROUP BY 1, 2
"""
_ATTRIBUTED_OPERATIONS = f"""
SELECT w.kind, CASE WHEN w.kind = 1 THEN j.batch_id ELSE coalesce(s.text, '') END, {_SUMS}
FROM telemetry_iowindow w LEFT JOIN site_sourcejobid s ON s.id = w.source_job_id
LEFT JOIN jobs_job j ON j.id = w.job_id
WHERE {_OF_SEED} GROUP BY 1, 2
"""
_TOTALS = {
    "raw RPCs": "SELECT sum(count) FROM telemetry_rpcwindow",
    **{
        layer: f"SELECT sum(count) FROM telemetry_{table}"
        for layer, table in _ATTRIBUTED_TABLES.items()
    },
    "raw operations": f"SELECT {_ALL} FROM telemetry_jobdelta w",
    "attributed operations": f"SELECT {_ALL} FROM telemetry_iowindow w",
}
_PENDING = """
SELECT (SELECT count(*) FROM ingest_dirtytrace) + (SELECT count(*) FROM ingest_dirtyreads)
    + (SELECT count(*) FROM ingest_dirtyjob) + (SELECT count(*) FROM ingest_dirtydeltas)
    + (SELECT count(*) FROM telemetry_dirtyrpcs WHERE start < %(end)s)
"""
# Operations of the same ten minutes, as far as they are rolled up.
_OFF_ROLL_UPS = """
WITH open_since AS (
    SELECT least(min(start), now() - interval '2 minutes') - interval '10 minutes' AS moment
    FROM telemetry_dirtyio WHERE start > '2000-01-01'
),
windows AS (
    SELECT floor(extract(epoch FROM start) / 600) AS bucket, kind, job_id, source_job_id, {sums}
    FROM telemetry_iowindow w GROUP BY 1, 2, 3, 4
),
rolled AS (
    SELECT extract(epoch FROM bucket) / 600 AS bucket, kind, job_id, source_job_id, {sums}
    FROM telemetry_iotenminutes w GROUP BY 1, 2, 3, 4
)
SELECT count(*) FILTER (WHERE w IS DISTINCT FROM r), count(*)
FROM windows w FULL JOIN rolled r USING (bucket, kind, job_id, source_job_id)
WHERE bucket * 600 < (SELECT extract(epoch FROM moment) FROM open_since)
""".format(sums=", ".join(f'sum(w."{kind}") AS "{kind}"' for kind in _KINDS))


def expected(source: Source) -> dict[str, Counts]:
    """Count a source's operations, for each layer of the database."""
    rpcs = Counter(
        (server, nid, job, opcode)
        for server, text in source.written.items()
        for _, nid, job, opcode in _records(text)
    )
    attributed: Counts = Counter()
    for (server, nid, job, _), count in rpcs.items():
        attributed[server, *source.rpc_principals[nid, job]] += count
    operations: Counts = Counter()
    for target in source.counters:
        for texts, sign in ((source.counters, 1), (source.counters_before, -1)):
            for job, kind, amount in _counters(texts[target]):
                operations["OSTs" if "-OST" in target else target, job, kind] += sign * amount
    return {
        "raw RPCs": Counter(rpcs),
        **dict.fromkeys(_ATTRIBUTED_TABLES, attributed),
        "raw operations": +operations,
        "attributed operations": +_by_principal(operations, source.job_principals),
    }


def stored(database: psycopg.Connection[Any], source: Source) -> dict[str, Counts]:
    """Return the stored data of a source; entries that persist over seeds are complete."""
    values = {"begin": source.begin, "end": source.end, "jobs": [*source.job_principals]}
    layers: dict[str, Counts] = {
        "raw RPCs": Counter(
            {tuple(key): int(count) for *key, count in database.execute(_RAW_RPCS, values)}
        )
    }
    for layer, table in _ATTRIBUTED_TABLES.items():
        rows = database.execute(_ATTRIBUTED_RPCS.format(table=table), values)
        layers[layer] = Counter()
        for server, kind, name, count in rows:
            layers[layer][server, _PRINCIPALS[kind - 1], name] += int(count)
    layers["raw operations"] = Counter(
        {
            (target, job, kind): int(amount)
            for target, job, *amounts in database.execute(_RAW_OPERATIONS, values)
            for kind, amount in zip(_KINDS, amounts, strict=True)
            if amount
        }
    )
    layers["attributed operations"] = Counter(
        {
            (_PRINCIPALS[principal - 1], name, kind): int(amount)
            for principal, name, *amounts in database.execute(_ATTRIBUTED_OPERATIONS, values)
            for kind, amount in zip(_KINDS, amounts, strict=True)
            if amount
        }
    )
    return layers


def totals(database: psycopg.Connection[Any]) -> dict[str, int]:
    """Return the stored totals of all seeds."""
    return {
        layer: int(database.execute(query).fetchall()[0][0] or 0)
        for layer, query in _TOTALS.items()
    }


def pending(database: psycopg.Connection[Any], source: Source) -> int:
    """Count intervals that wait for attribution or roll-up."""
    [(waiting,)] = database.execute(_PENDING, {"end": source.end}).fetchall()
    return int(waiting)


def off_roll_ups(database: psycopg.Connection[Any]) -> tuple[int, int]:
    """Return the number of wrong ten-minute sums of operations, and of all such sums."""
    [(off, sums)] = database.execute(_OFF_ROLL_UPS).fetchall()
    return int(off), int(sums)


def _records(text: bytes) -> Iterator[tuple[str, str, str, int]]:
    """Yield xid, NID, job id and opcode of each RPC; a repeated line counts once."""
    for line in dict.fromkeys(text.splitlines()):
        if match := _RPC.search(line):
            xid, nid, opcode, job = (part.decode() for part in match.groups())
            yield xid, nid, job, int(opcode)


def _counters(text: str) -> Iterator[tuple[str, str, int]]:
    job = ""
    for line in text.splitlines():
        if entry := _ENTRY.match(line):
            job = entry["job"]
        elif counter := _COUNTER.match(line):
            yield job, counter["kind"].removesuffix("_bytes"), int(counter["samples"])
            if counter["sum"]:
                yield job, counter["kind"], int(counter["sum"])


def _by_principal(operations: Counts, principals: Mapping[str, Principal]) -> Counts:
    attributed: Counts = Counter()
    for (_, job, kind), amount in operations.items():
        attributed[(*principals[str(job)], kind)] += amount
    return attributed
