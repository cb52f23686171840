"""Grid Engine accounting: the file ``accounting`` of SGE, Son of Grid Engine and Univa.

Source: docs/formats.md, "Grid Engine accounting"; accounting(5) and sge_status(5).
"""

import re
from collections.abc import Iterator

from collectors.batch import hostlists, localtime, states
from collectors.batch.records import Record, Row, numbered_lines, parts
from collectors.batch.values import (
    INT32_MAX,
    INT64_MAX,
    Unreadable,
    duration_s,
    quoted,
    whole_number,
)
from collectors.format import LineFormat
from collectors.parsed import Parsed
from collectors.source import Lines
from collectors.tables import JOBS

# Fields by position.
_QUEUE, _HOST, _OWNER, _NAME, _JOB, _ACCOUNT = 0, 1, 3, 4, 5, 6
_SUBMITTED, _STARTED, _ENDED, _FAILED, _EXIT_STATUS, _WALL = 8, 9, 10, 11, 12, 13
_USER_CPU, _SYSTEM_CPU, _PROJECT = 14, 15, 31
_PARALLEL_ENVIRONMENT, _SLOTS, _TASK, _CPU = 33, 34, 35, 36
_CATEGORY, _IO_WAIT, _PARALLEL_TASK = 39, 40, 41

_IO_WAIT_TIME = re.compile(r"\d{1,15}\.\d{1,9}", re.ASCII)
_DECIMAL = re.compile(r"\d{1,15}(?:\.\d{0,9})?", re.ASCII)
_TIME_LIMIT = re.compile(r"(?:^|[ ,])h_rt=([\d:]{1,12})", re.ASCII)
_NONE = "NONE"
_FILE = "accounting"  # its name, also of rotated files
_DEFAULT_ACCOUNT = "sge"
_MILLISECONDS = 10**11  # Univa's times; larger than any time in seconds
_SIGNAL_OFFSET = 128

_AFTER_JOB, _BY_SIGNAL, _TIME_LIMIT_ENFORCED = 100, 17, 37
_SIGNALLED = (_AFTER_JOB, _BY_SIGNAL, _TIME_LIMIT_ENFORCED)
_REQUEUED = (24, 25)  # migrating, rescheduling


def parse(source: Lines) -> Iterator[Parsed]:
    """Read the jobs and parallel tasks of an accounting file.

    Args:
        source: the file; its times are epoch seconds, or milliseconds (Univa).

    Yields:
        Parts with a frame of `tables.JOBS`, one row per record. A task of a parallel job on
        another host is a launch. Comments and blank lines are irrelevant.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "Grid Engine accounting".
    """
    return parts(JOBS, (Record(*line) for line in numbered_lines(source)), _read)


def _read(record: Record) -> Row | None:
    if not record.text.strip() or record.text.startswith("#"):
        return None
    return _job(_fields(record.text))


def _fields(text: str) -> list[str]:
    """Return the fields of a record; colons inside the job name and the category are restored."""
    fields = text.split(":")
    if "/" in fields[0] or fields[0].startswith(_FILE):  # all fields would be shifted
        raise Unreadable("the line begins with the name of a file: grep -h omits it")
    job = next((at for at in range(_JOB, len(fields) - 5) if _is_job(fields[at : at + 6])), None)
    if job is None:
        raise Unreadable("not a record: queue:host:group:owner:name:number:...")
    fields[_NAME:job] = [":".join(fields[_NAME:job])]
    io_wait = next(
        (at for at in range(_IO_WAIT, len(fields)) if _IO_WAIT_TIME.fullmatch(fields[at])), None
    )
    if io_wait is None or io_wait + 1 >= len(fields):
        raise Unreadable(f"the record has {len(fields)} fields and is cut")
    fields[_CATEGORY:io_wait] = [":".join(fields[_CATEGORY:io_wait])]
    return fields


def _is_job(fields: list[str]) -> bool:
    """Return whether fields are job number, account, priority and three times."""
    job, _, priority, *times = fields
    return all(text.isdigit() for text in (job, priority.removeprefix("-"), *times))


