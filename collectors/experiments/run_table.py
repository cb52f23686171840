"""Tables of runs: one row per run with labels, metrics and steps, as CSV or JSON.

Source: docs/formats.md, "Run table".
"""

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

from collectors.batch import localtime
from collectors.batch.records import Record, Row, is_json, numbered_lines, parts
from collectors.batch.values import INT64_MAX, Unreadable, quoted
from collectors.experiments import units
from collectors.experiments.numbers import LARGEST, SMALLEST
from collectors.format import EXPERIMENT_OPTIONS, Format
from collectors.json_stream import Element, elements
from collectors.parsed import Parsed
from collectors.source import Source
from collectors.tables import RUNS

STATES = ("finished", "failed", "hung")
MOST_RUNS = 100_000  # of a file: their identities are held in memory

_FRAMES = ("runs",)
_MOST_COLUMNS = 200
_LONGEST_TEXT = 120
_SCALES = ("nodes", "scale")
_TEXTS = ("arm", "run", "repetition", "state", "started_at")
_LABEL, _STEP = "label:", "step:"

_Cell = str | float | None  # None: empty


def parse(source: Source, zone: ZoneInfo) -> Iterator[Parsed]:
    """Read a table of runs.

    Args:
        source: CSV whose first line names the columns, or JSON: a list of objects, or an object
            with such a list under ``runs``.
        zone: of times without an offset.

    Yields:
        Parts with a frame of `tables.RUNS`, one row per run. The account counts lines of a CSV
        file, and objects of a JSON file. The header and blank lines are irrelevant.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "Run table".
    """
    runs = _Runs(zone, has_types=is_json(source))
    if runs.has_types:
        return parts(RUNS, elements(source, _FRAMES), partial(_read_element, runs))
    lines = (Record(*line) for line in numbered_lines(source))
    return parts(RUNS, lines, _Csv(runs).read)


def _read_element(runs: "_Runs", element: Element) -> Row | None:
    if element.flaw:
        raise Unreadable(element.flaw)
    if element.members is None:
        return None
    names = list(element.members)
    cells = [_json_cell(name, value) for name, value in element.members.items()]
    return runs.row(element.line, _columns(names), cells)


def _json_cell(name: str, value: object) -> _Cell:
    if isinstance(value, bool | dict | list):
        raise Unreadable(f"{quoted(name)} is not a string or number")
    if isinstance(value, int) and abs(value) > INT64_MAX:
        raise Unreadable(f"{quoted(name)} is too large")
    if isinstance(value, str):
        return value.encode(errors="replace").decode().replace("\0", "\ufffd").strip() or None
    return None if value is None else float(value)  # type: ignore[arg-type]  # the other types


class _Csv:
    """A CSV file, line by line; the first line that is not blank names the columns."""

    def __init__(self, runs: "_Runs") -> None:
        self._runs = runs
        self._columns: Sequence[_Column] | None = None

    def read(self, record: Record) -> Row | None:
        if not record.text.strip():
            return None
        cells = _split(record.text)
        if self._columns is None:
            self._columns = ()  # the following lines have no valid header
            self._columns = _columns([cell.lower() for cell in cells])
            return None
        if not self._columns:
            raise Unreadable("the header is not valid")
        if len(cells) != len(self._columns):
            raise Unreadable(f"{len(cells)} cells instead of {len(self._columns)}")
        return self._runs.row(record.line, self._columns, [cell or None for cell in cells])


def _split(text: str) -> list[str]:
    try:
        [cells] = csv.reader([text], strict=True)
    except (csv.Error, ValueError) as error:
        raise Unreadable("a quotation mark has no counterpart on its line") from error
    return [cell.strip() for cell in cells]


