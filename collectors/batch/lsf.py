"""LSF accounting: the files ``lsb.acct``.

Source: docs/formats.md, "LSF accounting"; "lsb.acct" in the LSF configuration reference.
"""

import re
from collections.abc import Iterator

from collectors.batch import hostlists, localtime, states
from collectors.batch.records import Record, Row, numbered_lines, parts
from collectors.batch.values import INT32_MAX, Unreadable, quoted, whole_number
from collectors.format import LineFormat
from collectors.parsed import Parsed
from collectors.source import Lines
from collectors.tables import JOBS

RECORD_CHARACTERS = 1024 * 1024  # lines beyond that do not continue a record

_EVENT = re.compile(r'"(?P<name>[A-Z][A-Z0-9_]*)" +"[\w.]*" +\d', re.ASCII)
_FIELD = re.compile(r' *(?:"((?:[^"]|"")*)"|([^" ]+))(?= |$)')
# A host of another cluster is followed by that cluster's name.
_SLOTS = re.compile(r"(?:(?P<slots>\d{1,9})\*)?(?P<host>[^@]+)(?:@[\w.-]+)?", re.ASCII)
_DECIMAL = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?", re.ASCII)
_FINISHED = "JOB_FINISH"
_DEFAULT_PROJECT = "default"

# Fields by position. Those after the submission hosts and the execution hosts count from there.
_ENDED, _JOB, _SLOTS_REQUESTED, _SUBMITTED, _STARTED = 2, 3, 6, 7, 10
_USER, _QUEUE, _SUBMISSION_HOSTS = 11, 12, 22
_STATUS, _NAME, _USER_CPU, _SYSTEM_CPU = 0, 2, 4, 5
_PROJECT, _EXIT_STATUS, _INDEX, _REASON = 24, 25, 29, 38

_DONE, _EXITED = 64, 32
_REASONS = {  # why LSF ended the job: TERM_PREEMPT and so on
    1: states.PREEMPTED,
    5: states.TIMEOUT,
    6: states.TIMEOUT,
    8: states.CANCELLED,
    9: states.CANCELLED,
    10: states.REQUEUED,
    11: states.REQUEUED,
    12: states.TIMEOUT,
    14: states.CANCELLED,
    15: states.CANCELLED,
    16: states.OUT_OF_MEMORY,
    20: states.OUT_OF_MEMORY,
    22: states.NODE_FAIL,
    23: states.CANCELLED,
}


def parse(source: Lines) -> Iterator[Parsed]:
    """Read the finished jobs of an accounting file.

    Args:
        source: the file; its times are epoch seconds.

    Yields:
        Parts with a frame of `tables.JOBS`, one row per JOB_FINISH record. Other events are
        irrelevant, and so are lines that continue a quoted field.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "LSF accounting".
    """
    return parts(JOBS, _records(source), _read)


def _records(source: Lines) -> Iterator[Record]:
    """Yield records; a newline inside quotes continues one."""
    first, texts, size, is_open = 0, list[str](), 0, False
    for line, text in numbered_lines(source):
        size += len(text)
        if not is_open or _EVENT.match(text) or size > RECORD_CHARACTERS:
            if texts:
                yield Record(first, "\n".join(texts), len(texts))
            first, texts, size, is_open = line, [], len(text), False
        texts.append(text)
        is_open ^= text.count('"') % 2 == 1
    if texts:
        yield Record(first, "\n".join(texts), len(texts))


def _read(record: Record) -> Row | None:
    if not record.text.strip():
        return None
    event = _EVENT.match(record.text)
    if event is None:
        raise Unreadable('not a record: "EVENT" "version" time ...')
    return _job(_fields(record.text)) if event["name"] == _FINISHED else None


def _fields(text: str) -> list[str]:
    """Return the fields of a record; quotes inside a quoted field are doubled."""
    text = text.rstrip()
    fields, at = list[str](), 0
    while at < len(text):
        field = _FIELD.match(text, at)
        if field is None:
            raise Unreadable(f"field {len(fields) + 1} has a quote that is not closed")
        string, bare = field.groups()
        fields.append(bare if string is None else string.replace('""', '"'))
        at = field.end()
    return fields


