"""Output of IOR 2.10 to 4.1: text, CSV and JSON.

Source: docs/formats.md, "IOR"; hpc/ior, src/ior-output.c.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from collectors.batch import localtime
from collectors.batch.records import Record, Row, is_json, numbered_lines, parts
from collectors.batch.values import Unreadable, quoted
from collectors.format import EXPERIMENT_OPTIONS, Format
from collectors.parsed import Parsed
from collectors.source import Source
from collectors.tables import RUNS

_MIB = 1024.0**2
_LONGEST_TEXT = 200
_OPERATIONS = ("write", "read", "remove")
_CTIME = "%a %b %d %H:%M:%S %Y"

# Titles of columns in text and CSV, and names in JSON, to metrics and their units.
_METRICS: dict[str, tuple[str, float]] = {
    "bw(MiB/s)": ("bandwidth_bytes_per_s", _MIB),
    "bwMiB": ("bandwidth_bytes_per_s", _MIB),
    "IOPS": ("operations_per_s", 1.0),
    "iops": ("operations_per_s", 1.0),
    "Latency(s)": ("latency_s", 1.0),
    "Latency": ("latency_s", 1.0),
    "latency": ("latency_s", 1.0),
    "open(s)": ("open_s", 1.0),
    "openTime": ("open_s", 1.0),
    "wr/rd(s)": ("io_s", 1.0),
    "wrRdTime": ("io_s", 1.0),
    "close(s)": ("close_s", 1.0),
    "closeTime": ("close_s", 1.0),
    "total(s)": ("total_s", 1.0),
    "totalTime": ("total_s", 1.0),
}
# Options in lower case, as versions and forms name them, to labels.
_LABELS = {
    "api": "api",
    "access": "file_access",
    "ordering in a file": "ordering",
    "ordering inter file": "ordering_between_files",
    "xfersize": "transfer_size",
    "blocksize": "block_size",
    "segments": "segments",
    "tasks": "tasks",
    "clients per node": "tasks_per_node",
}
_NUMBERS = {
    "nodes": "nodes",
    "deadlineforstonewall": "deadline_s",
    "stonewallingtime": "deadline_s",
    "repetitions": "repetitions",
}
_TASKS = ("tasks", "tasks_per_node")
_LONGEST_LINE = 2_000  # characters; only a command line is longer
_LONGEST_RESULT = 40  # lines of JSON
_VERSION = re.compile(r"IOR-(\S+): MPI Coordinated Test of Parallel I/O")
_OPTION = re.compile(r"\s{0,8}([A-Za-z][A-Za-z ]{0,40})[:=] (.*)")
_CLIENTS = re.compile(r"(\d{1,9}) \((\d{1,9}) per node\)", re.ASCII)  # versions 3.0 and 3.1
_ACTUAL_BYTES = re.compile(r"WARNING: Using actual aggregate bytes moved = (\d{1,18})")
_TEST = re.compile(r"(?:Test \d{1,9} started|StartTime\s*|Run began): (.*)", re.ASCII)
# Version 2 prints only statistics of all repetitions: four of MiB/s, four of operations, mean time.
_OLD_VERSION = "2."
_STATISTICS = re.compile(
    r"(?P<operation>write|read)(?P<numbers>(?:\s+\d+\.\d+){9})(?:\s|$)", re.ASCII
)
_CUT_STATISTICS = re.compile(r"(?:write|read)\s+\d", re.ASCII)
_MEAN_BANDWIDTH, _MEAN_S = 2, 8
_SIZE = re.compile(r"(\d{1,15})(?: (bytes|KiB|MiB|GiB|TiB))?", re.ASCII)  # not a rounded one
_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_AFTER_RESULTS = ("Max ", "Summary of all tests")
_PARENTHESIS = re.compile(r" \(.*")  # of the API: "MPIIO (version=3, subversion=1)"
_CUT_RESULT = re.compile(r"(?:write|read)[\s,]+[\d.]+")
_MEMBER = re.compile(r'"([^"]{1,100})"\s*:\s*("[^"]*"|[-+.\w]+)')
_RESULT = re.compile(r'"access"\s*:\s*"(?:write|read|remove)"')


def parse(source: Source, zone: ZoneInfo) -> Iterator[Parsed]:
    """Read the results of IOR.

    Args:
        source: the standard output of IOR, or its summary file as CSV or JSON. JSON is read line by
            line, because IOR's JSON is not always valid.
        zone: of its times, which are local.

    Yields:
        Parts with a frame of `tables.RUNS`: one row per repetition and operation. Lines without
        results are irrelevant.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "IOR".
    """
    if is_json(source):
        return parts(RUNS, _blocks(numbered_lines(source)), _Json(zone).read)
    return parts(RUNS, (Record(*line) for line in numbered_lines(source)), _Text(zone).read)


class _Test:
    """What IOR prints about a test before its results."""

    def __init__(self, zone: ZoneInfo) -> None:
        self.zone = zone
        self.version = ""
        self.started_at: datetime | None = None
        self.labels: dict[str, str] = {}
        self.numbers: dict[str, float] = {}

    def start(self, moment: str) -> None:
        """Begin a test; its options follow."""
        self.labels, self.numbers = {}, {}
        self.started_at = _moment(moment, self.zone)

    def set(self, option: str, value: str) -> None:
        """Store an option, under the name in any version."""
        name, text = option.lower(), value.strip()[:_LONGEST_TEXT]
        if (clients := _CLIENTS.fullmatch(text)) and name == "clients":
            self.set("tasks", clients[1])
            self.set("clients per node", clients[2])
        elif name in _LABELS:
            self.labels[_LABELS[name]] = _PARENTHESIS.sub("", text)
        elif name in _NUMBERS and (number := _number(text)) is not None:
            self.numbers[_NUMBERS[name]] = number
        if name == "blocksize" and (size := _SIZE.fullmatch(text)):
            self.numbers["block_bytes"] = int(size[1]) * _UNITS[size[2] or "bytes"]

    def row(self, operation: str, figures: dict[str, str], repetition: int) -> Row:
        """Return a result.

        Args:
            operation: write, read or remove.
            figures: printed values, by title of the column or name of the member.
            repetition: its number, from 1.
        """
        metrics = {}
        for title, text in figures.items():
            name, factor = _METRICS.get(title, ("", 1.0))
            number = _number(text) if name else None
            if number is not None:
                metrics[name] = number * factor
        known_bytes = self._bytes()
        total_s, bandwidth = metrics.get("total_s"), metrics.get("bandwidth_bytes_per_s")
        if total_s is None:
            raise Unreadable(f"total time {quoted(figures.get('total(s)', ''))} is not a number")
        if bandwidth is None and operation != "remove":
            raise Unreadable("the bandwidth is not a finite number")
        if bandwidth is not None:
            metrics["bytes"] = known_bytes or bandwidth * total_s
        labels = {**self.labels, "operation": operation, "repetition": str(repetition)}
        if self.version:
            labels["ior_version"] = self.version
        return {
            "arm": "",
            "run": "",
            "state": "finished",
            "started_at": self.started_at,
            "scale": self._nodes(),
            "events": None,
            "labels": [{"name": name, "value": labels[name]} for name in sorted(labels)],
            "metrics": [{"name": name, "value": value} for name, value in metrics.items()],
            "steps": [],
            "counters": [],
            "markers": [],
        }

    def _nodes(self) -> float | None:
        if "nodes" in self.numbers:
            return self.numbers["nodes"]
        tasks, per_node = (_number(self.labels.get(name, "")) for name in _TASKS)
        return math.ceil(tasks / per_node) if tasks and per_node else None

    def _bytes(self) -> float | None:
        """Return the bytes of an operation; None: unknown, or cut by a deadline."""
        actual = self.numbers.pop("actual_bytes", None)  # of the next result only
        if actual is not None:
            return actual
        size = self.numbers.get("block_bytes")
        tasks = _number(self.labels.get("tasks", ""))
        segments = _number(self.labels.get("segments", ""))
        if size is None or tasks is None or segments is None or self.numbers.get("deadline_s"):
            return None
        return size * tasks * segments


class _Text:
    """Text or CSV, line by line."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._test = _Test(zone)
        self._columns: list[str] = []
        self._result: re.Pattern[str] | None = None

    def read(self, record: Record) -> Row | None:
        text = record.text[-_LONGEST_LINE:]
        if version := _VERSION.search(text):
            self._test = _Test(self._test.zone)
            self._test.version = version[1]
        elif test := _TEST.match(text):
            self._test.start(test[1])
        elif actual := _ACTUAL_BYTES.search(text):
            self._test.numbers["actual_bytes"] = float(actual[1])
        elif self._test.version.startswith(_OLD_VERSION) and _CUT_STATISTICS.match(text):
            return self._single(text)
        elif text.startswith(_AFTER_RESULTS):
            self._result = None
        elif text.startswith("access") and "bw(MiB/s)" in text:
            self._read_header(text)
        elif self._result and (result := self._result.search(text)):
            return self._row(result[0])
        elif self._result and _CUT_RESULT.match(text):
            raise Unreadable(f"the result has fewer than {len(self._columns)} columns")
        elif option := _OPTION.fullmatch(text):
            self._test.set(option[1].strip(), option[2])
        return None

    def _single(self, text: str) -> Row:
        """Return the result of a single repetition, from the statistics of version 2."""
        repetitions = self._test.numbers.get("repetitions")
        if repetitions != 1:
            raise Unreadable(
                f"IOR 2 prints statistics of {repetitions or 0:.0f} repetitions, not each of "
                "them: run it with -i 1, or use IOR 3"
            )
        statistics = _STATISTICS.match(text)
        if statistics is None:
            raise Unreadable("the result is cut, or was printed with -v: run IOR 2 without -v")
        numbers = statistics["numbers"].split()
        figures = {"bw(MiB/s)": numbers[_MEAN_BANDWIDTH], "total(s)": numbers[_MEAN_S]}
        return self._test.row(statistics["operation"], figures, 1)

    def _read_header(self, text: str) -> None:
        gap = r"," if "," in text else r"\s+"
        self._columns = re.split(gap, text.strip())
        values = rf"(?:{gap}[-+.\w%]+){{{len(self._columns) - 1}}}"
        # Other output may stand in front of a result, without a blank.
        self._result = re.compile(rf"(?:{'|'.join(_OPERATIONS)}){values}\s*$")

    def _row(self, text: str) -> Row:
        cells = re.split(r"[,\s]+", text.strip())
        figures = dict(zip(self._columns, cells, strict=True))
        if tasks := figures.get("numTasks"):
            self._test.set("tasks", tasks)
        repetition = _number(figures.get("iter", ""))
        if repetition is None:
            raise Unreadable("the number of the repetition is missing")
        return self._test.row(figures["access"], figures, int(repetition) + 1)


