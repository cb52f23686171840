"""ALPS launches: the apsys and aprun lines of a Cray syslog.

Source: docs/formats.md, "ALPS".
"""

import re
from collections.abc import Iterator
from datetime import datetime

from collectors.batch import hostlists, localtime
from collectors.batch.records import Record, Row, numbered_lines, parts
from collectors.batch.values import INT32_MAX, Unreadable, batch_id, whole_number
from collectors.format import LineFormat
from collectors.parsed import Parsed
from collectors.source import Lines
from collectors.tables import LAUNCHES

NID_DIGITS = 5  # of the host names of Cray XE, XK and XC systems: "nid00042"

_PROGRAM = re.compile(r"<\d{1,3}>1 (?P<time>\S+) \S+ (?:aprun|apsys)(?= |$)", re.ASCII)
_HEAD_FIELDS = 7  # <priority>1, time, host, program, process id, message id, structured data
_SUBJECT = "[alps_msgs@"
_KINDS = (", Starting,", ", Finishing,")
_EVENT = re.compile(r"apid=(?P<apid>[^,]*), (?P<kind>\w+)(?P<rest>,.*)", re.ASCII)
_VALUE = re.compile(r", (\w+)=([^,]*)(?=(,|$))", re.ASCII)
_COMMAND = ', cmd_line="'
_PLACEMENT = re.compile(
    r'"?, num_nodes=(?P<count>\d{1,9}), node_list=(?P<nodes>\d[\d,-]*), ', re.ASCII
)
_NUMBER = re.compile(r"\d+", re.ASCII)
_NO_BATCH_ID = frozenset({"", "unknown", "none", "0"})


def parse(source: Lines) -> Iterator[Parsed]:
    """Read starts and ends of launches.

    Args:
        source: a syslog (RFC 5424) of a Cray; times have a UTC offset.

    Yields:
        Parts with a frame of `tables.LAUNCHES`, one row per Starting and per Finishing record. All
        other lines are irrelevant. Syslog cuts long lines: a line with an incomplete node list is
        rejected, because its operations would be attributed to too few nodes.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "ALPS".
    """
    return parts(LAUNCHES, (Record(*line) for line in numbered_lines(source)), _read)


def _read(record: Record) -> Row | None:
    syslog = _PROGRAM.match(record.text)
    if syslog is None:
        if _SUBJECT in record.text and any(kind in record.text for kind in _KINDS):
            raise Unreadable("the line does not begin like a syslog record of aprun or apsys")
        return None
    *head, text = record.text.split(" ", _HEAD_FIELDS)
    if len(head) < _HEAD_FIELDS:
        raise Unreadable("the line is cut inside its header")
    if not head[-1].startswith(_SUBJECT):
        return None
    event = _EVENT.fullmatch(text)
    if event is None:
        raise Unreadable("the line is cut before the event")
    if event["kind"] == "Starting":
        return _start(event["apid"], event["rest"], _time(syslog["time"]))
    if event["kind"] == "Finishing":
        return _end(event["apid"], event["rest"], _time(syslog["time"]))
    return None


def _start(apid: str, text: str, at: datetime) -> Row:
    placements = list(_PLACEMENT.finditer(text))
    if not placements:
        raise Unreadable("the line is cut before the end of node_list: nodes unknown")
    if len(placements) > 1:
        raise Unreadable("the line has more than one node_list: nodes unknown")
    head, _, command = text[: placements[0].start()].partition(_COMMAND)
    nodes = _nodes(placements[0]["nodes"])
    node_count = whole_number(placements[0]["count"], "num_nodes", INT32_MAX)
    if len(nodes) != node_count:
        raise Unreadable(f"num_nodes is {node_count}, but node_list has {len(nodes)}")
    return {
        **_launch(apid, _values(f"{head},")),
        "started_at": at,
        "node_count": node_count,
        "nodes": hostlists.fold(nodes),
        "command": command.strip(),
    }


def _end(apid: str, text: str, at: datetime) -> Row:
    values = _values(text)
    return {
        **_launch(apid, values),
        "ended_at": at,
        "nodes": "",
        "command": "",
        "exit_status": max(_numbers(values, "exit_code"), default=None),
        "exit_signal": max(_numbers(values, "exitsignal_array"), default=None),
    }


def _launch(apid: str, values: dict[str, str]) -> Row:
    number, array_index = _batch_id(values.get("batch_id", ""))
    return {
        "launch": str(whole_number(apid, "apid")),
        "batch_id": number,
        "array_index": array_index,
        "uid": whole_number(values["user"], "user") if "user" in values else None,
    }


def _values(text: str) -> dict[str, str]:
    """Return the complete values.

    The last value of a line may be cut. A batch id counts once its server part has begun; without
    it, the apid identifies the launch. Signals end a complete line.
    """
    return {
        name: value
        for name, value, comma in _VALUE.findall(text)
        if comma or name == "exitsignal_array" or (name == "batch_id" and "." in value)
    }


def _numbers(values: dict[str, str], name: str) -> list[int]:
    """Return the numbers of "139:0", per binary; none if `name` is missing."""
    texts = filter(None, values.get(name, "").split(":"))
    return [whole_number(text, name, INT32_MAX) for text in texts]


def _batch_id(text: str) -> tuple[str, str]:
    return ("", "") if text in _NO_BATCH_ID else batch_id(text)


def _nodes(node_list: str) -> list[str]:
    """Return the host names of "2258-2259,2263": nid02258, nid02259, nid02263."""
    padded = _NUMBER.sub(lambda number: number[0].zfill(NID_DIGITS), node_list)
    return hostlists.expand(f"nid[{padded}]")


def _time(text: str) -> datetime:
    stamp = localtime.stamp(text, "time")
    if stamp.tzinfo is None:
        raise Unreadable(f"time {text} has no offset from UTC")
    return localtime.utc(stamp)


ALPS = LineFormat(
    name="alps",
    label="ALPS placement",
    table=LAUNCHES,
    parse=lambda source, _: parse(source),
    scopes=("cluster",),
    options=("cluster",),
    agent_inputs=("file", "pipe", "folder"),
)
