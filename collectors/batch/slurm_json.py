"""Slurm's JSON: ``sacct --json`` and ``squeue --json``, of every version of its data.

Versions are not asked for: texts are saved and edited, and what they say of themselves goes wrong.
A number is a number, null, or an object with ``set``, ``infinite`` and ``number``; a state is a
word or a list of words. What is found is handed on as the cells that sacct prints.

Source: docs/formats.md, "sacct --json"; src/plugins/data_parser of Slurm.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from collectors.batch import slurm, states
from collectors.batch.records import Record, Row, parts
from collectors.batch.values import Unreadable, shown, whole_number
from collectors.json_stream import Element, Members, elements
from collectors.parsed import REJECT_TEXT_CHARACTERS, Parsed
from collectors.source import Source
from collectors.tables import JOBS

LONGEST = 8 * 1024 * 1024  # characters of a job with its steps

_Cells: TypeAlias = dict[str, str]


def parse(source: Source, zone: ZoneInfo) -> Iterator[Parsed]:
    """Read the jobs and steps of an answer of sacct or squeue.

    Args:
        source: one answer, or several.
        zone: of times; Slurm's JSON has epoch seconds, which need none.

    Yields:
        Parts with a frame of `tables.JOBS`. What counts as a line is a job, and after it each of
        its steps; what else an answer holds is irrelevant.

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
    """Return what sacct prints of a job that it gave as JSON."""
    if "time" not in job or "state" not in job:
        raise Unreadable("a record without job_state, and without time and state, is no job's")
    association = _object(job, "association")
    array, times = _object(job, "array"), _object(job, "time")
    state = _object(job, "state").get("current")
    told = {name: _number(times, name) for name in ("submission", "end", "elapsed", "suspended")}
    return {
        **_identity(
            _number(job, "job_id"),
            _number(array, "job_id"),
            _number(array, "task_id"),
            _text(array, "task"),
        ),
        **_names(job, _text(job, "user") or _text(association, "user")),
        "cluster": _text(job, "cluster") or _text(association, "cluster"),
        "state": states.one_of_slurm(_words(state)),
        "submit": told["submission"],
        "start": _start(job, times, state),
        "end": told["end"],
        "elapsed": told["elapsed"],
        "suspended": told["suspended"],
        "timelimitraw": _number(times, "limit"),
        "exitcode": _exit_code(job),
        "nodelist": _text(job, "nodes"),
        "nnodes": _allocated(job, "node") or _number(job, "allocation_nodes"),
        "ncpus": _allocated(job, "cpu") or _number(_object(job, "required"), "CPUs"),
        "totalcpu": _cpu(times),
    }


def _start(job: Members, times: Members, state: Any) -> str:
    """Return when a job started.

    Up to 22.05, Slurm gave the time when the job became eligible: where that was given, and does
    not fit, the end less what elapsed is the start, or of a running job that of its first step.
    """
    start = _number(times, "start")
    if not start or start != _number(times, "eligible"):
        return start
    end, elapsed = _number(times, "end"), _number(times, "elapsed")
    if end and end != "0":
        lasted_s = int(elapsed or 0) + int(_number(times, "suspended") or 0)
        return str(max(int(start), int(end) - lasted_s))
    if isinstance(state, str):  # of a later version it is a list, or the time is right
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
        raise Unreadable("a step that is no object")
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
        "state": states.one_of_slurm(_words(step.get("state"))),
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
    """Return what sacct would print of a job that squeue gave as JSON."""
    return {
        **_identity(
            _number(job, "job_id"),
            _number(job, "array_job_id"),
            _number(job, "array_task_id"),
            _text(job, "array_task_string"),
        ),
        **_names(job, _text(job, "user_name")),
        "cluster": _text(job, "cluster"),
        "state": states.one_of_slurm(_words(job.get("job_state"))),
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
    """Return JobID and JobIDRaw; of what is no array, the array is 0."""
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
    if not isinstance(code, dict):  # a number that is no status, or nothing
        return ""
    signal = _object(code, "signal")
    return f"{_number(code, 'return_code')}:{_number(signal, 'id') or _number(signal, 'signal_id')}"


def _allocated(thing: Members, kind: str) -> str:
    """Return how much of a resource was allocated; "" where it is not told."""
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
        raise Unreadable(f"state {shown(str(state))} is not a word, nor a list of words")
    return words


def _object(thing: Members, name: str) -> Members:
    """Return a member that is an object; an empty one where it is missing."""
    found = thing.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Unreadable(f"{name} is not an object")
    return found


def _text(thing: Members, name: str) -> str:
    found = thing.get(name)
    if found is None:
        return ""
    if not isinstance(found, str | int) or isinstance(found, bool):
        raise Unreadable(f"{name} is not a text")
    return str(found).encode(errors="replace").decode().replace("\0", "\ufffd")


def _number(thing: Members, name: str) -> str:
    """Return a whole number as text; "" where it is not told, or has no bound."""
    found = thing.get(name)
    if isinstance(found, dict):
        if not found.get("set", True) or found.get("infinite"):
            return ""
        found = found.get("number")
    if found is None or found == "":
        return ""
    if isinstance(found, bool | dict | list):
        raise Unreadable(f"{name} is not a number")
    number = int(found) if isinstance(found, float) and found.is_integer() else found
    return str(whole_number(str(number), name))