def _job(fields: list[str]) -> Row:
    hosts, after = _hosts(fields)
    if len(fields) <= after + _INDEX + 1:  # the last field of a cut record may be incomplete
        raise Unreadable(f"the record has {len(fields)} fields and is cut")
    own = fields[after:]
    started = _whole(fields, _STARTED, "startTime")
    started_at = localtime.moment(started) if started else None
    _, ended_at = localtime.run_between(
        (started_at,) if started_at else (),
        (localtime.moment(_whole(fields, _ENDED, "event time")),),
        None,
    )
    index = _whole(own, _INDEX, "idx")
    project = own[_PROJECT]
    status = _whole(own, _EXIT_STATUS, "exitStatus") % 65_536  # as wait(2) returns it
    return {
        "cluster": "",
        "batch_id": str(_whole(fields, _JOB, "jobId")),
        "array_index": str(index) if index > 0 else "",  # 0 or -1: not of an array
        "launch": "",
        "name": own[_NAME],
        "user": fields[_USER],
        "project": "" if project == _DEFAULT_PROJECT else project,
        "queue": fields[_QUEUE],
        "state": _state(own, has_started=started_at is not None),
        "exit_status": status >> 8,
        "exit_signal": status & 0x7F,
        "submitted_at": localtime.moment(_whole(fields, _SUBMITTED, "submitTime")),
        "started_at": started_at,
        "ended_at": ended_at,
        "node_count": len(hosts) or None,
        "core_count": sum(hosts.values()) or _whole(fields, _SLOTS_REQUESTED, "numProcessors"),
        "cpu_s": _cpu_s(own) if started_at else None,
        "nodes": hostlists.fold(hosts) if started_at else "",
    }


def _hosts(fields: list[str]) -> tuple[dict[str, int], int]:
    """Return slots by execution host, and the position of the field after the hosts."""
    at = _SUBMISSION_HOSTS
    at += 1 + _count(fields, at, "numAskedHosts")
    execution_hosts = _count(fields, at, "numExHosts")
    after = at + 1 + execution_hosts
    hosts: dict[str, int] = {}
    for text in fields[at + 1 : after]:
        host = _SLOTS.fullmatch(text)
        if host is None:
            raise Unreadable(f"execution host {quoted(text)} is not a host")
        slots = hosts.get(host["host"], 0) + int(host["slots"] or 1)
        if slots > INT32_MAX:
            raise Unreadable(f"execution host {quoted(text)} has too many slots")
        hosts[host["host"]] = slots
    return hosts, after


def _count(fields: list[str], at: int, what: str) -> int:
    count = _whole(fields, at, what)
    if count < 0 or at + count >= len(fields):
        raise Unreadable(f"{what} is {count}, but the record has {len(fields)} fields")
    return count


def _state(own: list[str], *, has_started: bool) -> str:
    status = _whole(own, _STATUS, "jStatus")
    if status & _DONE:
        return states.COMPLETED
    if not status & _EXITED:
        raise Unreadable(f"jStatus {status} is neither DONE nor EXIT")
    reason = _whole(own, _REASON, "exitInfo") if len(own) > _REASON + 1 else 0
    return _REASONS.get(reason, states.FAILED if has_started else states.CANCELLED)


def _cpu_s(own: list[str]) -> float | None:
    """Return CPU seconds; None where LSF does not know them (-1)."""
    user_s, system_s = _decimal(own, _USER_CPU, "ru_utime"), _decimal(own, _SYSTEM_CPU, "ru_stime")
    return None if user_s < 0 or system_s < 0 else user_s + system_s


def _decimal(fields: list[str], at: int, what: str) -> float:
    if not _DECIMAL.fullmatch(fields[at]):
        raise Unreadable(f"{what} {quoted(fields[at])} is not a number")
    return float(fields[at])


def _whole(fields: list[str], at: int, what: str) -> int:
    if at >= len(fields):
        raise Unreadable(f"the record has {len(fields)} fields and is cut")
    return whole_number(fields[at], what)


LSF = LineFormat(
    name="lsf",
    label="LSF accounting",
    table=JOBS,
    parse=lambda source, _: parse(source),
    scopes=("cluster",),
    options=("cluster",),
    agent_inputs=("file", "pipe", "folder"),
)
