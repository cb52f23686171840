"""The declared schema of every table that a collector may produce."""

from dataclasses import dataclass

import polars as pl

UTC_US = pl.Datetime("us", "UTC")

# What job_stats and md_stats count, each a number of operations. These change or look up metadata:
METADATA_OPERATIONS = (
    "open",
    "close",
    "mknod",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "rename",
    "getattr",
    "setattr",
    "getxattr",
    "setxattr",
    "statfs",
    "sync",
    "migrate",
    "readpage",
)
# These read, write or keep objects; an MDT counts the first four for small files kept on it. `read`
# and `write` are requests: one thing with `read_bytes` and `write_bytes`, counted once.
DATA_OPERATIONS = (
    "read",
    "write",
    "punch",
    "fallocate",
    "destroy",
    "create",
    "get_info",
    "set_info",
    "quotactl",
    "prealloc",
)
OPERATIONS = METADATA_OPERATIONS + DATA_OPERATIONS
# Counted inside another operation: stored, never summed.
SUBSETS = (
    "samedir_rename",
    "crossdir_rename",
    "parallel_rename_file",
    "parallel_rename_dir",
    "rename_trylocks",
)
BYTES = ("read_bytes", "write_bytes")
COUNTERS = OPERATIONS + SUBSETS + BYTES


@dataclass(frozen=True)
class Table:
    """A table's name, what one row stands for, and its columns with their types."""

    name: str
    grain: str
    columns: dict[str, pl.DataType]
    nullable: frozenset[str] = frozenset()  # columns in which a value may be missing

    def empty(self) -> pl.DataFrame:
        """Return the table without rows."""
        return pl.DataFrame(schema=self.columns)

    def frame(self, rows: list[dict[str, object]]) -> pl.DataFrame:
        """Return `rows` as a frame of exactly these columns; a missing key is null."""
        return pl.DataFrame(rows, schema=self.columns, orient="row")


REJECTS = Table(
    "rejects",
    grain="one row per line or record that claims to be data and is not readable",
    columns={
        "line": pl.Int64(),  # 1-based, in the decompressed text; a record's first line
        "text": pl.String(),  # cut at parsed.REJECT_TEXT_CHARACTERS
        "reason": pl.String(),
    },
)

RPC_WINDOWS = Table(
    "rpc_windows",
    grain="one row per 10 s x NID x job id x service x opcode (a key may recur: rows add up)",
    columns={
        "start": UTC_US,
        "nid": pl.String(),
        "job": pl.String(),  # "": the request carried no job id
        "service": pl.String(),  # thread-name base: "mdt", "mdt_rdpg", "ll_ost_io"
        "opcode": pl.Int16(),
        "count": pl.Int64(),
        "timed": pl.Int64(),  # of `count`, those whose line has a timing tail
        "service_us_sum": pl.Int64(),  # time in the handler, without the queue
        "service_us_min": pl.Int64(),  # 0 where timed is 0, like the three below
        "service_us_max": pl.Int64(),
        "queue_us_min": pl.Int64(),  # arrival to start of handling
        "queue_us_max": pl.Int64(),
        "total_us_sum": pl.Int64(),  # arrival to end, queue included
        "first": UTC_US,
        "last": UTC_US,
    },
)

REQUEST_WINDOWS = Table(
    "request_windows",
    grain="one row per 10 s x NID x service x opcode (a key may recur: rows add up)",
    columns={
        "start": UTC_US,
        "nid": pl.String(),
        "service": pl.String(),  # thread-name base; "" where the text does not say
        "opcode": pl.Int16(),
        "count": pl.Int64(),  # of requests that arrived; how they went is not known
        "first": UTC_US,
        "last": UTC_US,
    },
)

JOB_COUNTERS = Table(
    "job_counters",
    grain="one row per target x job id: totals since the entry was created",
    columns={
        "line": pl.Int64(),  # of the entry's job_id
        "target": pl.String(),  # "lustre-MDT0000"; "" where the text does not say
        "job": pl.String(),  # as printed, unquoted and unescaped; "" is legal
        "snapshot_at": UTC_US,  # the entry's last update; null: not a wall clock
        "entry_started_at": UTC_US,  # when the entry was created; null: not known
        **dict.fromkeys(COUNTERS, pl.Int64()),
    },
    nullable=frozenset({"snapshot_at", "entry_started_at", *COUNTERS}),
)

TARGET_COUNTERS = Table(
    "target_counters",
    grain="one row per target: totals of all clients since mount or clear",
    columns={
        "line": pl.Int64(),
        "target": pl.String(),
        "snapshot_at": UTC_US,
        **dict.fromkeys(COUNTERS, pl.Int64()),
    },
    nullable=frozenset({"snapshot_at", *COUNTERS}),
)

# On what a delta rests (docs/architecture.md, "I/O windows").
BASES = ("difference", "new_entry", "restarted", "reset", "total")

JOB_DELTAS = Table(
    "job_deltas",
    grain="one row per poll interval x MDT, or all OSTs of one host, x job id: what was added",
    columns={
        "start": UTC_US,  # the poll before; of a total: its only poll
        "end": UTC_US,
        "target": pl.String(),  # an MDT; "": the OSTs, added up
        "job": pl.String(),
        "basis": pl.String(),  # one of BASES; of several OSTs: the last of them in that order
        **dict.fromkeys(COUNTERS, pl.Int64()),  # null: not told, which is not zero
    },
    nullable=frozenset(COUNTERS),
)