@dataclass(frozen=True)
class _Column:
    """A column: a known text, the scale, the events, a step, a label, or a label or metric."""

    kind: str
    title: str  # as in the file
    name: str  # of the label, metric or step
    factor: float = 1.0

    @property
    def is_time(self) -> bool:
        """Whether it is a metric in seconds; a run may lack a step."""
        return not self.kind and self.name.endswith("_s")


def _columns(titles: Sequence[str]) -> list[_Column]:
    if len(titles) > _MOST_COLUMNS:
        raise Unreadable(f"{len(titles)} columns, more than {_MOST_COLUMNS}")
    columns = [_column(title) for title in titles]
    first: dict[tuple[str, str], str] = {}
    for column in columns:
        title = first.setdefault((column.kind, column.name), column.title)
        if title is not column.title:
            raise Unreadable(
                f"columns {quoted(title)} and {quoted(column.title)} both give "
                f"{quoted(column.name)}: one column and one unit for each quantity"
            )
    return columns


def _column(title: str) -> _Column:
    if title in _TEXTS:
        return _Column(title, title, title)
    if title in _SCALES:
        return _Column("scale", title, "scale")
    if title == "events":
        return _Column(title, title, title)
    name, factor = units.metric(title.removeprefix(_LABEL).removeprefix(_STEP))
    if title.startswith(_LABEL):
        return _Column(_LABEL, title, title.removeprefix(_LABEL))
    if title.startswith(_STEP):
        return _Column(_STEP, title, name.removesuffix("_s"), factor)
    return _Column("", title, name, factor)


@dataclass
class _Runs:
    """The runs of a file: types of its columns, and names in use."""

    zone: ZoneInfo
    has_types: bool  # strings are texts, even if they look like numbers
    _are_numbers: dict[str, bool] = field(default_factory=dict)  # by title
    _lines: dict[tuple[object, ...], int] = field(default_factory=dict)  # by identity of a run

    def row(self, line: int, columns: Sequence[_Column], cells: Sequence[_Cell]) -> Row:
        """Return a run; raise `Unreadable` if it is not valid."""
        if len(self._lines) >= MOST_RUNS:
            raise Unreadable(f"more than {MOST_RUNS:,} runs in a file")
        run = _Run()
        for column, cell in zip(columns, cells, strict=True):
            if column.kind in _TEXTS:
                run.texts[column.kind] = _text(cell, column.title)
            elif cell is None:
                run.empty.append(column)
            elif column.kind == _LABEL or not (column.kind or self._is_number(column.title, cell)):
                run.labels[column.name] = _text(cell, column.title)
            else:
                run.add_number(column, _number(cell, column.title) * column.factor)
        row = run.row(self.zone)
        self._check_identity(line, run)
        return row

    def _is_number(self, title: str, cell: str | float) -> bool:
        """Return the type of a column, which its first value determines."""
        is_number = isinstance(cell, float) or (not self.has_types and _is_number(cell))
        expected = self._are_numbers.setdefault(title, is_number)
        if expected and not is_number:
            raise Unreadable(
                f"{title} {quoted(str(cell))} is not a number, unlike earlier values; for text, "
                f"name the column label:{title}"
            )
        return expected

    def _check_identity(self, line: int, run: "_Run") -> None:
        """Refuse a second run with one name, or a second one with one repetition number."""
        name, repetition = (run.texts.get(key, "") for key in ("run", "repetition"))
        first = self._lines.setdefault(run.identity or (line,), line)
        if first != line:
            what = f"run {quoted(name)}" if name else f"repetition {quoted(repetition)}"
            raise Unreadable(f"{what} is the same as in line {first}")


