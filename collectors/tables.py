"""Schemas of all tables that collectors produce."""

from dataclasses import dataclass

import polars as pl

UTC_US = pl.Datetime("us", "UTC")

# Counters of job_stats and md_stats, in operations. Metadata operations:
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
# Data and object operations. An MDT counts the first four for small files stored on it (data on
# MDT). `read` and `write` count the requests whose bytes are in `read_bytes` and `write_bytes`.
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
# Also counted in another operation: stored, never added up.
SUBSETS = (
    "samedir_rename",
    "crossdir_rename",
    "parallel_rename_file",
    "parallel_rename_dir",
    "rename_trylocks",
)
BYTES = ("read_bytes", "write_bytes")
COUNTED = OPERATIONS + SUBSETS + BYTES  # as sources name them
# Time of an operation on the server, by kind, in microseconds (Lustre 2.14 and later). Null:
# unknown, or no operations.
TIMES = {f"{name}_us": name for name in OPERATIONS}  # the operations of each time
COUNTERS = (*COUNTED, *TIMES)


@dataclass(frozen=True, eq=False)  # each is one object: usable as a key
class Table:
    """A table's name, grain, and columns with their types."""

    name: str
    grain: str
    columns: dict[str, pl.DataType]
    nullable: frozenset[str] = frozenset()  # columns that may be null

    def empty(self) -> pl.DataFrame:
        """Return an empty frame."""
        return pl.DataFrame(schema=self.columns)

    def frame(self, rows: list[dict[str, object]]) -> pl.DataFrame:
        """Return `rows` as a frame of exactly these columns; a missing key is null."""
        return pl.DataFrame(rows, schema=self.columns, orient="row")


REJECTS = Table(
    "rejects",
    grain="one row per line or record that claims to be data and cannot be parsed",
    columns={
        "line": pl.Int64(),  # 1-based, in the decompressed content; a record's first line
        "text": pl.String(),  # truncated at parsed.REJECT_TEXT_CHARACTERS
        "reason": pl.String(),
    },
)

