"""PBS Pro, OpenPBS and Torque accounting: the files ``accounting/YYYYMMDD``.

Source: docs/formats.md, "PBS accounting".
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from collectors.batch import hostlists, localtime, states
from collectors.batch.records import Record, Row, numbered_lines, parts
from collectors.batch.values import (
    INT32_MAX,
    Unreadable,
    batch_id,
    duration_s,
    quoted,
    whole_number,
)
from collectors.format import LineFormat, Origin
from collectors.parsed import Parsed
from collectors.source import Lines
from collectors.tables import JOBS

RECORD_CHARACTERS = 1024 * 1024  # lines beyond that do not continue a record

# A record begins with a date, or has at least a type in the second field: a line without its header
# is a damaged record and does not continue the previous record.
_BEGINNING = re.compile(r"\s*\d{1,4}/\d{1,4}/|[^;=]*;[A-Za-z];", re.ASCII)
_RECORD = re.compile(
    # grep and pdsh print the name of a file or host before a line.
    r"(?:[^\s;]{1,255}[:-] ?)?"
    r"(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>\d{4}) +(?P<clock>\d\d:\d\d:\d\d)(?:\.\d+)?;"
    r"(?P<kind>[A-Za-z]);(?P<id>[^;]*);(?P<text>.*)",
    re.ASCII | re.DOTALL,
)
_ATTRIBUTE = re.compile(
    r"""(?:^|(?<=\s))(?P<name>[A-Za-z_][\w.]*)="""
    r"""(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>.*?))"""
    r"""(?=\s[A-Za-z_][\w.]*=|\Z)""",
    re.ASCII | re.DOTALL,
)
_SLOT = re.compile(r"(\d{1,9})(?:\*(?P<copies>\d{1,9})|-(?P<last>\d{1,9}))?", re.ASCII)
_VNODE_INDEX = re.compile(r"\[\d+\]$", re.ASCII)
_NCPUS = re.compile(r":ncpus=(\d{1,9})", re.ASCII)
_DEFAULT_PROJECT = "_pbs_project_default"
_OPENPBS_ONLY = ("exec_vnode", "run_count", "project")
_SIGNAL_OFFSET = 256
_SIGNALLED = range(_SIGNAL_OFFSET + 1, _SIGNAL_OFFSET + 128)

_ENDED = "E"
_STATES = {"Q": states.PENDING, "S": states.RUNNING, "s": states.RUNNING, "R": states.REQUEUED}
# Licences, reservations, provisioning, checkpoints, moves, alterations and requests hold no job
# facts. A and D (aborted, deleted) do not identify the job; a job that ran also has an E.
_IRRELEVANT = frozenset("ABCDFKLMPTUYacekpruz")


def parse(
    source: Lines, zone: ZoneInfo, *, exec_hosts_are_compute_nodes: bool = True
) -> Iterator[Parsed]:
    """Read the jobs of an accounting file.

    Args:
        source: the file.
        zone: of the record headers' times. A job's own times are epoch seconds; the header
            replaces missing ones.
        exec_hosts_are_compute_nodes: False on a Cray, where exec_host is the node of the job
            script: the rows then have no nodes; those are in ALPS launches.

    Yields:
        Parts with a frame of `tables.JOBS`, one row per record of type E (ended), S or s (started),
        R (requeued, with a start) and Q (queued, with a time). Other known types are irrelevant,
        and so are lines that continue a record.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "PBS accounting".
    """

    def read(record: Record) -> Row | None:
        return _read(record, zone, with_nodes=exec_hosts_are_compute_nodes)

    return parts(JOBS, _records(source, read), read)


def _records(source: Lines, read: Callable[[Record], Row | None]) -> Iterator[Record]:
    """Yield records; lines that a mail or a tool has wrapped are joined."""
    first, texts, room = 0, [], 0  # `room`: remaining characters; 0: no record to continue
    for line, text in numbered_lines(source):
        begins = bool(_BEGINNING.match(text))
        if not begins and text.strip() and len(text) <= room:
            texts.append(text)
            room -= len(text)
            continue
        if texts:
            yield from _joined(first, texts, read)
        first, texts, room = line, [text], RECORD_CHARACTERS if begins else 0
    if texts:
        yield from _joined(first, texts, read)


def _joined(first: int, texts: list[str], read: Callable[[Record], Row | None]) -> Iterator[Record]:
    """Yield the record in some lines, and trailing lines that make it unreadable."""
    texts = [text.strip() for text in texts]
    own = len(texts)
    while own > 1 and not _ATTRIBUTE.search(texts[own - 1]):
        own -= 1
    # A line break replaced a blank.
    whole, alone = (Record(first, " ".join(texts[:n]), n) for n in (len(texts), own))
    if own == len(texts) or _is_readable(whole, read) or not _is_readable(alone, read):
        yield whole
        return
    yield alone
    for number, text in enumerate(texts[own:], start=first + own):
        yield Record(number, text)


def _is_readable(record: Record, read: Callable[[Record], Row | None]) -> bool:
    try:
        read(record)
    except Unreadable:
        return False
    return True


def _read(record: Record, zone: ZoneInfo, *, with_nodes: bool) -> Row | None:
    if not record.text:
        return None
    match = _RECORD.fullmatch(record.text)
    if match is None:
        raise Unreadable("not a record: MM/DD/YYYY HH:MM:SS;type;id;attributes")
    kind = match["kind"]
    if kind in _IRRELEVANT:
        return None
    if kind != _ENDED and kind not in _STATES:
        raise Unreadable(f"record type {kind!r} is not known")
    attributes = _attributes(match["text"])
    times = _times(kind, attributes, _head(match, zone))
    return times and _job(kind, match["id"], attributes, times, with_nodes=with_nodes)


def _attributes(text: str) -> dict[str, str]:
    """Return the attributes of a record; the first value of a repeated attribute."""
    return {
        match["name"]: match["double"] or match["single"] or match["bare"] or ""
        for match in reversed(list(_ATTRIBUTE.finditer(text)))
    }


class _Times(NamedTuple):
    submitted_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


def _times(kind: str, attributes: dict[str, str], head: localtime.Readings) -> _Times | None:
    """Return the times of the job; None: the record does not identify a job or run."""
    created = next(
        filter(None, (_epoch(attributes, key) for key in ("ctime", "qtime", "etime"))), ()
    )
    starts = _epoch(attributes, "start")
    ends = _epoch(attributes, "end") or head
    if kind == "Q":
        starts = ends = ()
    elif kind in {"S", "s"}:
        starts, ends = starts or head, ()
    elif kind == "R" and not starts:
        return None
    submitted = created or starts
    if not submitted:
        if kind == "Q":
            return None
        raise Unreadable("the record has none of ctime, qtime, etime and start")
    lasted_s = _duration_s(attributes, "resources_used.walltime")
    return _Times(submitted[0], *localtime.run_between(starts, ends, lasted_s, submitted[0]))


def _head(match: re.Match[str], zone: ZoneInfo) -> localtime.Readings:
    iso = "{year}-{month}-{day}T{clock}".format_map(match.groupdict())
    return localtime.readings(localtime.stamp(iso, "time"), zone)


def _job(
    kind: str, job_id: str, attributes: dict[str, str], times: _Times, *, with_nodes: bool
) -> Row:
    number, array_index = batch_id(job_id)
    hosts, slots = _exec_hosts(attributes) if with_nodes else ([], None)
    exit_status = _number(attributes, "Exit_status")
    limit_s = _duration_s(attributes, "Resource_List.walltime")
    project = attributes.get("project", "")
    return {
        "cluster": "",
        "batch_id": number,
        "array_index": array_index,
        "launch": "",
        "name": attributes.get("jobname", ""),
        "user": attributes.get("user", ""),
        "project": attributes.get("account") or ("" if project == _DEFAULT_PROJECT else project),
        "queue": attributes.get("queue", ""),
        "state": _STATES.get(kind) or _end_state(attributes, exit_status, limit_s),
        **_exit(exit_status),
        **times._asdict(),
        "node_count": len(hosts)
        or _number(attributes, "unique_node_count", "Resource_List.nodect"),
        "core_count": _cores(attributes, slots),
        "cpu_s": _duration_s(attributes, "resources_used.cput"),
        "time_limit_s": None if limit_s is None else int(limit_s),
        "nodes": hostlists.fold(hosts),
    }


def _end_state(attributes: dict[str, str], exit_status: int | None, limit_s: float | None) -> str:
    used_s = _duration_s(attributes, "resources_used.walltime")
    return states.from_pbs(
        exit_status,
        openpbs=any(key in attributes for key in _OPENPBS_ONLY),
        over_limit=used_s is not None and limit_s is not None and used_s >= limit_s,
    )


def _exit(status: int | None) -> Row:
    """Return status and signal separately, as Slurm prints them."""
    if status is None:
        return {"exit_status": None, "exit_signal": None}
    if status in _SIGNALLED:
        return {"exit_status": 0, "exit_signal": status - _SIGNAL_OFFSET}
    return {"exit_status": status, "exit_signal": 0}


def _exec_hosts(attributes: dict[str, str]) -> tuple[list[str], int | None]:
    """Return the distinct hosts of a job and its slots (None: unknown)."""
    text = attributes.get("exec_host", "")
    if not text:
        vnodes = (vnode.partition(":")[0] for vnode in _vnodes(attributes))
        return list(dict.fromkeys(_VNODE_INDEX.sub("", vnode) for vnode in vnodes)), None
    places = [place.partition("/") for place in text.split("+")]
    hosts = list(dict.fromkeys(host for host, _, _ in places))
    slots = sum(_slots(slots) for _, _, slots in places)
    return hosts, slots


def _slots(text: str) -> int:
    """Count slots: "7" is one, "0*13" thirteen, "0-27,30" twenty-nine."""
    total = 0
    for part in text.split(",") if text else ():
        slot = _SLOT.fullmatch(part)
        if slot is None:
            raise Unreadable(f"exec_host: {quoted(part)} is not a range of slots")
        first, copies, last = slot.groups()
        total += int(copies) if copies else int(last or first) - int(first) + 1
    return total


def _vnodes(attributes: dict[str, str]) -> list[str]:
    text = attributes.get("exec_vnode", "").translate({ord("("): None, ord(")"): None})
    return text.split("+") if text else []


def _cores(attributes: dict[str, str], slots: int | None) -> int | None:
    """Return the cores of a job: granted if known, otherwise requested."""
    cores = (
        sum(map(int, _NCPUS.findall(attributes.get("exec_vnode", ""))))
        or _number(attributes, "total_execution_slots")
        or slots
        or _number(attributes, "Resource_List.ncpus")
    )
    if cores and cores > INT32_MAX:
        raise Unreadable(f"{cores} cores are too many")
    return cores


def _epoch(attributes: dict[str, str], key: str) -> localtime.Readings:
    seconds = whole_number(attributes.get(key) or "0", key)
    return (localtime.moment(seconds),) if seconds else ()


def _duration_s(attributes: dict[str, str], key: str) -> float | None:
    text = attributes.get(key)
    return duration_s(text, key) if text else None


def _number(attributes: dict[str, str], *keys: str) -> int | None:
    """Return the first value among `keys`."""
    key = next((key for key in keys if attributes.get(key)), None)
    return None if key is None else whole_number(attributes[key], key, INT32_MAX)


def _parse(source: Lines, origin: Origin) -> Iterator[Parsed]:
    return parse(
        source,
        origin.zone,
        exec_hosts_are_compute_nodes=origin.exec_hosts_are_compute_nodes,
    )


PBS = LineFormat(
    name="pbs",
    label="PBS or Torque accounting",
    table=JOBS,
    parse=_parse,
    scopes=("cluster",),
    options=("cluster",),
    agent_inputs=("file", "pipe", "folder"),
    has_local_times=True,
)
