"""PanDA job records in the JSON of its monitor, BigPanDA.

Source: docs/formats.md, "PanDA jobs"; BigPanDA's pages with ``?json``.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from collectors.batch import htcondor, localtime
from collectors.batch.records import Row, parts
from collectors.batch.values import INT32_MAX, INT64_MAX, Unreadable, batch_id, quoted, whole_number
from collectors.format import Format
from collectors.json_stream import Element, Members, elements
from collectors.parsed import Parsed
from collectors.source import Source
from collectors.tables import WORKLOAD_JOBS

_FRAMES = ("jobs", "job")
_STATE = re.compile(r"[a-z_]{1,32}")
_TIMING = re.compile(r"\d*(\|\d*){4}", re.ASCII)
_TIMING_DIGITS = 9
_TIMES = ("get_job_s", "stage_in_s", "payload_s", "stage_out_s", "setup_s")  # in PanDA's order
_KB = 1_024
_ERRORS = (  # component, name of its error code, name of the message
    ("pilot", "piloterrorcode", "piloterrordiag"),
    ("program", "exeerrorcode", "exeerrordiag"),
    ("data management", "ddmerrorcode", "ddmerrordiag"),
    ("task buffer", "taskbuffererrorcode", "taskbuffererrordiag"),
    ("dispatcher", "jobdispatchererrorcode", "jobdispatchererrordiag"),
    ("brokerage", "brokerageerrorcode", "brokerageerrordiag"),
    ("supervisor", "superrorcode", "superrordiag"),
    ("transformation", "transexitcode", ""),
)


def parse(source: Source) -> Iterator[Parsed]:
    """Read job records: lists under ``jobs``, one under ``job``, or bare ones, in any letter case.

    Yields:
        Parts with a frame of `tables.WORKLOAD_JOBS`. The account counts records instead of lines;
        other members of a response (files, parameters) are irrelevant.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "PanDA jobs".
    """
    return parts(WORKLOAD_JOBS, elements(source, _FRAMES), _read)


def _read(element: Element) -> Row | None:
    if element.flaw:
        raise Unreadable(element.flaw)
    return None if element.members is None else _job(element.members)


def _job(members: Members) -> Row:
    panda_id, state = _whole(members, "pandaid"), _text(members, "jobstatus").lower()
    if panda_id is None or not state:
        raise Unreadable("pandaid or jobstatus is missing: not a PanDA job")
    if panda_id < 1:
        raise Unreadable(f"pandaid {panda_id} is not a positive number")
    if not _STATE.fullmatch(state):
        raise Unreadable(f"jobstatus {quoted(state)} is not a valid state")
    started_at, ended_at = localtime.run_between(
        _readings(members, "starttime"), _readings(members, "endtime"), None
    )
    reported_batch_id = _text(members, "batchid")
    number, array_index = _batch_id(reported_batch_id)
    cores = _whole(members, "actualcorecount", INT32_MAX)
    cpu_s = _whole(members, "cpuconsumptiontime")
    return {
        "panda_id": panda_id,
        "task_id": _whole(members, "jeditaskid"),
        "attempt": _whole(members, "attemptnr", INT32_MAX),
        "reported_batch_id": reported_batch_id,
        "batch_id": number,
        "array_index": array_index,
        "site": _text(members, "computingsite"),
        "host": _text(members, "modificationhost").rpartition("@")[2],  # "slot1_3@node"
        "state": state,
        "error": "; ".join(_errors(members)),
        "user": _text(members, "produsername"),
        "transformation": _text(members, "transformation"),
        "created_at": _moment(members, "creationtime"),
        "started_at": started_at,
        "ended_at": ended_at,
        "modified_at": _moment(members, "modificationtime"),
        "core_count": _whole(members, "corecount", INT32_MAX) if cores is None else cores,
        "cpu_s": None if cpu_s is None else float(cpu_s),
        **_times(_text(members, "pilottiming")),
        "event_count": _amount(members, "nevents") or None,  # 0: PanDA's default
        "max_pss_bytes": _size_bytes(members, "maxpss"),
        "max_swap_bytes": _size_bytes(members, "maxswap"),
        "transfer_type": _text(members, "transfertype") or None,
    }


def _batch_id(text: str) -> tuple[str, str]:
    """Return batch id and array index; empty for ids of other systems."""
    try:
        return htcondor.batch_id(text) or batch_id(text)
    except Unreadable:
        return "", ""


def _times(timing: str) -> dict[str, float | None]:
    """Return the five times of a pilot; unknown in other shapes."""
    seconds = timing.split("|") if _TIMING.fullmatch(timing) else [""] * len(_TIMES)
    return {
        name: float(text) if 0 < len(text) <= _TIMING_DIGITS else None
        for name, text in zip(_TIMES, seconds, strict=True)
    }


def _size_bytes(members: Members, name: str) -> int | None:
    amount = _amount(members, name, INT64_MAX // _KB)
    return None if amount is None else amount * _KB


def _errors(members: Members) -> Iterator[str]:
    for component, code_name, message_name in _ERRORS:
        code = _text(members, code_name)
        if code not in {"", "0"}:
            message = _text(members, message_name)
            yield f"{component} {code}: {message}" if message else f"{component} {code}"


def _moment(members: Members, name: str) -> datetime | None:
    return next(iter(_readings(members, name)), None)


def _readings(members: Members, name: str) -> localtime.Readings:
    text = _text(members, name)
    if not text:
        return ()
    stamp = localtime.stamp(text, name)
    moment = localtime.utc(stamp) if stamp.tzinfo else stamp.replace(tzinfo=UTC)
    if not localtime.EARLIEST_S <= moment.timestamp() <= localtime.LATEST_S:
        raise Unreadable(f"{name} {quoted(text)} is out of range for a job")
    return (moment,)


def _whole(members: Members, name: str, largest: int = INT64_MAX) -> int | None:
    """Return a non-negative integer; None if it is missing."""
    number = _integer(members, name, largest)
    if number is not None and number < 0:
        raise Unreadable(f"{name} {number} is negative")
    return number


def _amount(members: Members, name: str, largest: int = INT64_MAX) -> int | None:
    """Return a non-negative integer; None if it is missing, or negative: not measured."""
    number = _integer(members, name, largest)
    return None if number is None or number < 0 else number


def _integer(members: Members, name: str, largest: int) -> int | None:
    value = members.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = _as_text(value, name)
    return whole_number(text, name, largest) if text else None


def _text(members: Members, name: str) -> str:
    """Return a storable string; "" if it is missing."""
    return _as_text(members.get(name), name)


def _as_text(value: Any, name: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | dict | list):
        raise Unreadable(f"{name} is not a string or number")
    return str(value).encode(errors="replace").decode().replace("\0", "\ufffd").strip()


PANDA = Format(
    name="panda",
    label="PanDA jobs",
    table=WORKLOAD_JOBS,
    parse=lambda source, _: parse(source),
    scopes=("cluster",),
    options=("cluster",),
    agent_inputs=("command", "folder"),
)
