"""Samples and summaries of prmon, the process monitor of the HSF.

Source: docs/formats.md, "prmon"; HSF/prmon.
"""

import re
from collections.abc import Iterator
from typing import Any

from collectors.batch import localtime
from collectors.batch.records import Record, Row, numbered_lines, parts
from collectors.batch.values import Unreadable, quoted, whole_number
from collectors.experiments.numbers import amount
from collectors.experiments.run_rows import run_row
from collectors.format import EXPERIMENT_OPTIONS, Format
from collectors.json_stream import Element, elements
from collectors.parsed import Parsed
from collectors.source import Lines, Source
from collectors.tables import PROCESS_SAMPLES, RUNS

_KIBIBYTE = 1_024  # prmon's kB
_LARGEST_S = 10**9  # of a run
# prmon's column, the table's column, and the factor between their units.
_LEVELS = (
    ("pss", "pss_bytes", _KIBIBYTE),
    ("rss", "rss_bytes", _KIBIBYTE),
    ("swap", "swap_bytes", _KIBIBYTE),
    ("vmem", "vmem_bytes", _KIBIBYTE),
    ("nprocs", "nprocs", 1),
    ("nthreads", "nthreads", 1),
)
_TOTALS = (
    ("utime", "utime_s", 1),
    ("stime", "stime_s", 1),
    ("rchar", "rchar_bytes", 1),
    ("wchar", "wchar_bytes", 1),
    ("read_bytes", "read_bytes", 1),
    ("write_bytes", "write_bytes", 1),
    ("rx_bytes", "rx_bytes", 1),
    ("tx_bytes", "tx_bytes", 1),
)
_COLUMNS = _LEVELS + _TOTALS
# Metrics of maxima in a summary. The prefix separates them from figures of other programs.
_MAXIMA = {
    "wtime": ("process_wall_s", 1),
    "gpufbmem": ("max_gpu_memory_bytes", _KIBIBYTE),
    **{name: (f"max_{column}", unit) for name, column, unit in _LEVELS},
    **{name: (f"process_{column}", unit) for name, column, unit in _TOTALS},
}
_UNITS = {"kB": ("_bytes", _KIBIBYTE), "B": ("_bytes", 1), "s": ("_s", 1), "1": ("", 1)}
_NAME_CHARACTERS = 48
_MOST_MAXIMA = 200


def parse(source: Lines) -> Iterator[Parsed]:
    """Read samples; the header names the columns, in any order.

    Args:
        source: text with tabs. Missing columns and empty cells are unknown; other columns are
            ignored. Counters stay as printed. Old versions print counters that fall.

    Yields:
        Parts with a frame of `tables.PROCESS_SAMPLES`, one row per sample. Header and blank lines
        are irrelevant.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "prmon".
    """
    return parts(
        PROCESS_SAMPLES, (Record(*line) for line in numbered_lines(source)), _Samples().read
    )


class _Samples:
    """The samples of one run."""

    def __init__(self) -> None:
        self._header: list[str] = []
        self._is_after_second_header = False
        self._first_s: int | None = None
        self._last_s = 0

    def read(self, record: Record) -> Row | None:
        """Return the row of a sample; None for the header."""
        if not record.text.strip():
            return None
        cells = [cell.strip() for cell in record.text.split("\t")]
        if cells[0] == "Time":
            self._set_header(cells)
            return None
        if not self._header or self._is_after_second_header:
            raise Unreadable("a sample without a header of its own before it")
        if len(cells) != len(self._header):
            raise Unreadable(f"{len(cells)} cells instead of {len(self._header)}")
        return self._row(dict(zip(self._header, cells, strict=True)))

    def _set_header(self, cells: list[str]) -> None:
        if self._header:
            self._is_after_second_header = True
            raise Unreadable("a second header: an input describes one run")
        if repeated := next((cell for cell in cells if cells.count(cell) > 1), None):
            raise Unreadable(f"column {quoted(repeated)} repeats")
        self._header = cells

    def _row(self, cells: dict[str, str]) -> Row:
        now_s = whole_number(cells["Time"], "Time")
        at = localtime.moment(now_s)
        if self._first_s is not None and now_s < self._last_s:
            raise Unreadable(f"Time {now_s} is before the Time {self._last_s} of a sample above")
        first_s = now_s if self._first_s is None else self._first_s
        values = {
            column: None if number is None else number * unit
            for name, column, unit in _COLUMNS
            for number in (_number(cells, name),)
        }
        elapsed_s = _number(cells, "wtime")
        if elapsed_s is not None and elapsed_s > _LARGEST_S:
            raise Unreadable(f"wtime {cells['wtime']} is too large")
        self._first_s, self._last_s = first_s, now_s
        return {
            "at": at,
            "elapsed_s": float(now_s - first_s) if elapsed_s is None else elapsed_s,
            **values,
        }