@dataclass
class _Run:
    """The values of a run."""

    texts: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    steps: dict[str, float] = field(default_factory=dict)
    scale: float | None = None
    events: int | None = None
    empty: list[_Column] = field(default_factory=list)

    @property
    def identity(self) -> tuple[object, ...]:
        """What another run of the file must not have; () if the file does not say."""
        if self.texts.get("run"):
            return (self.texts["run"],)
        if self.texts.get("repetition"):
            labels = {**self.labels, "repetition": self.texts["repetition"]}
            return (self.texts.get("arm"), self.scale, *sorted(labels.items()))
        return ()

    def add_number(self, column: _Column, value: float) -> None:
        """Store a number of a column."""
        if column.kind == "scale":
            self.scale = value
        elif column.kind == "events":
            self.events = _whole(value)
        else:
            (self.steps if column.kind == _STEP else self.metrics)[column.name] = value

    def row(self, zone: ZoneInfo) -> Row:
        """Return the row; raise `Unreadable` if the run is not valid."""
        state = _state(self.texts.get("state", ""))
        if state in {"", "finished"}:
            self._check_figures()
        if self.texts.get("repetition"):
            self.labels["repetition"] = self.texts["repetition"]
        return {
            "arm": self.texts.get("arm", ""),
            "run": self.texts.get("run", ""),
            "state": state,
            "started_at": _moment(self.texts.get("started_at", ""), zone),
            "scale": self.scale,
            "events": self.events,
            "labels": [{"name": name, "value": text} for name, text in self.labels.items()],
            "metrics": [{"name": name, "value": value} for name, value in self.metrics.items()],
            "steps": [{"name": name, "seconds": value} for name, value in self.steps.items()],
            "counters": [],
            "markers": [],
        }

    def _check_figures(self) -> None:
        times = [each.title for each in self.empty if each.is_time]
        if times:
            raise Unreadable(
                f"{times[0]} is empty: only a run whose state is failed or hung has no time"
            )
        if not self.metrics and not self.steps:
            raise Unreadable("the run has no metric: no column with numbers")


def _text(cell: _Cell, title: str) -> str:
    if isinstance(cell, float):
        text = str(int(cell)) if cell.is_integer() else str(cell)
    else:
        text = cell or ""
    if len(text) > _LONGEST_TEXT:
        raise Unreadable(f"{title} has more than {_LONGEST_TEXT} characters")
    return text


def _state(text: str) -> str:
    state = text.lower()
    if state and state not in STATES:
        raise Unreadable(f"state {quoted(text)} is none of {', '.join(STATES)}")
    return state


def _moment(text: str, zone: ZoneInfo) -> datetime | None:
    if not text:
        return None
    moment = localtime.readings(localtime.stamp(text, "started_at"), zone)[0]
    localtime.moment(int(moment.timestamp()))  # refuses times before 1990
    return moment


def _whole(number: float) -> int:
    if not number.is_integer() or number > INT64_MAX // 2:
        raise Unreadable(f"events {number:g} is not a whole number")
    return int(number)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def _number(cell: str | float, title: str) -> float:
    """Return a number that is finite and not negative."""
    if isinstance(cell, str) and not _is_number(cell):
        raise Unreadable(f"{title} {quoted(cell)} is not a number; the unit belongs to the column")
    number = float(cell)
    if not math.isfinite(number):
        raise Unreadable(f"{title} {quoted(str(cell))} is not a finite number")
    if number < 0:
        raise Unreadable(f"{title} {quoted(str(cell))} is negative")
    if number > LARGEST or 0 < number < SMALLEST:
        raise Unreadable(f"{title} {quoted(str(cell))} is not between {SMALLEST:g} and {LARGEST:g}")
    return number


RUN_TABLE = Format(
    name="runs",
    label="Run table",
    table=RUNS,
    parse=lambda source, origin: parse(source, origin.zone),
    scopes=(),
    options=EXPERIMENT_OPTIONS,
    head=re.compile(
        rb"\A(?:\s*(?:\[\s*\{|\{\s*\"runs\")|"
        rb"(?![^\n]*\btarget\b)(?![^\n,]*\()(?=[^\n]*,)[^\n]*\b"
        rb"(?:arm|run|repetition|nodes|scale|wall_s|cpu_s|seconds)\b)"
    ),
)
