"""Rows of Slurm jobs and steps, from cells by sacct's names.

Source: docs/formats.md, "sacct"; src/sacct/print.c and src/common/parse_time.c of Slurm.
"""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from collectors.batch import hostlists, localtime, states
from collectors.batch.records import Row
from collectors.batch.values import INT32_MAX, Unreadable, duration_s, quoted, whole_number

_JOB_ID = re.compile(
    r"(?P<job>\d{1,20})"
    r"(?:_(?:(?P<task>\d{1,20})|\[(?P<tasks>[^\]|]*)\]))?"
    r"(?P<component>\+\d{1,9})?"
    r"(?:\.(?P<step>[\w+-]+))?",
    re.ASCII,
)
_ALLOCATED_CPUS = re.compile(r"(?:^|,)cpu=([^,]+)", re.ASCII)
_COUNT = re.compile(r"(?P<number>\d{1,18})(?P<unit>[KMG]?)", re.ASCII)
_ROUNDED = re.compile(r"\d{1,9}\.\d{1,9}[KMG]", re.ASCII)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_NO_TIME = frozenset({"", "Unknown", "None", "N/A", "0"})
_NO_DURATION = frozenset({"", "UNLIMITED", "Partition_Limit", "NOT_SET", "INVALID"})
_NO_NODES = "None assigned"


def row_of(fields: dict[str, str], zone: ZoneInfo) -> Row:
    """Return a row of `tables.JOBS` without its line.

    Args:
        fields: cells by the names of sacct's columns, in lower case; a missing cell is unknown.
        zone: of times without an offset.

    Raises:
        Unreadable: a cell has an invalid value.
    """
    batch_id, array_index, launch = _identity(fields)
    state = states.from_slurm(fields["state"]) if "state" in fields else states.UNKNOWN
    submitted = _readings(fields, "submit", zone)
    started_at, ended_at = _run(fields, state, zone, submitted[0] if submitted else None)
    exit_status, exit_signal = _exit(fields.get("exitcode", ""))
    node_list = fields.get("nodelist", "")
    nodes = "" if node_list == _NO_NODES else node_list
    hosts = hostlists.count(nodes)
    return {
        "cluster": fields.get("cluster", ""),
        "batch_id": batch_id,
        "array_index": array_index,
        "launch": launch,
        "name": fields.get("jobname", "").strip(),
        "user": fields.get("user", ""),
        "project": fields.get("account", ""),
        "queue": fields.get("partition", ""),
        "state": state,
        "exit_status": exit_status,
        "exit_signal": exit_signal,
        # The earlier reading in autumn: every export of a job must give the same submit time.
        "submitted_at": submitted[0] if submitted else None,
        "started_at": started_at,
        "ended_at": ended_at,
        "node_count": _count(fields, "nnodes", "allocnodes") or hosts or None,
        "core_count": _cores(fields),
        # Slurm adds up when a job ends; before, it prints zeros.
        "cpu_s": None if state in states.NOT_ENDED else _cpu_s(fields),
        "time_limit_s": _time_limit_s(fields),
        "nodes": nodes if started_at else "",
    }


def _identity(fields: dict[str, str]) -> tuple[str, str, str]:
    """Return batch id, array index and step of a record.

    JobIDRaw is the number of a task or component in its processes' environment. Without it, a
    component of a heterogeneous job keeps its offset ("123+1"), so that ids stay unique.
    """
    job_id = fields.get("jobid") or fields.get("jobidraw", "")
    match = _JOB_ID.fullmatch(job_id)
    if match is None:
        raise Unreadable(f"JobID {quoted(job_id)} is not a job id")
    raw = fields.get("jobidraw", "").partition(".")[0]
    batch_id = (
        str(whole_number(raw, "JobIDRaw")) if raw else match["job"] + (match["component"] or "")
    )
    tasks = (match["tasks"] or "").partition("%")[0]  # "%7": the limit of concurrent tasks
    return batch_id, match["task"] or tasks, match["step"] or ""


def _run(
    fields: dict[str, str], state: str, zone: ZoneInfo, submitted: datetime | None
) -> tuple[datetime | None, datetime | None]:
    """Return start and end; a job that was cancelled while pending has only an end."""
    elapsed_s = _duration_s(fields, "elapsed")
    if elapsed_s is None:
        elapsed_s = _count(fields, "elapsedraw")
    waited = state == states.PENDING or (fields.get("nodelist") == _NO_NODES and not elapsed_s)
    starts = () if waited else _readings(fields, "start", zone)
    # Some exports print the start, or the current time, as the end of a running job.
    ends = () if state in states.NOT_ENDED else _readings(fields, "end", zone)
    # Elapsed excludes suspension.
    lasted_s = None if elapsed_s is None else elapsed_s + (_duration_s(fields, "suspended") or 0)
    return localtime.run_between(starts, ends, lasted_s, submitted)


def _readings(fields: dict[str, str], column: str, zone: ZoneInfo) -> localtime.Readings:
    text = fields.get(column, "")
    if text in _NO_TIME:
        return ()
    if text.isdigit():
        return (localtime.moment(whole_number(text, column)),)
    return localtime.readings(localtime.stamp(text, column), zone)


def _exit(text: str) -> tuple[int | None, int | None]:
    status, _, signal = text.partition(":")
    return _optional(status, "ExitCode"), _optional(signal, "ExitCode")


def _count(fields: dict[str, str], *columns: str) -> int | None:
    """Return the first exact number among `columns`."""
    texts = ((fields.get(column, ""), column) for column in columns)
    return next(
        (number for text, name in texts if (number := _scaled(text, name)) is not None), None
    )


def _scaled(text: str, what: str) -> int | None:
    """Return a number as sacct prints it: 2K is 2,048; 2.05K is rounded and unknown."""
    if not text or _ROUNDED.fullmatch(text):
        return None
    match = _COUNT.fullmatch(text)
    if match is None:
        return whole_number(text, what, INT32_MAX)
    return whole_number(str(int(match["number"]) * _UNITS[match["unit"]]), what, INT32_MAX)


def _optional(text: str, what: str) -> int | None:
    return whole_number(text, what, INT32_MAX) if text else None


def _cores(fields: dict[str, str]) -> int | None:
    cores = _count(fields, "alloccpus", "ncpus")
    allocated = _ALLOCATED_CPUS.search(fields.get("alloctres", ""))
    if cores is None and allocated:
        return _scaled(allocated[1], "AllocTRES cpu")
    return cores


def _duration_s(fields: dict[str, str], column: str) -> float | None:
    text = fields.get(column, "")
    return None if text in _NO_DURATION else duration_s(text, column)


def _cpu_s(fields: dict[str, str]) -> float | None:
    total_s = _duration_s(fields, "totalcpu")
    user_s, system_s = _duration_s(fields, "usercpu"), _duration_s(fields, "systemcpu")
    if total_s is None and user_s is not None and system_s is not None:
        return user_s + system_s
    return total_s


def _time_limit_s(fields: dict[str, str]) -> int | None:
    limit_s = _duration_s(fields, "timelimit")
    if limit_s is not None:
        return int(limit_s)
    minutes = fields.get("timelimitraw", "")
    return (
        None if minutes in _NO_DURATION else whole_number(minutes, "TimelimitRaw", INT32_MAX) * 60
    )
