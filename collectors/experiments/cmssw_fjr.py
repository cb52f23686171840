"""Framework job reports of CMSSW, and their JSON form in WMArchive.

A report is XML. Its storage statistics have three shapes: elements ``counter-value`` (2009 and
2010), performance metrics ``Timing-rfio-read-numOperations`` (later), and plain text (earlier).

Source: docs/formats.md, "CMSSW job reports"; ``StorageAccount`` and ``JobReport`` of CMSSW.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from xml.parsers import expat

from collectors.batch import localtime
from collectors.batch.records import Row, is_json, parts
from collectors.batch.values import INT64_MAX, Unreadable, quoted
from collectors.experiments.numbers import amount
from collectors.experiments.run_rows import FAILED, FINISHED, check_number, run_row
from collectors.experiments.storage_timing import MEBIBYTE, Counters, counter, dashed
from collectors.format import EXPERIMENT_OPTIONS, Format
from collectors.json_stream import Element, Members, elements
from collectors.parsed import Account, Parsed, Reject
from collectors.source import Source
from collectors.tables import RUNS

_ROOT = "FrameworkJobReport"
_DEEPEST = 32  # elements inside each other; reports have 8
_LONGEST = 4 * MEBIBYTE  # bytes of a tag, and characters of a text or of a JSON document
_LONGEST_NAME = 200
# CMSSW writes "&" in names of files as it is.
_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)")
_REFERENCE_CHARACTERS = 10  # the longest of those
_PRIMARY = "primaryFiles"
_TEXT_ELEMENTS = frozenset({"EventsRead", "InputType", "StorageStatistics"})
_TIMING = re.compile(r"(?:Timing|ROOT)-(.+)-([^-]+)-([A-Za-z]+)")
_PARAMETER = re.compile(r"Parameter-(?:.*-)?([A-Za-z]+)")
_OLD_COUNTER = re.compile(
    r"(?:^|[\s;])([\w.+-]+)/([\w.+-]+)=(\d+)/(\d+)/([^/;\s]+)MB/([^/;\s]+)ms/([^/;\s]+)ms/([^/;\s]+)ms"
)
_OLD_ATTRIBUTES = (
    "num-operations",
    "num-successful-operations",
    "total-megabytes",
    "total-msecs",
    "min-msecs",
    "max-msecs",
)
# Metrics of other summaries: summary, name, metric of the run, unit in it.
_METRICS = {
    ("Timing", "TotalJobTime"): ("job_s", 1),
    ("Timing", "TotalJobCPU"): ("job_cpu_s", 1),
    ("ApplicationMemory", "PeakValueRss"): ("peak_rss_bytes", MEBIBYTE),
    ("ApplicationMemory", "PeakValueVsize"): ("peak_vmem_bytes", MEBIBYTE),
}
_STORAGE = "StorageStatistics"


def parse(source: Source) -> Iterator[Parsed]:
    """Read a report, or documents of WMArchive.

    Args:
        source: XML or JSON. DTDs and entities are refused.

    Yields:
        Parts with a frame of `tables.RUNS`: a row per report, or per CMSSW step of a document. A
        report that is cut keeps its complete elements: its state is *failed*, its label ``report``
        is *cut*. The account counts reports and unreadable counters, or steps, instead of lines.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "CMSSW job reports".
    """
    if is_json(source):
        yield from parts(RUNS, _steps(source), _read_step)
    elif source.head:
        yield _Report().parsed(source)


class _Report:
    """A report, read element by element."""

    def __init__(self) -> None:
        self._counters = Counters()
        self._labels: dict[str, str] = {}
        self._metrics: dict[str, float] = {}
        self._rejects: list[Reject] = []
        self._open: list[str] = []  # names of the open elements
        self._text: list[str] = []  # of an element of `_TEXT_ELEMENTS`
        self._text_characters = 0
        self._input: dict[str, str] = {}  # texts of the current input file
        self._summary = ""  # name of the current performance summary
        # Values and line by subsystem and counter, complete at the end of the summary.
        self._summarised: dict[tuple[str, str], tuple[dict[str, str], int]] = {}
        self._events: int | None = None
        self._processed: int | None = None  # by the summary, for reports without input files
        self._is_closed = False
        self._has_failed = False
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = _refuse_doctype
        self._parser.EntityDeclHandler = _refuse_doctype

    def parsed(self, source: Source) -> Parsed:
        """Read a source to its end and return its row and rejects."""
        rows = [] if self._refused(source) else [self._row()]
        records = len(rows) + len(self._rejects)
        account = Account(records, len(rows), len(self._rejects), 0)
        return Parsed.from_rows(RUNS, rows, self._rejects, account)

    def _refused(self, source: Source) -> bool:
        """Read a source; return whether nothing of it can be used."""
        try:
            self._feed(source)
        except Unreadable as error:
            self._reject(str(error))
            return True
        except expat.ExpatError as error:
            self._reject(f"not well-formed XML: {expat.ErrorString(error.code)}")
            return not self._is_closed  # text after the report does not spoil it
        return False

    def _feed(self, source: Source) -> None:
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        size, held = 0, ""
        for block in source.blocks():
            whole = held + decode(block).replace("\0", "\ufffd")
            end = whole.rfind("&", max(len(whole) - _REFERENCE_CHARACTERS, 0))
            whole, held = (whole, "") if end < 0 else (whole[:end], whole[end:])
            text = _escaped(whole)
            size += len(text)
            self._parser.Parse(text, False)  # noqa: FBT003  (the C function has no keywords)
            if size - self._parser.CurrentByteIndex > _LONGEST:
                raise Unreadable(f"a tag or section has more than {_LONGEST:,} bytes")
        try:
            self._parser.Parse(_escaped(held + decode(b"", final=True)), True)  # noqa: FBT003
        except expat.ExpatError:
            if not self._open:
                raise  # no report at all
        if self._summarised:
            self._summarised.popitem()  # may be incomplete
            self._end_summary()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._open and name != _ROOT:
            raise Unreadable(f"root element {quoted(name)} is not {_ROOT}")
        self._open.append(name)
        if len(self._open) > _DEEPEST:
            raise Unreadable(f"more than {_DEEPEST} elements inside each other")
        self._text, self._text_characters = [], 0
        match name:
            case "InputFile":
                self._input = {}
            case "PerformanceSummary":
                self._summary = attributes.get("Metric", "")
            case "Metric":
                self._add_metric(attributes.get("Name", ""), attributes.get("Value", ""))
            case "counter-value":
                self._add_counter(attributes, self._line)
            case "param":
                self._add_label(attributes.get("name", ""), attributes.get("value", ""))
            case "FrameworkError":
                self._has_failed |= attributes.get("ExitStatus", "") != "0"

    def _end(self, name: str) -> None:
        self._open.pop()
        text = "".join(self._text)
        self._text, self._text_characters = [], 0
        match name:
            case "EventsRead" | "InputType":
                self._input[name] = text.strip()
            case "InputFile":
                self._end_input()
            case "PerformanceSummary":
                self._end_summary()
            case "StorageStatistics":
                self._add_old_counters(text)
            case "FrameworkJobReport":
                self._is_closed = not self._open

    def _characters(self, text: str) -> None:
        if self._open[-1] in _TEXT_ELEMENTS:
            self._text_characters += len(text)
            if self._text_characters > _LONGEST:
                raise Unreadable(f"a text has more than {_LONGEST:,} characters")
            self._text.append(text)

    def _end_input(self) -> None:
        text = self._input.get("EventsRead", "")
        if self._input.get("InputType") == _PRIMARY and text:
            events = self._number(text, "EventsRead")
            self._events = min((self._events or 0) + int(events or 0), INT64_MAX)

    def _add_metric(self, name: str, value: str) -> None:
        if self._summary == _STORAGE:
            if timing := _TIMING.fullmatch(name):
                subsystem, counter_name, attribute = timing.groups()
                values, _ = self._summarised.setdefault((subsystem, counter_name), ({}, self._line))
                values[dashed(attribute)] = value
            elif parameter := _PARAMETER.fullmatch(name):
                self._add_label(dashed(parameter[1]), value)
        elif self._summary == "ProcessingSummary" and name == "NumberEvents":
            number = self._number(value, name)
            self._processed = None if number is None else int(number)
        elif known := _METRICS.get((self._summary, name)):
            metric, unit = known
            number = self._number(value, name)
            if number is not None:
                self._metrics[metric] = number * unit

    def _number(self, text: str, what: str) -> float | None:
        try:
            return amount(text, what)
        except Unreadable as error:
            self._reject(str(error), text)
            return None

    def _end_summary(self) -> None:
        for (subsystem, name), (values, line) in self._summarised.items():
            self._add_counter({"subsystem": subsystem, "counter-name": name, **values}, line)
        self._summarised = {}
        self._summary = ""

    def _add_old_counters(self, text: str) -> None:
        for subsystem, name, *values in _OLD_COUNTER.findall(text):
            attributes = dict(zip(_OLD_ATTRIBUTES, values, strict=True))
            self._add_counter(
                {"subsystem": subsystem, "counter-name": name, **attributes}, self._line
            )

    def _add_counter(self, attributes: dict[str, str], line: int) -> None:
        try:
            self._counters.add(
                counter(
                    attributes.get("subsystem", ""), attributes.get("counter-name", ""), attributes
                )
            )
        except Unreadable as error:
            self._add_reject(Reject(line, "", str(error)))

    def _add_label(self, name: str, value: str) -> None:
        if 0 < len(name) <= _LONGEST_NAME and len(self._labels) < _LONGEST_NAME:
            self._labels[name] = value

    @property
    def _line(self) -> int:
        return self._parser.CurrentLineNumber

    def _reject(self, reason: str, text: str = "") -> None:
        self._add_reject(Reject(self._line, text, reason))

    def _add_reject(self, reject: Reject) -> None:
        self._rejects.append(reject)
        check_number(self._rejects)

    def _row(self) -> Row:
        protocol = self._counters.protocol
        labels = {**self._labels, **({"protocol": protocol} if protocol else {})}
        if not self._is_closed:
            labels["report"] = "cut"
        return run_row(
            line=1,
            state=FAILED if self._has_failed or not self._is_closed else FINISHED,
            events=self._processed if self._events is None else self._events,
            labels=labels,
            metrics={**self._metrics, **self._counters.metrics},
            counters=self._counters.all,
        )


def _escaped(text: str) -> bytes:
    """Return XML with "&" escaped where it begins no reference."""
    return _AMPERSAND.sub("&amp;", text).encode()


def _refuse_doctype(*_: object) -> None:
    raise Unreadable("the report has a document type or entities, which no job report needs")


def _steps(source: Source) -> Iterator[Element]:
    """Yield the steps of documents, numbered; a document without steps is yielded itself."""
    number = 0
    for element in elements(source, (), _LONGEST):
        report = (element.members or {}).get("fwjr")
        steps = report.get("steps") if isinstance(report, dict) else None
        if not isinstance(steps, dict) or not steps:
            number += 1
            yield replace(element, line=number, flaw=element.flaw or "not a document of WMArchive")
            continue
        document = str((element.members or {}).get("_id", ""))
        for name, step in steps.items():
            number += 1
            members = {"document": document, "name": name, "step": step}
            yield Element(number, str(name), members=members)


def _read_step(element: Element) -> Row | None:
    if element.flaw or element.members is None:
        raise Unreadable(element.flaw)
    name, step = element.members["name"], element.members["step"]
    if not isinstance(step, dict):
        raise Unreadable(f"step {quoted(name)} is not an object")
    if not name.startswith("cmsRun"):
        return None  # log archive, stage-out
    storage, cpu, memory = (
        _object(_object(step, "performance"), part) for part in ("storage", "cpu", "memory")
    )
    process = _object(step, "WMCMSSWSubprocess")
    metrics = {
        "read_operations": _number(storage, "readNumOps"),
        "read_bytes": _number(storage, "readTotalMB", MEBIBYTE),
        "write_bytes": _number(storage, "writeTotalMB", MEBIBYTE),
        "job_s": _number(cpu, "TotalJobTime"),
        "job_cpu_s": _number(cpu, "TotalJobCPU"),
        "wall_s": _number(process, "wallClockTime"),
        "user_s": _number(process, "userTime"),
        "sys_s": _number(process, "sysTime"),
        "peak_rss_bytes": _number(memory, "PeakValueRss", MEBIBYTE),
        "peak_vmem_bytes": _number(memory, "PeakValueVsize", MEBIBYTE),
    }
    started_s = _number(step, "start")
    site = step.get("site")
    return run_row(
        line=element.line,
        run=f"{element.members['document']} {name}".strip()[:_LONGEST_NAME].replace("\0", "\ufffd"),
        state=FINISHED if step.get("status") in {0, "0"} else FAILED,
        started_at=localtime.moment(int(started_s)) if started_s else None,
        events=_events(step),
        labels={"site": site} if isinstance(site, str) and site else {},
        metrics={metric: value for metric, value in metrics.items() if value is not None},
    )


def _object(members: Members, name: str) -> Members:
    value = members.get(name)
    return value if isinstance(value, dict) else {}


def _number(members: Members, name: str, unit: int = 1) -> float | None:
    """Return a number, which may be a text; None if it is missing."""
    value = members.get(name)
    if value is None or isinstance(value, bool | dict | list) or value == "":
        return None
    number = amount(str(value), name)
    return None if number is None else number * unit


def _events(step: Members) -> int | None:
    """Return the events read from primary files; None without such files."""
    inputs: list[Any] = [
        each
        for files in _object(step, "input").values()
        if isinstance(files, list)
        for each in files
        if isinstance(each, dict) and each.get("input_type") == _PRIMARY
    ]
    if not inputs:
        return None
    return min(sum(int(_number(each, "events") or 0) for each in inputs), INT64_MAX)


CMSSW_FJR = Format(
    name="cmssw_fjr",
    label="CMSSW job report",
    table=RUNS,
    parse=lambda source, _: parse(source),
    scopes=(),
    options=EXPERIMENT_OPTIONS,
    head=re.compile(rb"<FrameworkJobReport|\A\s*\{[^{]*\"fwjr\""),
)