RPC_WINDOWS = Table(
    "rpc_windows",
    grain="one row per 10 s x NID x job id x service x opcode (keys may repeat: rows add up)",
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

RPC_SECONDS = Table(
    "rpc_seconds",
    grain="one row per second of arrival x 10 s of record x sender x service x opcode, in slow"
    " episodes only (keys may repeat: rows add up, `nids` is the largest)",
    columns={
        "second": UTC_US,  # of arrival, at most three minutes before the record
        "start": UTC_US,  # of the row in `RPC_WINDOWS`
        # The sender is the job id or, without one, the NID. Both are "" for all senders that are
        # not among those with most requests.
        "job": pl.String(),
        "nid": pl.String(),
        "service": pl.String(),
        "opcode": pl.Int16(),
        "count": pl.Int64(),  # of timed RPCs
        "total_us_sum": pl.Int64(),
        "service_us_sum": pl.Int64(),
        "nids": pl.Int64(),  # of the sender in that second, over its services and opcodes
    },
)

REQUEST_WINDOWS = Table(
    "request_windows",
    grain="one row per 10 s x NID x service x opcode (keys may repeat: rows add up)",
    columns={
        "start": UTC_US,
        "nid": pl.String(),
        "service": pl.String(),  # thread-name base; "": not in the source
        "opcode": pl.Int16(),
        "count": pl.Int64(),  # requests by arrival; their outcome is unknown
        "first": UTC_US,
        "last": UTC_US,
    },
)

JOB_COUNTERS = Table(
    "job_counters",
    grain="one row per target x job id: totals since the entry was created",
    columns={
        "line": pl.Int64(),  # of the entry's job_id
        "target": pl.String(),  # "lustre-MDT0000"; "": not in the source
        "job": pl.String(),  # as printed, unquoted and unescaped; may be ""
        "snapshot_at": UTC_US,  # last update of the entry; null: not a wall clock
        "entry_started_at": UTC_US,  # creation of the entry; null: unknown
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

# The basis of a delta (docs/architecture.md, "I/O windows").
BASES = ("difference", "new_entry", "restarted", "reset", "total")

JOB_DELTAS = Table(
    "job_deltas",
    grain="one row per poll interval x MDT (or all OSTs of a host) x job id: increments",
    columns={
        "start": UTC_US,  # the previous poll; for a total, its only poll
        "end": UTC_US,
        "target": pl.String(),  # an MDT; "": the sum of the OSTs
        "job": pl.String(),
        "basis": pl.String(),  # one of BASES; for several OSTs, the last in that order
        **dict.fromkeys(COUNTERS, pl.Int64()),  # null: unknown, not zero
    },
    nullable=frozenset(COUNTERS),
)

TARGET_DELTAS = Table(
    "target_deltas",
    grain="one row per poll interval x target: increments by all clients",
    columns={
        "start": UTC_US,
        "end": UTC_US,
        "target": pl.String(),
        "basis": pl.String(),  # "difference", "reset" or "total"
        **dict.fromkeys(COUNTERS, pl.Int64()),
    },
    nullable=frozenset(COUNTERS),
)

EXPORT_COUNTERS = Table(
    "export_counters",
    grain="one row per MDT x NID: totals of one client since it connected or clear",
    columns={
        "line": pl.Int64(),
        "target": pl.String(),
        "nid": pl.String(),
        "snapshot_at": UTC_US,
        **dict.fromkeys(COUNTERS, pl.Int64()),
    },
    nullable=frozenset({"snapshot_at", *COUNTERS}),
)

EXPORT_DELTAS = Table(
    "export_deltas",
    grain="one row per poll interval x MDT x NID: increments of one client",
    columns={
        "start": UTC_US,
        "end": UTC_US,
        "target": pl.String(),
        "nid": pl.String(),
        "basis": pl.String(),  # one of BASES
        "metadata_operations": pl.Int64(),
        "metadata_us": pl.Int64(),  # their time on the server; null: unknown
    },
    nullable=frozenset({"metadata_us"}),
)

SERVICE_COUNTERS = Table(
    "service_counters",
    grain="one row per service x counter: totals since service start or clear",
    columns={
        "line": pl.Int64(),
        "service": pl.String(),  # thread-name base: "mdt_rdpg", "nfsd"; "": not in the source
        "snapshot_at": UTC_US,  # time of the read; null: not a wall clock
        "counted_since": UTC_US,  # null: unknown
        "counter": pl.String(),  # "req_waittime", "ldlm_ibits_enqueue", "nfs3_lookup"
        "unit": pl.String(),  # of min, max and sum: one of SERVICE_UNITS
        "samples": pl.Int64(),
        "min": pl.Int64(),
        "max": pl.Int64(),
        "sum": pl.Int64(),
    },
    nullable=frozenset({"snapshot_at", "counted_since"}),
)
CALLS = "req_calls"  # all calls of a service without waiting times
REQUEST_COUNTERS = ("req_waittime", CALLS)  # a service has one of these, which counts all requests
SERVICE_UNITS = ("reqs", "usec", "sec", "bufs", "bytes", "pages", "regs")

JOBS = Table(
    "jobs",
    grain="one row per accounting record: a job, or a launch inside it (a Slurm step)",
    columns={
        "line": pl.Int64(),
        "cluster": pl.String(),  # "": not in the record
        "batch_id": pl.String(),  # server part stripped: "3567126"; Slurm: JobIDRaw
        "array_index": pl.String(),  # "", "4", or "1-3,7" for pending tasks
        "launch": pl.String(),  # "": the job itself; otherwise the step: "batch", "0"
        "name": pl.String(),
        "user": pl.String(),
        "project": pl.String(),  # account
        "queue": pl.String(),  # partition
        "state": pl.String(),  # normalized: one of batch.states.STATES
        "exit_status": pl.Int32(),
        "exit_signal": pl.Int32(),
        "submitted_at": UTC_US,  # null: of launches only
        "started_at": UTC_US,  # null: not started
        "ended_at": UTC_US,  # null: not ended
        "node_count": pl.Int32(),
        "core_count": pl.Int32(),
        "cpu_s": pl.Float64(),  # CPU seconds used
        "time_limit_s": pl.Int64(),
        "nodes": pl.String(),  # folded host list: "n[01-04]"; "": no compute nodes
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
    grain="one row per launch record (start or end)",
    columns={
        "line": pl.Int64(),
        "launch": pl.String(),  # apid
        "batch_id": pl.String(),  # server part stripped; "": unknown
        "array_index": pl.String(),
        "uid": pl.Int64(),
        "started_at": UTC_US,  # null in an end record
        "ended_at": UTC_US,  # null in a start record
        "node_count": pl.Int32(),
        "nodes": pl.String(),  # folded host list: "nid[02258-02259]"; "" in an end record
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
    grain="one row per record of a PanDA job: its state at one time",
    columns={
        "line": pl.Int64(),  # number of the record in the source
        "panda_id": pl.Int64(),
        "task_id": pl.Int64(),  # jeditaskid; null: no task
        "attempt": pl.Int32(),
        "reported_batch_id": pl.String(),  # as PanDA has it: "3141592.sdb", "schedd#123.0"
        "batch_id": pl.String(),  # server part stripped; "": none, or not a batch id
        "array_index": pl.String(),
        "site": pl.String(),  # computingsite: a queue of PanDA
        "host": pl.String(),  # worker node
        "state": pl.String(),  # as PanDA names it
        "error": pl.String(),  # messages of PanDA, its pilot and the program
        "user": pl.String(),
        "transformation": pl.String(),
        "created_at": UTC_US,
        "started_at": UTC_US,  # null: not started
        "ended_at": UTC_US,  # null: not ended
        "modified_at": UTC_US,  # of the record
        "core_count": pl.Int32(),  # used
        "cpu_s": pl.Float64(),
        "setup_s": pl.Float64(),  # set-up time of the pilot
        "get_job_s": pl.Float64(),  # the pilot's request for the job
        "stage_in_s": pl.Float64(),  # copy of input to the node
        "payload_s": pl.Float64(),  # run of the program
        "stage_out_s": pl.Float64(),  # copy of output from the node
        "event_count": pl.Int64(),
        "max_pss_bytes": pl.Int64(),  # proportional set size of all processes
        "max_swap_bytes": pl.Int64(),
        "transfer_type": pl.String(),  # null: not in the record
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
            "get_job_s",
            "stage_in_s",
            "payload_s",
            "stage_out_s",
            "event_count",
            "max_pss_bytes",
            "max_swap_bytes",
            "transfer_type",
        }
    ),
)

# Tables of experiments: planned tests, in files that people load. A format without a name for its
# run leaves `run` empty: the load names it.
_NAMED_TEXTS = pl.List(pl.Struct({"name": pl.String(), "value": pl.String()}))
_NAMED_NUMBERS = pl.List(pl.Struct({"name": pl.String(), "value": pl.Float64()}))

RUNS = Table(
    "runs",
    grain="one row per run, or per part of a run that a file describes",
    columns={
        "line": pl.Int64(),
        "arm": pl.String(),  # "": not in the source
        "run": pl.String(),  # name of the run in its experiment; "": not in the source
        "state": pl.String(),  # finished, failed, hung; "": not in the source
        "started_at": UTC_US,
        "scale": pl.Float64(),  # nodes, in scaling tests
        "events": pl.Int64(),  # processed by the run
        "labels": _NAMED_TEXTS,  # settings: protocol, locality, release
        "metrics": _NAMED_NUMBERS,  # units in the names: wall_s, read_bytes, efficiency_share
        "steps": pl.List(pl.Struct({"name": pl.String(), "seconds": pl.Float64()})),
        "counters": pl.List(  # storage timing; subsystems are layers over the same bytes
            pl.Struct(
                {
                    "subsystem": pl.String(),
                    "counter": pl.String(),
                    "operations": pl.Int64(),
                    "successes": pl.Int64(),
                    "bytes": pl.Float64(),
                    "total_s": pl.Float64(),
                    "min_s": pl.Float64(),
                    "max_s": pl.Float64(),
                }
            )
        ),
        "markers": pl.List(pl.String()),  # lines that prove an optimisation was active
    },
    nullable=frozenset({"started_at", "scale", "events"}),
)

SYSTEM_CALLS = Table(
    "system_calls",
    grain="one row per 10 s x call x path x result (keys may repeat: rows add up)",
    columns={
        # Start of the window: since the epoch, midnight or the first line. Null: no times.
        "second": pl.Int64(),
        "call": pl.String(),  # as strace names it: "openat", "newfstatat"
        "path": pl.String(),  # absolute where it is known; null: the call has none
        "error": pl.String(),  # "ENOENT"; "": succeeded; "?": failed for an unknown reason
        "count": pl.Int64(),
        "timed": pl.Int64(),  # of `count`, those with a duration
        "duration_s": pl.Float64(),  # inside the timed calls
        "first_line": pl.Int64(),
    },
    nullable=frozenset({"second", "path"}),
)

# Levels and cumulative counters of a run's processes, as prmon names them.
PROCESS_LEVELS = ("pss_bytes", "rss_bytes", "swap_bytes", "vmem_bytes", "nprocs", "nthreads")
PROCESS_TOTALS = (
    "utime_s",
    "stime_s",
    "rchar_bytes",
    "wchar_bytes",
    "read_bytes",
    "write_bytes",
    "rx_bytes",  # of the whole node
    "tx_bytes",
)

PROCESS_SAMPLES = Table(
    "process_samples",
    grain="one row per sample of the processes of a run",
    columns={
        "line": pl.Int64(),
        "at": UTC_US,
        "elapsed_s": pl.Float64(),
        **dict.fromkeys((*PROCESS_LEVELS, *PROCESS_TOTALS), pl.Float64()),
    },
    nullable=frozenset({*PROCESS_LEVELS, *PROCESS_TOTALS}),
)

PAIR_TRANSFERS = Table(
    "pair_transfers",
    grain="one row per transfer of a client to or from a storage target",
    columns={
        "line": pl.Int64(),
        "start_s": pl.Float64(),  # since any fixed moment
        "client": pl.String(),
        "target": pl.String(),
        "bytes": pl.Int64(),
        "duration_s": pl.Float64(),
        "x": pl.Float64(),  # position of the client's node in the interconnect
        "y": pl.Float64(),
        "z": pl.Float64(),
    },
    nullable=frozenset({"x", "y", "z"}),
)
