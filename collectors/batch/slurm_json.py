"""Slurm's JSON: ``sacct --json`` and ``squeue --json``, of every version of its data.

The version field is ignored, because saved and edited responses may state a wrong version.
A number is a number, null, or an object with ``set``, ``infinite`` and ``number``; a state is a
word or a list of words. Values are converted to the cells that sacct prints.

Source: docs/formats.md, "sacct --json"; src/plugins/data_parser of Slurm.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from collectors.batch import slurm, states
from collectors.batch.records import Record, Row, parts
from collectors.batch.values import Unreadable, quoted, whole_number
from collectors.json_stream import Element, Members, elements
from collectors.parsed import REJECT_TEXT_CHARACTERS, Parsed
from collectors.source import Source
from collectors.tables import JOBS

LONGEST = 8 * 1024 * 1024  # characters of a job with its steps

_Cells: TypeAlias = dict[str, str]


def parse(source: Source, zone: ZoneInfo) -> Iterator[Parsed]:
    """Read the jobs and steps of a response of sacct or squeue.

    Args:
        source: a response, or several.
        zone: of times without a UTC offset; Slurm's JSON has epoch seconds.

    Yields:
        Parts with a frame of `tables.JOBS`. Each job and each step counts as a line; other
        members of a response are irrelevant.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "sacct --json".
    """
    return parts(JOBS, _records(source), lambda record: _read(record, zone))


@dataclass(frozen=True)
class _Step(Record):
    job: Members | None = None
    members: Any = None


def _records(source: Source) -> Iterator[Element | _Step]:
    line = 0
    for element in elements(source, ("jobs",), LONGEST):
        line += 1
        yield replace(element, line=line)
        steps = (element.members or {}).get("steps")
        for step in steps if isinstance(steps, list) else ():
            line += 1
            text = json.dumps(step)[:REJECT_TEXT_CHARACTERS]
            yield _Step(line, text, job=element.members, members=step)


def _read(record: Element | _Step, zone: ZoneInfo) -> Row | None:
    if isinstance(record, _Step):
        return slurm.row_of(_step_cells(record.job or {}, record.members), zone)
    if record.flaw:
        raise Unreadable(record.flaw)
    if record.members is None:
        return None
    cells = _queued_cells if "job_state" in record.members else _accounted_cells
    return slurm.row_of(cells(record.members), zone)


def _accounted_cells(job: Members) -> _Cells:
    """Return the cells that sacct prints for an accounted job."""
    if "time" not in job or "state" not in job:
        raise Unreadable("neither job_state nor time and state: not the record of a job")
    association = _object(job, "association")
    array, times = _object(job, "array"), _object(job, "time")
    state = _object(job, "state").get("current")
    seconds = {name: _number(times, name) for name in ("submission", "end", "elapsed", "suspended")}
    return {
        **_identity(
            _number(job, "job_id"),
            _number(array, "job_id"),
            _number(array, "task_id"),
            _text(array, "task"),
        ),
        **_names(job, _text(job, "user") or _text(association, "user")),
        "cluster": _text(job, "cluster") or _text(association, "cluster"),
        "state": states.sacct_state(_words(state)),
        "submit": seconds["submission"],
        "start": _start(job, times, state),
        "end": seconds["end"],
        "elapsed": seconds["elapsed"],
        "suspended": seconds["suspended"],
        "timelimitraw": _number(times, "limit"),
        "exitcode": _exit_code(job),
        "nodelist": _text(job, "nodes"),
        "nnodes": _allocated(job, "node") or _number(job, "allocation_nodes"),
        "ncpus": _allocated(job, "cpu") or _number(_object(job, "required"), "CPUs"),
        "totalcpu": _cpu(times),
    }


def _start(job: Members, times: Members, state: Any) -> str:
    """Return the start of a job.

    Slurm up to 22.05 prints the time of eligibility as the start. Then the start is the end minus
    elapsed and suspended time; for a running job, the start of its first step.
    """
    start = _number(times, "start")
    if not start or start != _number(times, "eligible"):
        return start
    end, elapsed = _number(times, "end"), _number(times, "elapsed")
    if end and end != "0":
        lasted_s = int(elapsed or 0) + int(_number(times, "suspended") or 0)
        return str(max(int(start), int(end) - lasted_s))
    if isinstance(state, str):  # later versions have a list, and a correct start
        steps = job.get("steps")
        begun = (
            _number(_object(step, "time"), "start")
            for step in (steps if isinstance(steps, list) else ())
            if isinstance(step, dict)
        )
        return str(min((int(moment) for moment in begun if moment), default=int(start)))
    return start


def _step_cells(job: Members, step: Any) -> _Cells:
    if not isinstance(step, dict):
        raise Unreadable("the step is not an object")
    named, times, nodes = _object(step, "step"), _object(step, "time"), _object(step, "nodes")
    name = named.get("id")
    if isinstance(name, dict):
        name = name.get("step_id")
    name = _number(named, "id") if isinstance(name, int) else str(name or "")
    raw = _number(job, "job_id")
    return {
        "jobid": f"{raw}.{name.rpartition('.')[2]}",
        "jobidraw": raw,
        "cluster": _text(job, "cluster"),
        "jobname": _text(named, "name"),
        "state": states.sacct_state(_words(step.get("state"))),
        "start": _number(times, "start"),
        "end": _number(times, "end"),
        "elapsed": _number(times, "elapsed"),
        "suspended": _number(times, "suspended"),
        "exitcode": _exit_code(step),
        "nodelist": _text(nodes, "range"),
        "nnodes": _number(nodes, "count"),
        "ncpus": _allocated(step, "cpu"),
        "totalcpu": _cpu(times),
    }


def _queued_cells(job: Members) -> _Cells:
    """Return the cells that sacct would print for a job in the queue."""
    return {
        **_identity(
            _number(job, "job_id"),
            _number(job, "array_job_id"),
            _number(job, "array_task_id"),
            _text(job, "array_task_string"),
        ),
        **_names(job, _text(job, "user_name")),
        "cluster": _text(job, "cluster"),
        "state": states.sacct_state(_words(job.get("job_state"))),
        "submit": _number(job, "submit_time"),
        "start": _number(job, "start_time"),
        "end": _number(job, "end_time"),
        "timelimitraw": _number(job, "time_limit"),
        "exitcode": _exit_code(job),
        "nodelist": _text(job, "nodes"),
        "nnodes": _number(job, "node_count"),
        "ncpus": _number(job, "cpus"),
    }


def _identity(raw: str, array: str, task: str, tasks: str) -> _Cells:
    """Return JobID and JobIDRaw; array 0: not an array."""
    if array in {"", "0"}:
        return {"jobid": raw, "jobidraw": raw}
    index = task or (f"[{tasks}]" if tasks else "")
    return {"jobid": f"{array}_{index}" if index else array, "jobidraw": raw}


def _names(job: Members, user: str) -> _Cells:
    return {
        "user": user,
        "account": _text(job, "account"),
        "partition": _text(job, "partition"),
        "jobname": _text(job, "name"),
    }


def _exit_code(thing: Members) -> str:
    code = thing.get("exit_code")
    if not isinstance(code, dict):  # a plain number is no status
        return ""
    signal = _object(code, "signal")
    return f"{_number(code, 'return_code')}:{_number(signal, 'id') or _number(signal, 'signal_id')}"


def _allocated(thing: Members, kind: str) -> str:
    """Return the allocated amount of a resource; "": unknown."""
    for resource in _object(thing, "tres").get("allocated") or ():
        if isinstance(resource, dict) and resource.get("type") == kind:
            return _number(resource, "count")
    return ""


def _cpu(times: Members) -> str:
    total = _object(times, "total")
    seconds, microseconds = _number(total, "seconds"), _number(total, "microseconds")
    return f"{seconds}.{int(microseconds or 0):06}" if seconds else ""


def _words(state: Any) -> list[str]:
    words = state if isinstance(state, list) else [state]
    if not words or not all(isinstance(word, str) for word in words):
        raise Unreadable(f"state {quoted(str(state))} is not a word, nor a list of words")
    return words


def _object(thing: Members, name: str) -> Members:
    """Return a member that is an object; empty if it is missing."""
    member = thing.get(name)
    if member is None:
        return {}
    if not isinstance(member, dict):
        raise Unreadable(f"{name} is not an object")
    return member


def _text(thing: Members, name: str) -> str:
    member = thing.get(name)
    if member is None:
        return ""
    if not isinstance(member, str | int) or isinstance(member, bool):
        raise Unreadable(f"{name} is not a text")
    return str(member).encode(errors="replace").decode().replace("\0", "\ufffd")


def _number(thing: Members, name: str) -> str:
    """Return a whole number as text; "": unknown or unlimited."""
    member = thing.get(name)
    if isinstance(member, dict):
        if not member.get("set", True) or member.get("infinite"):
            return ""
        member = member.get("number")
    if member is None or member == "":
        return ""
    if isinstance(member, bool | dict | list):
        raise Unreadable(f"{name} is not a number")
    number = int(member) if isinstance(member, float) and member.is_integer() else member
    return str(whole_number(str(number), name))