def _number(cells: dict[str, str], name: str) -> float | None:
    text = cells.get(name, "")
    return amount(text, name) if text else None


def parse_summary(source: Source) -> Iterator[Parsed]:
    """Read summaries in JSON.

    Only maxima are read: the maximum of a counter is its total. Means of counters are wrong in
    versions up to 3.3.0.

    Yields:
        Parts with a frame of `tables.RUNS`. The account counts summaries instead of lines.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "prmon".
    """
    return parts(RUNS, elements(source, ()), _summary)


def _summary(element: Element) -> Row:
    if element.flaw or element.members is None:
        raise Unreadable(element.flaw or "not a summary of prmon")
    members = element.members
    maxima = members.get("max")
    if not isinstance(maxima, dict) or "wtime" not in maxima:
        raise Unreadable("Max or its wtime is missing: not a summary of prmon")
    if len(maxima) > _MOST_MAXIMA:
        raise Unreadable(f"more than {_MOST_MAXIMA} maxima")
    units = _member(members, "units", "Max")
    metrics = {}
    for name, value in maxima.items():
        metric, unit = _metric(str(name), units)
        if isinstance(value, bool | dict | list):
            raise Unreadable(f"{quoted(str(name))} is not a number")
        number = None if value is None else amount(str(value), str(name))
        if number is not None:
            metrics[metric] = number * unit
    return run_row(line=element.line, labels=_labels(members), metrics=metrics)


def _metric(name: str, units: dict[str, Any]) -> tuple[str, int]:
    """Return the metric of a maximum, and the unit of the maximum in the metric's."""
    known = _MAXIMA.get(name)
    suffix, unit = _UNITS.get(str(units.get(name)), ("", known[1] if known else 1))
    if known:
        return known[0], unit
    plain = name[:_NAME_CHARACTERS].replace("\0", "\ufffd")
    return f"max_{plain.removesuffix(suffix)}{suffix}", unit


def _labels(members: dict[str, Any]) -> dict[str, str]:
    cpu = _member(members, "hw", "cpu")
    labels = {
        "prmon": _member(members, "prmon").get("Version"),
        "cpu": cpu.get("ModelName"),
        "cores": cpu.get("CPUs"),
    }
    return {
        name: str(value).replace("\0", "\ufffd")
        for name, value in labels.items()
        if isinstance(value, str | int) and value
    }


def _member(members: dict[str, Any], *path: str) -> dict[str, Any]:
    """Return an object inside others; empty if it is missing."""
    for name in path:
        value = members.get(name)
        members = value if isinstance(value, dict) else {}
    return members


PRMON = Format(
    name="prmon",
    label="prmon samples",
    table=PROCESS_SAMPLES,
    parse=lambda source, _: parse(source),
    scopes=(),
    options=EXPERIMENT_OPTIONS,
    head=re.compile(rb"\ATime\t[^\n]*\bwtime\b"),
)

PRMON_JSON = Format(
    name="prmon_json",
    label="prmon summary",
    table=RUNS,
    parse=lambda source, _: parse_summary(source),
    scopes=(),
    options=EXPERIMENT_OPTIONS,
    head=re.compile(rb"\A\s*\{\s*\"(?:Avg|Max|HW|prmon|Units)\"\s*:"),
)
