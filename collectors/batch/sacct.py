"""What Slurm accounted for: ``sacct --parsable2`` (or ``--parsable``, or ``--json``).

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
_BEGINS_JOB_ID = re.compile(r"\d+(?:[_+.].*)?", re.ASCII | re.DOTALL)  # of a cut line, too
_COLUMN = re.compile(r"[a-z][a-z0-9_/]*")


def parse(source: Source, zone: ZoneInfo, columns: Sequence[str] = COLUMNS) -> Iterator[Parsed]:
    """Read the jobs and steps of an sacct export.

    Args:
        source: the export. A header line, wherever it stands, names the columns after it; JSON is
            told by its first character.
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
        source: as of `parse`.
        layout: of a text without a header, and what headers are like.
        row_of: returns the row of a record's cells by column; raises `Unreadable`.
    """
    return parts(JOBS, _records(source, layout), lambda record: _read(record, row_of))


@dataclass(frozen=True)
class Layout:
    """The columns of a record."""

    columns: tuple[str, ...]  # in lower case
    header: str = ""  # the line that names them; "": there is none
    tool: str = "sacct --parsable2"  # what prints it
    names: Mapping[str, str] = field(default_factory=dict)  # of columns that sacct names otherwise

    def of_header(self, text: str) -> Self | None:
        """Return the layout that `text` announces; None: it is no header."""
        lowered = text.lower()
        if "jobid" not in lowered:
            return None
        columns: list[str] = []
        for told in lowered.removesuffix(_BAR).split(_BAR):
            name = self.names.get(told, told)
            columns.append(self.names.get(f"second {name}", name) if name in columns else name)
        layout = replace(self, columns=tuple(columns), header=text)
        is_header = layout.names_the_job and all(map(_COLUMN.fullmatch, layout.columns))
        return layout if is_header else None

    @property
    def names_the_job(self) -> bool:
        """Whether records say which job they are of."""
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
            remedy = f"this is not the output of {self.tool}"
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
    layout: Layout = field(kw_only=True)


def _records(source: Source, layout: Layout) -> Iterator[_Record]:
    record: _Record | None = None
    for line, text in numbered_lines(source):
        header = layout.of_header(text)
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
        # Bars in a job name are legal; with a wrong list of columns they are the trace of it.
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