def _blocks(lines: Iterator[tuple[int, str]]) -> Iterator[Record]:
    """Yield lines of JSON; join the lines of a result, from `access` to its end, in one record."""
    block: list[str] = []
    first = 0
    for number, text in lines:
        if block and (_RESULT.search(text) or len(block) >= _LONGEST_RESULT):
            yield Record(first, "\n".join(block), len(block))
            block = []
        if _RESULT.search(text):
            first, block = number, [text]
        elif block:
            block.append(text)
        else:
            yield Record(number, text)
        if block and "}" in text:
            yield Record(first, "\n".join(block), len(block))
            block = []
    if block:
        yield Record(first, "\n".join(block), len(block))


class _Json:
    """JSON: lines, and results of several lines."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._test = _Test(zone)
        self._repetitions: Counter[str] = Counter()

    def read(self, record: Record) -> Row | None:
        members = {name: value.strip('"') for name, value in _MEMBER.findall(record.text)}
        if _RESULT.search(record.text):
            return self._row(record.text, members)
        for name, value in members.items():
            if name == "Version":
                self._test.version = value
            elif name == "StartTime":
                self._test.start(value)
                self._repetitions.clear()
            else:
                self._test.set(name, value)
        return None

    def _row(self, text: str, members: dict[str, str]) -> Row:
        operation = members["access"]
        if len(_RESULT.findall(text)) > 1:
            raise Unreadable("several results on a line: not the output of IOR itself")
        if "}" not in text:
            raise Unreadable(f"the result of {operation} is cut")
        self._repetitions[operation] += 1
        return self._test.row(operation, members, self._repetitions[operation])


def _number(text: str) -> float | None:
    """Return a finite number that is not negative; None if it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _moment(text: str, zone: ZoneInfo) -> datetime | None:
    """Return the time of ctime(3) in UTC; None if it is none."""
    try:
        wall = datetime.strptime(text.strip(), _CTIME)  # noqa: DTZ007  (local, of the given zone)
        return localtime.readings(wall, zone)[0]
    except (ValueError, Unreadable):
        return None


IOR = Format(
    name="ior",
    label="IOR",
    table=RUNS,
    parse=lambda source, origin: parse(source, origin.zone),
    scopes=(),
    options=EXPERIMENT_OPTIONS,
    head=re.compile(rb"(?m)^IOR-\d|\A\s*access,bw|\A\s*\{\s*\"Version\"\s*:[^\n]*\s*\"Began\""),
)
