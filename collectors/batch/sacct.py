"""What Slurm accounted for: ``sacct --parsable2`` (or ``--parsable``), with a header or without.

Source: docs/formats.md, "sacct"; src/sacct/print.c and src/common/parse_time.c of Slurm.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Self
from zoneinfo import ZoneInfo

from collectors.batch import hostlists, localtime, states
from collectors.batch.records import Record, Row, numbered_lines, parts
from collectors.batch.values import INT32_MAX, Unreadable, duration_s, shown, whole_number
from collectors.parsed import Parsed
from collectors.source import Source
from collectors.tables import JOBS

# What accounting exports commonly ask for. JobName stands last: only there may it hold a "|".
COLUMNS = (
    "jobid",
    "jobidraw",
    "cluster",
    "partition",
    "qos",
    "account",
    "group",
    "gid",
    "user",
    "uid",
    "submit",
    "eligible",
    "start",
    "end",
    "elapsed",
    "exitcode",
    "state",
    "nnodes",
    "ncpus",
    "reqcpus",
    "reqmem",
    "reqtres",
    "alloctres",
    "timelimit",
    "nodelist",
    "jobname",
)
JOB_NAME_CHARACTERS = 1_024  # Slurm refuses longer names, so more lines than that are no name

_BAR = "|"
_JOB_ID = re.compile(
    r"(?P<job>\d{1,20})"
    r"(?:_(?:(?P<task>\d{1,20})|\[(?P<tasks>[^\]|]*)\]))?"
    r"(?P<component>\+\d{1,9})?"
    r"(?:\.(?P<step>[\w+-]+))?",
    re.ASCII,
)
_BEGINS_JOB_ID = re.compile(r"\d+(?:[_+.].*)?", re.ASCII | re.DOTALL)  # of a cut line, too
_COLUMN = re.compile(r"[a-z][a-z0-9_/]*")
_ALLOCATED_CPUS = re.compile(r"(?:^|,)cpu=(\d+)", re.ASCII)
_NO_TIME = frozenset({"", "Unknown", "None", "0"})
_NO_DURATION = frozenset({"", "UNLIMITED", "Partition_Limit", "INVALID"})
_NO_NODES = "None assigned"


def parse(source: Source, zone: ZoneInfo, columns: Sequence[str] = COLUMNS) -> Iterator[Parsed]:
    """Read the jobs and steps of an sacct export.

    Args:
        source: the export. A header line, wherever it stands, names the columns after it.
        zone: of the times, which sacct prints without one: the cluster's. Epoch seconds
            (``SLURM_TIME_FORMAT=%s``) and times with an offset need none.
        columns: the columns of a text without a header, in any case.

    Yields:
        Parts with a frame of `tables.JOBS`. A newline in a job name continues its record; header,
        blank and continuing lines are irrelevant.

    Raises:
        ValueError: `columns` has no job id.
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "sacct".
    """
    layout = _Layout(tuple(name.lower() for name in columns))
    if not layout.names_the_job:
        raise ValueError(f"no JobID or JobIDRaw among the columns {', '.join(columns)}")
    return parts(JOBS, _records(source, layout), lambda record: _read(record, zone))


@dataclass(frozen=True)
class _Layout:
    """The columns of a record."""

    columns: tuple[str, ...]  # in lower case
    header: str = ""  # the line that names them; "": there is none

    @classmethod
    def of_header(cls, text: str) -> Self | None:
        """Return the layout that `text` announces; None: it is no header."""
        lowered = text.lower()
        if "jobid" not in lowered:
            return None
        layout = cls(tuple(lowered.removesuffix(_BAR).split(_BAR)), text)
        is_header = layout.names_the_job and all(map(_COLUMN.fullmatch, layout.columns))
        return layout if is_header else None

    @property
    def names_the_job(self) -> bool:
        return "jobid" in self.columns or "jobidraw" in self.columns

    @cached_property
    def _id_column(self) -> int:
        return self.columns.index("jobid" if "jobid" in self.columns else "jobidraw")

    @cached_property
    def _bars_after_name(self) -> int:
        """How many "|" follow the job name; -1: there is no such column."""
        return self.columns[::-1].index("jobname") if "jobname" in self.columns else -1

    def fields(self, text: str) -> dict[str, str]:
        """Return the cells of a record by column.

        Raises:
            Unreadable: it has another number of columns.
        """
        text = self._without_last_bar(text)
        cells = text.split(_BAR, len(self.columns) - 1 if self._bars_after_name == 0 else -1)
        if len(cells) != len(self.columns):
            raise Unreadable(self.misfit(text))
        return dict(zip(self.columns, cells, strict=True))

    def misfit(self, text: str) -> str:
        """Return how the columns of `text` differ in number, and what helps; "": they do not."""
        found, expected = text.count(_BAR) + 1, len(self.columns)
        if found == expected:
            return ""
        if found == 1:
            remedy = "this is not the output of sacct --parsable2"
        elif not self.header:
            remedy = "export with a header line (without --noheader), or name the columns in order"
        elif found > expected and self._bars_after_name > 0:
            remedy = "if a name holds a '|', export with JobName as the last column"
        else:
            remedy = "the line is cut, or belongs to another export"
        return f"columns found: {found}, expected: {expected}; {remedy}"

    def _without_last_bar(self, text: str) -> str:
        """Take off the "|" that --parsable prints after the last column, too."""
        if self.header:
            closed = self.header.endswith(_BAR)
        else:
            closed = text.count(_BAR) >= len(self.columns)
        return text.removesuffix(_BAR) if closed else text

    def begins_record(self, text: str) -> bool:
        """Tell whether a job id stands where records have theirs."""
        cells = text.split(_BAR, self._id_column + 1)
        return len(cells) > self._id_column and bool(
            _BEGINS_JOB_ID.fullmatch(cells[self._id_column])
        )

    def continues(self, record: str, text: str) -> bool:
        """Tell whether the line `text` belongs to the job name that ends, or breaks off, `record`.

        A line that looks like most of a record is a damaged record, not a name.
        """
        after = self._bars_after_name
        if after < 0 or self.begins_record(text) or not self.begins_record(record):
            return False
        before = len(self.columns) - 1 - after
        name = record.split(_BAR, before)[before:]
        if not name or (after and _BAR in name[0]):
            return False
        more = text.split(_BAR, 1)[0] if after else text
        if len(name[0]) + len(more) >= JOB_NAME_CHARACTERS:
            return False
        bars = self._without_last_bar(text).count(_BAR)
        return bars in {0, after} if after else bars < len(self.columns) // 2


@dataclass(frozen=True)
class _Record(Record):
    layout: _Layout = field(kw_only=True)


def _records(source: Source, layout: _Layout) -> Iterator[_Record]:
    record: _Record | None = None
    for line, text in numbered_lines(source):
        header = _Layout.of_header(text)
        if record and not header and layout.continues(record.text, text):
            record = replace(record, text=f"{record.text}\n{text}", lines=record.lines + 1)
            continue
        if record:
            yield record
        layout = header or layout
        record = _Record(line, text, layout=layout)
    if record:
        yield record


def _read(record: _Record, zone: ZoneInfo) -> Row | None:
    text, layout = record.text, record.layout
    if text == layout.header or not text.strip():
        return None
    fields = layout.fields(text)
    try:
        return _job(fields, zone)
    except Unreadable as error:
        # Bars in a job name are legal; with a wrong list of columns they are the trace of it.
        doubt = "" if layout.header else layout.misfit(text)
        raise Unreadable(f"{error}; {doubt}" if doubt else str(error)) from error


def _job(fields: dict[str, str], zone: ZoneInfo) -> Row:
    batch_id, array_index, launch = _identity(fields)
    state = states.of_slurm(fields["state"]) if "state" in fields else states.UNKNOWN
    submitted = _readings(fields, "submit", zone)
    started_at, ended_at = _run(fields, state, zone)
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
        # In autumn's repeated hour the earlier: every export of the job must say the same.
        "submitted_at": submitted[0] if submitted else None,
        "started_at": started_at,
        "ended_at": ended_at,
        "node_count": _count(fields, "nnodes", "allocnodes") or hosts or None,
        "core_count": _cores(fields),
        # Slurm adds up when a job ends; until then it prints zeros.
        "cpu_s": None if state in states.NOT_ENDED else _cpu_s(fields),
        "time_limit_s": _time_limit_s(fields),
        "nodes": nodes if started_at else "",
    }


def _identity(fields: dict[str, str]) -> tuple[str, str, str]:
    """Return batch id, array index and step of a record.

    JobIDRaw is a task's or a component's own number, the one that its processes carry. Without it
    a heterogeneous job's component keeps its offset ("123+1"), so that no two are taken for one.
    """
    job_id = fields.get("jobid") or fields.get("jobidraw", "")
    match = _JOB_ID.fullmatch(job_id)
    if match is None:
        raise Unreadable(f"JobID {shown(job_id)} is not a job id")
    raw = fields.get("jobidraw", "").partition(".")[0]
    batch_id = (
        str(whole_number(raw, "JobIDRaw")) if raw else match["job"] + (match["component"] or "")
    )
    tasks = (match["tasks"] or "").partition("%")[0]  # "%7": how many may run at once
    return batch_id, match["task"] or tasks, match["step"] or ""


def _run(
    fields: dict[str, str], state: str, zone: ZoneInfo
) -> tuple[datetime | None, datetime | None]:
    """Return start and end; a job that was cancelled while it waited has an end only."""
    elapsed_s = _duration_s(fields, "elapsed")
    if elapsed_s is None:
        elapsed_s = _count(fields, "elapsedraw")
    waited = state == states.PENDING or (fields.get("nodelist") == _NO_NODES and not elapsed_s)
    starts = () if waited else _readings(fields, "start", zone)
    # Some exports print the start, or now, as the end of a job that still runs.
    ends = () if state in states.NOT_ENDED else _readings(fields, "end", zone)
    # Elapsed leaves out the time that the job was suspended.
    lasted_s = None if elapsed_s is None else elapsed_s + (_duration_s(fields, "suspended") or 0)
    return localtime.run_between(starts, ends, lasted_s)


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
    """Return the first of `columns` that holds a number."""
    for column in columns:
        if text := fields.get(column):
            return whole_number(text, column, INT32_MAX)
    return None


def _optional(text: str, what: str) -> int | None:
    return whole_number(text, what, INT32_MAX) if text else None


def _cores(fields: dict[str, str]) -> int | None:
    cores = _count(fields, "alloccpus", "ncpus")
    allocated = _ALLOCATED_CPUS.search(fields.get("alloctres", ""))
    if cores is None and allocated:
        return whole_number(allocated[1], "AllocTRES cpu", INT32_MAX)
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
