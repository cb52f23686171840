"""Output of CMSSW with a storage timing summary, and of ``time``.

Source: docs/formats.md, "CMSSW logs"; bash's ``time``, and ``time -p``.
"""

import re
from collections.abc import Iterator

from collectors.batch.values import Unreadable
from collectors.experiments.run_rows import FAILED, check_number, run_row
from collectors.experiments.storage_timing import Counters, counter
from collectors.format import EXPERIMENT_OPTIONS, Format
from collectors.parsed import REJECT_TEXT_CHARACTERS, Account, Parsed, Reject
from collectors.source import Chunk, Lines, newlines
from collectors.tables import RUNS

_NEEDLES = (  # of relevant lines; most logs consist of other lines
    b"<counter-value",
    b"\nreal",
    b"\nuser",
    b"\nsys",
    b"Using my custom readv impl for",
    b"Number of reads performed",
    b"\nTrigReport Events total",
    b"Begin Fatal Exception",
)
_COUNTER = re.compile(r"<counter-value\b([^<>]*?)/?>")
_ATTRIBUTE = re.compile(r"([\w-]+)\s*=\s*(?:'([^']*)'|\"([^\"]*)\")")
_TIME = re.compile(r"(real|user|sys)\s+(\S+)\s*")
_DURATION = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(\d{1,9}(?:[.,]\d{1,9})?)s?", re.ASCII)
_TIMES = {"real": "wall_s", "user": "user_s", "sys": "sys_s"}
_VECTOR_READ = re.compile(r"Using my custom readv impl for (\d{1,9}) buffers")
_READS = re.compile(r"Number of reads performed (\d{1,9})\b")
_EVENTS = re.compile(r"TrigReport Events total = (\d{1,12})\b")


def parse(source: Lines) -> Iterator[Parsed]:
    """Read the log of one run; lines of other programs may lie between its lines.

    Args:
        source: the log. The outer tags of a storage timing summary may be missing.

    Yields:
        One part with a frame of `tables.RUNS`: one row, or none if nothing was found. Lines that
        the row is made of are accepted. A log of several runs is refused as a whole.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "CMSSW logs".
    """
    log = _Log()
    lines = 0
    for chunk in source.chunks():
        for number, text in _relevant_lines(chunk):
            log.add(number, text)
        lines = chunk.first_line + newlines(chunk.text) - chunk.text.endswith(b"\n")
    if lines:
        yield log.parsed(lines)


def _relevant_lines(chunk: Chunk) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines with a needle."""
    text = b"\n" + chunk.text
    starts: set[int] = set()
    for needle in _NEEDLES:
        at = text.find(needle)
        while at >= 0:
            starts.add(text.rfind(b"\n", 0, at + 1) + 1)
            at = text.find(needle, at + 1)
    number, counted = chunk.first_line - 1, 0
    for start in sorted(starts):
        number += newlines(text[counted:start])
        counted = start
        line = text[start : end if (end := text.find(b"\n", start)) >= 0 else len(text)]
        yield number, line.decode(errors="replace").replace("\0", "\ufffd")


class _Log:
    """The run of a log."""

    def __init__(self) -> None:
        self._first_line = 0
        self._accepted = 0
        self._rejects: list[Reject] = []
        self._is_of_several_runs = False
        self._counters = Counters()
        self._times: dict[str, float] = {}
        self._optimisation: dict[str, float] = {}
        self._markers: dict[str, str] = {}  # the first text of each kind
        self._events: int | None = None
        self._has_failed = False

    def add(self, number: int, text: str) -> None:
        """Read a line that seems to be relevant."""
        try:
            is_accepted = self._read(text)
        except Unreadable as error:
            self._rejects.append(Reject(number, text[:REJECT_TEXT_CHARACTERS], str(error)))
            check_number(self._rejects)
        else:
            self._accepted += is_accepted
            self._first_line = self._first_line or number * is_accepted

    def _read(self, text: str) -> bool:
        if "<counter-value" in text:
            return self._add_counters(text)
        if time := _TIME.fullmatch(text):
            return self._add_time(time[1], time[2])
        if vector_read := _VECTOR_READ.search(text):
            self._count("logged_readv_calls", 1)
            self._count("logged_readv_buffers", int(vector_read[1]))
            self._markers.setdefault("vector read", vector_read[0])
            return True
        if reads := _READS.search(text):
            self._count("logged_reads_performed", int(reads[1]))
            self._markers.setdefault("reads", reads[0])
            return True
        if events := _EVENTS.search(text):
            self._set_events(int(events[1]))
            return True
        self._has_failed |= "Begin Fatal Exception" in text
        return "Begin Fatal Exception" in text

    def _add_counters(self, text: str) -> bool:
        found = _COUNTER.findall(text)
        if len(found) != text.count("<counter-value"):
            raise Unreadable("a counter is cut")
        for attributes in found:
            values = {
                name: first or second for name, first, second in _ATTRIBUTE.findall(attributes)
            }
            each = counter(values.get("subsystem", ""), values.get("counter-name", ""), values)
            try:
                self._counters.add(each)
            except Unreadable:
                self._is_of_several_runs = True
                raise
        return True

    def _add_time(self, name: str, text: str) -> bool:
        duration = _DURATION.fullmatch(text)
        if duration is None:
            return False  # prose: "real data"
        hours, minutes, seconds = duration.groups()
        metric = _TIMES[name]
        if metric in self._times:
            self._is_of_several_runs = True
            raise Unreadable(f"the time {name!r} repeats: an input describes one run")
        whole = int(hours or 0) * 3_600 + int(minutes or 0) * 60
        self._times[metric] = whole + float(seconds.replace(",", "."))
        return True

    def _count(self, metric: str, number: int) -> None:
        self._optimisation[metric] = self._optimisation.get(metric, 0) + number

    def _set_events(self, events: int) -> None:
        if self._events is not None:
            self._is_of_several_runs = True
            raise Unreadable("the number of events repeats: an input describes one run")
        self._events = events

    def parsed(self, lines: int) -> Parsed:
        """Return the row of the run, if there is one."""
        is_usable = self._accepted and not self._is_of_several_runs
        rows = [self._row()] if is_usable else []
        accepted = self._accepted if is_usable else 0
        rejected = len(self._rejects)
        account = Account(lines, accepted, rejected, lines - accepted - rejected)
        return Parsed.from_rows(RUNS, rows, self._rejects, account)

    def _row(self) -> dict[str, object]:
        protocol = self._counters.protocol
        return run_row(
            line=self._first_line,
            state=FAILED if self._has_failed else "",
            events=self._events,
            labels={"protocol": protocol} if protocol else {},
            metrics={**self._times, **self._optimisation, **self._counters.metrics},
            counters=self._counters.all,
            markers=self._markers.values(),
        )


CMSSW_LOG = Format(
    name="cmssw_log",
    label="CMSSW log",
    table=RUNS,
    parse=lambda source, _: parse(source),
    scopes=(),
    options=EXPERIMENT_OPTIONS,
    head=re.compile(
        rb"(?m)\A(?!(?s:.*)<FrameworkJobReport)(?s:.*?)"
        rb"(?:<(?:storage-timing-summary|counter-value)|^real\s+\d)"
    ),
)
