"""Batches as agents send them, rendered by the tests themselves. Times as in `tests.logs`."""

import io
import json
from uuid import UUID

import polars as pl

from collectors import tables
from tests.logs import OPEN, at

STREAM = UUID("7d0f6d1e-2c2a-4f57-9d5a-0f6b0a4ab001")
ARROW = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"
TABLES = {table.name: table for table in vars(tables).values() if isinstance(table, tables.Table)}


def window(clock, nid="1@gni", opcode=OPEN, *, job="", count=1, us=(30, 40), **values):
    """A row of rpc_windows: `count` RPCs at one moment, each of `us` service and total time."""
    moment = at(clock)
    service, total = us
    return {
        "start": moment.replace(second=moment.second // 10 * 10, microsecond=0),
        "nid": nid,
        "job": job,
        "service": "mdt",
        "opcode": opcode,
        "count": count,
        "timed": count,
        "service_us_sum": service * count,
        "service_us_min": service,
        "service_us_max": service,
        "queue_us_min": total - service,
        "queue_us_max": total - service,
        "total_us_sum": total * count,
        "first": moment,
        "last": moment,
    } | values


def delta(start, end, job=None, target="lake-MDT0000", basis="difference", **counters):
    """A row of job_deltas or, without a job, of target_deltas."""
    of_job = {} if job is None else {"job": job}
    poll = {"start": at(start), "end": at(end), "target": target, "basis": basis}
    return poll | of_job | dict.fromkeys(tables.COUNTERS) | counters


def job_row(line, run):
    """A row of jobs."""
    batch_id, _, step = run.batch_id.partition(".")
    return {
        "line": line, "cluster": run.cluster, "batch_id": batch_id, "array_index": "",
        "launch": step, "name": run.name, "user": run.user, "project": run.project,
        "queue": run.queue, "state": "completed" if run.end else "running",
        "exit_status": 0, "exit_signal": 0,
        "submitted_at": at(run.submit), "started_at": at(run.start),
        "ended_at": run.end and at(run.end), "node_count": run.node_count,
        "core_count": run.cores, "cpu_s": 3_600.0, "time_limit_s": None, "nodes": run.nodes,
    }  # fmt: skip


def batch(sequence, table, rows, coverage=(), **changes):
    """Return the manifest and the rows of a batch."""
    lines = sum(row.get("count", 1) for row in rows)
    manifest = {
        "stream": str(STREAM),
        "sequence": sequence,
        "table": table,
        "account": {"lines": lines, "accepted": lines, "rejected": 0, "irrelevant": 0},
        "coverage": [
            {"target": target, "start": at(start).isoformat(), "end": at(end).isoformat()}
            for target, start, end in coverage
        ],
        "rejects": [],
        "rejected_by_reason": {},
    } | changes
    return manifest, rows


def traced(sequence, start, end, *rows, **changes):
    """Return a batch of windows that covers [start, end]."""
    return batch(sequence, "rpc_windows", rows, [("", start, end)], **changes)


def arrow(table, rows, **options):
    """Encode rows like an agent."""
    stream = io.BytesIO()
    frame = rows if isinstance(rows, pl.DataFrame) else TABLES[table].frame(list(rows))
    frame.write_ipc_stream(stream, **{"compression": "zstd"} | options)
    return stream.getvalue()


def ndjson(_table, rows):
    """Encode rows as NDJSON."""
    return "".join(f"{json.dumps(row, default=lambda v: v.isoformat())}\n" for row in rows).encode()


ENCODERS = {ARROW: arrow, NDJSON: ndjson}