TARGET_DELTAS = Table(
    "target_deltas",
    grain="one row per poll interval x target: what all clients added",
    columns={
        "start": UTC_US,
        "end": UTC_US,
        "target": pl.String(),
        "basis": pl.String(),  # "difference", "reset" or "total"
        **dict.fromkeys(COUNTERS, pl.Int64()),
    },
    nullable=frozenset(COUNTERS),
)

SERVICE_COUNTERS = Table(
    "service_counters",
    grain="one row per service x counter: totals since the service began or was cleared",
    columns={
        "line": pl.Int64(),
        "service": pl.String(),  # thread-name base: "mdt_rdpg"; "" where the text does not say
        "snapshot_at": UTC_US,  # the read itself; null: not a wall clock
        "counted_since": UTC_US,  # null: not known
        "counter": pl.String(),  # "req_waittime", "ldlm_ibits_enqueue", "mds_getattr"
        "unit": pl.String(),  # of the three below `samples`: one of SERVICE_UNITS
        "samples": pl.Int64(),
        "min": pl.Int64(),
        "max": pl.Int64(),
        "sum": pl.Int64(),
    },
    nullable=frozenset({"snapshot_at", "counted_since"}),
)
SERVICE_UNITS = ("reqs", "usec", "sec", "bufs", "bytes", "pages", "regs")

JOBS = Table(
    "jobs",
    grain="one row per accounting record: a job, or a launch inside it (a Slurm step)",
    columns={
        "line": pl.Int64(),
        "cluster": pl.String(),  # as the record says; "": it does not
        "batch_id": pl.String(),  # server part stripped: "3567126"; Slurm: JobIDRaw
        "array_index": pl.String(),  # "", "4", or "1-3,7" for tasks that are not split yet
        "launch": pl.String(),  # "": the job itself; otherwise the step: "batch", "0"
        "name": pl.String(),
        "user": pl.String(),
        "project": pl.String(),  # account
        "queue": pl.String(),  # partition
        "state": pl.String(),  # batch.states: one vocabulary for every batch system
        "exit_status": pl.Int32(),
        "exit_signal": pl.Int32(),
        "submitted_at": UTC_US,  # null only where the source has none
        "started_at": UTC_US,  # null: not started
        "ended_at": UTC_US,  # null: not ended
        "node_count": pl.Int32(),
        "core_count": pl.Int32(),
        "cpu_s": pl.Float64(),  # CPU seconds used; null: not told
        "time_limit_s": pl.Int64(),
        "nodes": pl.String(),  # folded host list: "n[01-04]"; "": none, or not compute nodes
    },
    nullable=frozenset(
        {
            "exit_status",
            "exit_signal",
            "submitted_at",
            "started_at",
            "ended_at",
            "node_count",
            "core_count",
            "cpu_s",
            "time_limit_s",
        }
    ),
)

LAUNCHES = Table(
    "launches",
    grain="one row per launch record (its start or its end)",
    columns={
        "line": pl.Int64(),
        "launch": pl.String(),  # apid
        "batch_id": pl.String(),  # server part stripped; "": unknown
        "array_index": pl.String(),
        "uid": pl.Int64(),
        "started_at": UTC_US,  # null in a record of the end
        "ended_at": UTC_US,  # null in a record of the start
        "node_count": pl.Int32(),
        "nodes": pl.String(),  # folded host list: "nid[02258-02259]"; "" in a record of the end
        "command": pl.String(),
        "exit_status": pl.Int32(),
        "exit_signal": pl.Int32(),
    },
    nullable=frozenset(
        {"uid", "started_at", "ended_at", "node_count", "exit_status", "exit_signal"}
    ),
)

WORKLOAD_JOBS = Table(
    "workload_jobs",
    grain="one row per record of a PanDA job: its state at one moment",
    columns={
        "line": pl.Int64(),  # number of the record in its text
        "panda_id": pl.Int64(),
        "task_id": pl.Int64(),  # jeditaskid; null: it is of no task
        "attempt": pl.Int32(),
        "told_batch_id": pl.String(),  # as PanDA has it: "3141592.sdb", "schedd#123.0"
        "batch_id": pl.String(),  # server part stripped; "": not known, or no batch job's
        "array_index": pl.String(),
        "site": pl.String(),  # computingsite: a queue of PanDA
        "host": pl.String(),  # worker node
        "state": pl.String(),  # PanDA's own word
        "error": pl.String(),  # what PanDA, its pilot or the program say went wrong
        "user": pl.String(),
        "transformation": pl.String(),
        "created_at": UTC_US,
        "started_at": UTC_US,  # null: not started
        "ended_at": UTC_US,  # null: not ended
        "modified_at": UTC_US,  # of the record
        "core_count": pl.Int32(),  # used; null: not told, like the two above
        "cpu_s": pl.Float64(),
        "setup_s": pl.Float64(),  # how long the pilot prepared the program
    },
    nullable=frozenset(
        {
            "task_id",
            "attempt",
            "created_at",
            "started_at",
            "ended_at",
            "modified_at",
            "core_count",
            "cpu_s",
            "setup_s",
        }
    ),
)
