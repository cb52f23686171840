"""HTCondor history: the history files of a schedd, ``condor_history -long`` or ``-json``.

Source: docs/formats.md, "HTCondor"; "Job ClassAd Attributes" in HTCondor's manual.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from pathlib import PurePath
from typing import TypeAlias

from collectors.batch import hostlists, localtime, states
from collectors.batch.records import Record, Row, is_json, numbered_lines, parts
from collectors.batch.values import INT32_MAX, Unreadable, quoted, whole_number
from collectors.format import Format
from collectors.json_stream import Element, elements
from collectors.parsed import REJECT_TEXT_CHARACTERS, Parsed
from collectors.source import Lines, Source
from collectors.tables import JOBS

AD_CHARACTERS = 1024 * 1024  # lines beyond that are not attributes of the same ad

_JOB_ID = re.compile(
    r"(?:(?P<schedd>[^#]+)#)?(?P<cluster>\d{1,18})(?:\.(?P<process>\d{1,18}))?(?:#\d+)?", re.ASCII
)
_ATTRIBUTE = re.compile(r"\s*(?P<name>[A-Za-z_][\w.]*)\s*=(?![=?!])\s*(?P<value>.*)", re.ASCII)
_BANNER = re.compile(r"\*\*\*\s+(?:(?P<kind>[A-Z_]+)\s+)?\w+\s*=", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{0,18})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_EXPRESSION = "/Expr("  # begins an unevaluated value in JSON
_JOB = "JOB"
_CUT = "the ad ends without a banner: the file is cut"
_MERGED = "ClusterId or ProcId changes inside the ad: a banner or blank line is missing"

_REMOVED, _COMPLETED = 3, 4
_NOT_ENDED = {
    1: states.PENDING,
    2: states.RUNNING,
    5: states.PENDING,  # held: without a slot
    6: states.RUNNING,  # transfers output
    7: states.SUSPENDED,
}

_Value: TypeAlias = str | float | bool
_Ad: TypeAlias = Mapping[str, _Value]  # evaluated attributes by name, in lower case


def parse(source: Source) -> Iterator[Parsed]:
    """Read the jobs of a history.

    Args:
        source: ads as lines ``Attribute = value``, each closed by a banner (``***``) or a blank
            line; or JSON. Times are epoch seconds.

    Yields:
        Parts with a frame of `tables.JOBS`, one row per ad. Batch id and array index are ClusterId
        and ProcId. Ads of other records (``*** EPOCH``) are irrelevant.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "HTCondor".
    """
    if is_json(source):
        return parts(JOBS, elements(source, ()), _read_element)
    return parts(JOBS, _records(source), _read_record)


def batch_id(text: str) -> tuple[str, str] | None:
    """Return ClusterId and ProcId of a job id, as batch id and array index; None: another id.

    ``schedd#123.0#1290671437`` (GlobalJobId), ``schedd#123.0`` and ``123.0`` are ("123", "0").
    ``schedd#123`` is ("123", ""): any process of the cluster.
    """
    match = _JOB_ID.fullmatch(text)
    if match is None or not (match["schedd"] or match["process"]):
        return None
    return match["cluster"], match["process"] or ""


@dataclass(frozen=True)
class _AdRecord(Record):
    ad: dict[str, _Value] = field(default_factory=dict)
    flaw: str = ""


@dataclass
class _OpenAd:
    """The lines of an ad so far."""

    line: int
    lines: int = 0
    text: str = ""
    size: int = 0
    flaw: str = ""
    ad: dict[str, _Value] = field(default_factory=dict)

    def add(self, text: str, name: str, value: str) -> None:
        """Add an attribute; of one that is assigned twice, the last value counts."""
        self.lines += 1
        self.size += len(text)
        if len(self.text) < REJECT_TEXT_CHARACTERS:
            self.text += f"{text}\n"
        name, evaluated = name.lower(), _evaluated(value)
        if evaluated is None:
            self.ad.pop(name, None)
            return
        if name in {"clusterid", "procid"} and self.ad.get(name, evaluated) != evaluated:
            self.flaw = _MERGED
        self.ad[name] = evaluated

    def closed(self, lines: int = 0, flaw: str = "") -> _AdRecord:
        """Return the record, with the lines that close it."""
        return _AdRecord(self.line, self.text, self.lines + lines, self.ad, self.flaw or flaw)


def _records(source: Lines) -> Iterator[_AdRecord]:
    """Yield ads, and every other line by itself."""
    current: _OpenAd | None = None
    has_banners = False
    for line, text in numbered_lines(source):
        banner = _BANNER.match(text)
        attribute = _ATTRIBUTE.fullmatch(text)
        if banner or not text.strip():
            has_banners = has_banners or bool(banner)
            is_job = banner is None or banner["kind"] in {None, _JOB}
            if current and is_job:
                yield current.closed(lines=1)
            else:
                yield _AdRecord(line, text, 1 + (current.lines if current else 0))
            current = None
        elif attribute and (current is None or current.size + len(text) <= AD_CHARACTERS):
            current = current or _OpenAd(line)
            current.add(text, attribute["name"], attribute["value"])
        else:
            yield _AdRecord(line, text, flaw="not a line of the form Attribute = value")
    if current:
        yield current.closed(flaw=_CUT if has_banners else "")


def _evaluated(text: str) -> _Value | None:
    """Return a literal; None: an expression, UNDEFINED or ERROR."""
    text = text.strip()
    if string := _STRING.fullmatch(text):
        return _ESCAPED.sub(r"\1", string[1])
    if _NUMBER.fullmatch(text):
        return float(text) if any(character in text for character in ".eE") else int(text)
    return {"true": True, "false": False}.get(text.lower())


def _read_record(record: _AdRecord) -> Row | None:
    if record.flaw:
        raise Unreadable(record.flaw)
    return _job(record.ad) if record.ad else None


def _read_element(element: Element) -> Row | None:
    if element.flaw:
        raise Unreadable(element.flaw)
    if element.members is None:
        return None
    return _job(
        {
            name: value.replace("\0", "\ufffd") if isinstance(value, str) else value
            for name, value in element.members.items()
            if isinstance(value, str | int | float)
            and not (isinstance(value, str) and value.startswith(_EXPRESSION))
        }
    )


def _job(ad: _Ad) -> Row:
    cluster, process = _whole(ad, "ClusterId"), _whole(ad, "ProcId")
    if cluster is None or process is None or cluster < 0 or process < 0:
        raise Unreadable("no ClusterId and ProcId: not the ad of a job")
    submitted_at = _moment(ad, "QDate")
    if submitted_at is None:
        raise Unreadable("no QDate: the submit time distinguishes jobs with the same id")
    state = _state(ad)
    started_at, ended_at = _run(ad, state)
    hosts = _hosts(ad) if started_at else []
    has_names = not any(":" in host for host in hosts)  # IPv6 addresses name no node
    has_ended = state not in states.NOT_ENDED
    return {
        "cluster": "",
        "batch_id": str(cluster),
        "array_index": str(process),
        "launch": "",
        "name": _text(ad, "JobBatchName") or PurePath(_text(ad, "Cmd")).name,
        "user": _text(ad, "Owner") or _text(ad, "User").partition("@")[0],
        "project": _project(ad),
        "queue": "",
        "state": state,
        **(_exit(ad) if has_ended else {}),
        "submitted_at": submitted_at,
        "started_at": started_at,
        "ended_at": ended_at,
        "node_count": len(hosts) or None,
        "core_count": _whole(ad, "CpusProvisioned") or _whole(ad, "RequestCpus"),
        "cpu_s": _cpu_s(ad) if started_at and has_ended else None,
        "time_limit_s": _time_limit_s(ad),
        "nodes": hostlists.fold(hosts) if has_names else "",
    }


def _state(ad: _Ad) -> str:
    status = _whole(ad, "JobStatus")
    if status == _REMOVED:
        return states.CANCELLED
    if status == _COMPLETED:
        failed = ad.get("exitbysignal") is True or _whole(ad, "ExitCode")
        return states.FAILED if failed else states.COMPLETED
    if status not in _NOT_ENDED:
        raise Unreadable(f"JobStatus {status} is not a status of a job")
    return _NOT_ENDED[status]


def _run(ad: _Ad, state: str) -> tuple[datetime | None, datetime | None]:
    """Return start and end of the last run: the hosts of earlier ones are not in the ad."""
    start = _moment(ad, "JobCurrentStartDate") or _moment(ad, "JobStartDate")
    if state in states.NOT_ENDED:
        return (None if state == states.PENDING else start), None
    end = _moment(ad, "CompletionDate") or _moment(ad, "EnteredCurrentStatus")
    vacated = _moment(ad, "LastVacateTime")
    if state == states.CANCELLED and start and vacated and vacated >= start:
        end = vacated  # a job may be held for days before it is removed
    return localtime.run_between((start,) if start else (), (end,) if end else (), None)


def _hosts(ad: _Ad) -> list[str]:
    """Return the hosts of "slot1_2@host" or "slot1@1@host,slot1@other"."""
    names = ("AllRemoteHosts", "RemoteHost", "LastRemoteHost")
    slots = next(filter(None, (_text(ad, name) for name in names)), "")
    hosts = (slot.rpartition("@")[2].strip() for slot in slots.split(","))
    return list(dict.fromkeys(filter(None, hosts)))


def _project(ad: _Ad) -> str:
    """Return the accounting group without the user that may close it."""
    if group := _text(ad, "AcctGroup"):
        return group
    user = _text(ad, "AcctGroupUser") or _text(ad, "Owner")
    return _text(ad, "AccountingGroup").removesuffix(f".{user}")


def _exit(ad: _Ad) -> Row:
    """Return status and signal separately, as Slurm prints them."""
    if ad.get("exitbysignal") is True:
        return {"exit_status": 0, "exit_signal": _whole(ad, "ExitSignal")}
    status = _whole(ad, "ExitCode")
    return {"exit_status": status, "exit_signal": None if status is None else 0}


def _cpu_s(ad: _Ad) -> float | None:
    user_s, system_s = _number(ad, "RemoteUserCpu"), _number(ad, "RemoteSysCpu")
    if user_s is None or system_s is None or user_s < 0 or system_s < 0:
        return None
    return float(user_s + system_s)


def _time_limit_s(ad: _Ad) -> int | None:
    seconds, minutes = _whole(ad, "AllowedJobDuration"), _whole(ad, "MaxWallTimeMins")
    limit_s = minutes * 60 if seconds is None and minutes is not None else seconds
    return limit_s if limit_s and limit_s > 0 else None


def _text(ad: _Ad, name: str) -> str:
    value = ad.get(name.lower(), "")
    return value.strip() if isinstance(value, str) else str(value)


def _moment(ad: _Ad, name: str) -> datetime | None:
    """Return a time; None where it is missing or 0."""
    seconds = _number(ad, name)
    return localtime.moment(int(seconds)) if seconds else None


def _whole(ad: _Ad, name: str) -> int | None:
    number = _number(ad, name)
    return None if number is None else whole_number(str(int(number)), name, INT32_MAX)


def _number(ad: _Ad, name: str) -> float | None:
    """Return a number; None where it is missing or an expression."""
    value = ad.get(name.lower())
    if value is None:
        return None
    if isinstance(value, bool | str) or not isfinite(value):
        raise Unreadable(f"{name} {quoted(str(value))} is not a number")
    return value


HTCONDOR = Format(
    name="htcondor",
    label="HTCondor history",
    table=JOBS,
    parse=lambda source, _: parse(source),
    scopes=("cluster",),
    options=("cluster",),
    agent_inputs=("command", "folder"),
)