def _job(fields: list[str]) -> Row:
    started, ended = _readings(fields, _STARTED), _readings(fields, _ENDED)
    if not (started and ended):  # 0: the job never ran
        started = ended = ()
    submitted = _readings(fields, _SUBMITTED)
    if not submitted:
        raise Unreadable("submission_time is 0")
    started_at, ended_at = localtime.run_between(started, ended, None)
    task, parallel_task = _whole(fields, _TASK, "task_number"), fields[_PARALLEL_TASK]
    limit_s = _time_limit_s(fields[_CATEGORY])
    slots = _whole(fields, _SLOTS, "slots", INT32_MAX)
    # Of a parallel job with several slots, the record names the first host only.
    is_parallel = fields[_PARALLEL_ENVIRONMENT] != _NONE and slots > 1
    is_on_one_host = parallel_task != _NONE or not is_parallel
    return {
        "cluster": "",
        "batch_id": str(_whole(fields, _JOB, "job_number")),
        "array_index": str(task) if task else "",
        "launch": "" if parallel_task == _NONE else parallel_task,
        "name": fields[_NAME],
        "user": fields[_OWNER],
        "project": _project(fields),
        "queue": fields[_QUEUE],
        **_end(fields, limit_s, has_run=started_at is not None),
        "submitted_at": submitted[0],
        "started_at": started_at,
        "ended_at": ended_at,
        "node_count": 1 if started_at and is_on_one_host else None,
        "core_count": slots,
        "cpu_s": _cpu_s(fields) if started_at else None,
        "time_limit_s": limit_s,
        "nodes": hostlists.fold([fields[_HOST]]) if started_at else "",
    }


def _project(fields: list[str]) -> str:
    if fields[_PROJECT] not in {"", _NONE}:
        return fields[_PROJECT]
    return "" if fields[_ACCOUNT] == _DEFAULT_ACCOUNT else fields[_ACCOUNT]


def _end(fields: list[str], limit_s: int | None, *, has_run: bool) -> Row:
    """Return state, exit status and exit signal."""
    failed = whole_number(fields[_FAILED].strip(), "failed")
    status = _whole(fields, _EXIT_STATUS, "exit_status", INT32_MAX)
    signal = status - _SIGNAL_OFFSET if failed in _SIGNALLED and status > _SIGNAL_OFFSET else 0
    over_limit = limit_s is not None and _decimal(fields, _WALL, "ru_wallclock") >= limit_s
    if failed in _REQUEUED:
        state = states.REQUEUED
    elif not has_run:
        state = states.FAILED if failed else states.CANCELLED
    elif failed in _SIGNALLED and over_limit:
        state = states.TIMEOUT
    else:
        state = states.FAILED if failed or status else states.COMPLETED
    return {"state": state, "exit_status": 0 if signal else status, "exit_signal": signal}


def _cpu_s(fields: list[str]) -> float:
    """Return CPU seconds: of all processes of the job, or at least of its first one."""
    first_s = _decimal(fields, _USER_CPU, "ru_utime") + _decimal(fields, _SYSTEM_CPU, "ru_stime")
    return max(_decimal(fields, _CPU, "cpu"), first_s)


def _time_limit_s(category: str) -> int | None:
    limit = _TIME_LIMIT.search(category)
    return int(duration_s(limit[1], "h_rt")) if limit else None


def _readings(fields: list[str], at: int) -> localtime.Readings:
    """Return a time; none where it is 0."""
    number = _whole(fields, at, "time")
    seconds = number // 1000 if number >= _MILLISECONDS else number
    return (localtime.moment(seconds),) if seconds else ()


def _whole(fields: list[str], at: int, what: str, largest: int = INT64_MAX) -> int:
    return whole_number(fields[at], what, largest)


def _decimal(fields: list[str], at: int, what: str) -> float:
    if not _DECIMAL.fullmatch(fields[at]):
        raise Unreadable(f"{what} {quoted(fields[at])} is not a number")
    return float(fields[at])


SGE = LineFormat(
    name="sge",
    label="Grid Engine accounting",
    table=JOBS,
    parse=lambda source, _: parse(source),
    scopes=("cluster",),
    options=("cluster",),
    agent_inputs=("file", "pipe", "folder"),
)
