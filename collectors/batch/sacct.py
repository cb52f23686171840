"""Slurm accounting: ``sacct --parsable2`` (or ``--parsable``, or ``--json``).

Source: docs/formats.md, "sacct"; src/sacct/print.c and src/common/parse_time.c of Slurm.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self
from zoneinfo import ZoneInfo

from collectors.batch import slurm, slurm_json
from collectors.batch.records import Record, Row, is_json, numbered_lines, parts
from collectors.batch.values import Unreadable
from collectors.format import Format
from collectors.parsed import Parsed
from collectors.source import Source
from collectors.tables import JOBS

# Columns of common accounting exports. JobName is last: only there may it contain "|".
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
JOB_NAME_CHARACTERS = 1_024  # Slurm refuses longer names
RECORD_CHARACTERS = 1024 * 1024  # lines beyond that do not continue other texts

_BAR = "|"
# Columns with texts of users, which may hold bars and newlines.
_TEXTS = frozenset(
    {
        *("jobname", "submitline", "workdir", "stdin", "stdout", "stderr", "extra"),
        *("comment", "admincomment", "systemcomment"),
    }
)
_MESSAGE = re.compile(
    r"(?:sacct|squeue|slurm\w*)(?:\[\d+\])?:? (?:error|fatal|warning|info|debug\d?): "
)
_BEGINS_JOB_ID = re.compile(r"\d+(?:[_+.].*)?", re.ASCII | re.DOTALL)  # of a cut line, too
_COLUMN = re.compile(r"[a-z][a-z0-9_/]*")


def parse(source: Source, zone: ZoneInfo, columns: Sequence[str] = COLUMNS) -> Iterator[Parsed]:
    """Read the jobs and steps of an sacct export.

    Args:
        source: the export. A header line, at any position, names the columns that follow. JSON is
            recognised by its first character.
        zone: the cluster's, for times without a UTC offset. Epoch seconds
            (``SLURM_TIME_FORMAT=%s``) need none.
        columns: the columns of an export without a header, in any case.

    Yields:
        Parts with a frame of `tables.JOBS`. A newline in a job name continues its record; header,
        blank and continuing lines are irrelevant.

    Raises:
        ValueError: `columns` has no job id.
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "sacct".
    """
    layout = Layout(tuple(name.lower() for name in columns))
    if not layout.names_the_job:
        raise ValueError(f"no JobID or JobIDRaw among the columns {', '.join(columns)}")
    if is_json(source):
        return slurm_json.parse(source, zone)
    return read(source, layout, lambda cells: slurm.row_of(cells, zone))


def read(
    source: Source, layout: "Layout", row_of: Callable[[dict[str, str]], Row]
) -> Iterator[Parsed]:
    """Read records whose cells are separated by bars.

    Args:
        source: see `parse`.
        layout: columns of an export without a header, and names in headers.
        row_of: returns the row of a record's cells by column; raises `Unreadable`.
    """
    return parts(JOBS, _records(source, layout), lambda record: _read(record, row_of))


@dataclass(frozen=True)
class Layout:
    """The columns of a record."""

    columns: tuple[str, ...]  # in lower case
    header: str = ""  # the line that names them; "": none
    tool: str = "sacct --parsable2"  # the command that prints it
    names: Mapping[str, str] = field(default_factory=dict)  # sacct's names of other tools' columns

    def from_header(self, text: str) -> Self | None:
        """Return the layout of a header line; None: `text` is not a header."""
        lowered = text.lower()
        if "jobid" not in lowered:
            return None
        columns: list[str] = []
        for column in lowered.removesuffix(_BAR).split(_BAR):
            name = self.names.get(column, column)
            columns.append(self.names.get(f"second {name}", name) if name in columns else name)
        layout = replace(self, columns=tuple(columns), header=text)
        is_header = layout.names_the_job and all(map(_COLUMN.fullmatch, layout.columns))
        return layout if is_header else None

    @property
    def names_the_job(self) -> bool:
        """Whether there is a column with a job id."""
        return "jobid" in self.columns or "jobidraw" in self.columns

    @cached_property
    def _id_column(self) -> int:
        return self.columns.index("jobid" if "jobid" in self.columns else "jobidraw")

    @cached_property
    def _text_columns(self) -> list[int]:
        """Positions of columns with texts, where a header names the columns."""
        return [at for at, name in enumerate(self.columns) if name in _TEXTS and self.header]

    @cached_property
    def _bars_after_name(self) -> int:
        """Number of "|" after the job name; -1: no such column."""
        return self.columns[::-1].index("jobname") if "jobname" in self.columns else -1

    def fields(self, text: str) -> dict[str, str]:
        """Return the cells of a record by column.

        Raises:
            Unreadable: the number of columns differs.
        """
        text = self._without_last_bar(text)
        cells = text.split(_BAR, len(self.columns) - 1 if self._bars_after_name == 0 else -1)
        surplus = len(cells) - len(self.columns)
        if surplus > 0 and len(self._text_columns) == 1:
            [at] = self._text_columns
            cells[at : at + surplus + 1] = [_BAR.join(cells[at : at + surplus + 1])]
        if len(cells) != len(self.columns):
            raise Unreadable(self.misfit(text))
        return dict(zip(self.columns, cells, strict=True))

    def misfit(self, text: str) -> str:
        """Return the difference in the number of columns, and its remedy; "": none."""
        count, expected = text.count(_BAR) + 1, len(self.columns)
        if count == expected:
            return ""
        if count == 1:
            remedy = f"this is not the output of {self.tool}"
        elif not self.header:
            remedy = "export with a header line (without --noheader), or name the columns in order"
        elif count > expected and self._bars_after_name > 0:
            remedy = "if a name holds a '|', export with JobName as the last column"
        else:
            remedy = "the line is cut, or belongs to another export"
        return f"columns found: {count}, expected: {expected}; {remedy}"

    def _without_last_bar(self, text: str) -> str:
        """Remove the "|" that --parsable prints after the last column."""
        if self.header:
            closed = self.header.endswith(_BAR)
        else:
            closed = text.count(_BAR) >= len(self.columns)
        return text.removesuffix(_BAR) if closed else text

    def begins_record(self, text: str) -> bool:
        """Return whether there is a job id in its column."""
        cells = text.split(_BAR, self._id_column + 1)
        return len(cells) > self._id_column and bool(
            _BEGINS_JOB_ID.fullmatch(cells[self._id_column])
        )

    def continues(self, record: str, text: str) -> bool:
        """Return whether the line `text` continues the text at the end of `record`.

        A line with at least half of a record's columns is a damaged record, not a name.
        """
        if _MESSAGE.match(text) or self.begins_record(text) or not self.begins_record(record):
            return False
        bars, last = self._without_last_bar(text).count(_BAR), len(self.columns) - 1
        column = record.count(_BAR)
        if column in self._text_columns and self.columns[column] != "jobname":
            # The following columns are all on the line on which the text ends.
            return bars in {0, last - column} and len(record) + len(text) <= RECORD_CHARACTERS
        after = self._bars_after_name
        if after < 0:
            return False
        before = last - after
        name = record.split(_BAR, before)[before:]
        if not name or (after and _BAR in name[0]):
            return False
        more = text.split(_BAR, 1)[0] if after else text
        if len(name[0]) + len(more) >= JOB_NAME_CHARACTERS:
            return False
        return bars in {0, after} if after else bars < len(self.columns) // 2


@dataclass(frozen=True)
class _Record(Record):
    layout: Layout = field(kw_only=True)


def _records(source: Source, layout: Layout) -> Iterator[_Record]:
    record: _Record | None = None
    for line, text in numbered_lines(source):
        header = layout.from_header(text)
        if record and not header and layout.continues(record.text, text):
            record = replace(record, text=f"{record.text}\n{text}", lines=record.lines + 1)
            continue
        if record:
            yield record
        layout = header or layout
        record = _Record(line, text, layout=layout)
    if record:
        yield record


def _read(record: _Record, row_of: Callable[[dict[str, str]], Row]) -> Row | None:
    text, layout = record.text, record.layout
    if text == layout.header or not text.strip():
        return None
    fields = layout.fields(text)
    try:
        return row_of(fields)
    except Unreadable as error:
        # Job names may contain bars. Without a header, bars also show a wrong list of columns.
        doubt = "" if layout.header else layout.misfit(text)
        raise Unreadable(f"{error}; {doubt}" if doubt else str(error)) from error


SACCT = Format(
    name="sacct",
    label="Slurm sacct",
    table=JOBS,
    parse=lambda source, origin: parse(source, origin.zone, origin.columns or COLUMNS),
    scopes=("cluster",),
    options=("cluster", "columns"),
    agent_inputs=("command", "folder"),
    has_local_times=True,
)
