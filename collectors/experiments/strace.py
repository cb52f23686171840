"""strace logs: system calls of a program with their paths, results and times.

    [PID|[pid PID]] [TIME] CALL(ARGUMENTS) = RESULT [<SECONDS>]

The parts in brackets depend on the options -f, -t, -tt, -ttt, -r and -T. With -y, descriptors are
followed by their path: 3</sw/lib>. Another process may interrupt a call:

    7035  PID and TIME newfstatat(AT_FDCWD, "/scratch/out",  <unfinished ...>
    7035  PID and TIME <... newfstatat resumed>{st_mode=S_IFREG|0644, ...}, 0) = 0

Source: docs/formats.md, "strace"; strace(1), versions 4.5 to 6.
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import polars as pl

from collectors.background import in_background
from collectors.experiments.strace_clock import Clock
from collectors.experiments.strace_exact import Unreadable, read_exactly
from collectors.experiments.strace_interrupted import joined_lines
from collectors.experiments.strace_plain import read_plain
from collectors.experiments.strace_processes import NEEDS_FOLDER, Processes
from collectors.experiments.strace_records import OTHER, RECORDS
from collectors.experiments.strace_summary import Summary
from collectors.format import EXPERIMENT_OPTIONS, Format
from collectors.parsed import Account, Parsed, Reject, reject_frame
from collectors.source import Chunk, Lines, cleaned
from collectors.tables import REJECTS, SYSTEM_CALLS

WINDOW_S = 10
_WINDOW_US = WINDOW_S * 1_000_000
_SLICE = 50_000  # lines
_PATH = pl.col("path")
_HEAD = re.compile(
    rb"\A(?:% time +seconds |strace: |"
    rb" *(?:\[pid +\d+\] +|\d{1,7} +)?(?:\d+\.\d+ |\d{9,} |[\d:]{8}(?:\.\d+)? )?"
    rb'(?:[a-z_][a-z0-9_]*\((?:["{\d-]|[A-Z_]+[,|<])|<\.\.\. [a-z0-9_]+ resumed>|\+\+\+ |--- SIG))'
)

PlainReader: TypeAlias = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True)
class _Lines:
    """The lines of a chunk: records of plain lines, and all others that are not empty."""

    count: int
    plain: pl.DataFrame
    odd: pl.DataFrame  # line, text


def parse(source: Lines, read_plain: PlainReader = read_plain) -> Iterator[Parsed]:
    """Read a log of strace, written with -o or to stderr, or the summary of -c.

    Args:
        source: the log of one process or of many; each file of -ff is a log.
        read_plain: reads lines in columns.

    Yields:
        Parts with a frame of `tables.SYSTEM_CALLS`. The line on which a call returns is accepted.
        The start of an interrupted call, a call that never returned, signals, exits and messages
        are irrelevant. A path is absolute if the log shows its folder (-y) or the working
        directory of the process, otherwise as it was written.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "strace".
    """
    log = _Log(read_plain)
    with ThreadPoolExecutor(2) as threads:  # polars releases the GIL
        split = partial(_split, read_plain=read_plain)
        for lines in in_background(threads, split, source.chunks(), ahead=2):
            yield log.read(lines)


def _split(chunk: Chunk, read_plain: PlainReader) -> _Lines:
    text = cleaned(chunk.text).decode()
    lines = (
        pl.Series("text", [text.removesuffix("\n")])
        .str.split("\n")
        .explode()
        .str.strip_suffix("\r")
        .to_frame()
        .with_row_index("line", chunk.first_line)
        .cast({"line": pl.Int64})
    )
    count = lines.height
    lines = lines.filter(pl.col("text") != "")
    plain = read_plain(lines)
    return _Lines(count, plain, lines.join(plain, "line", "anti", maintain_order="left"))


@dataclass(frozen=True)
class _Odd:
    """What lines say that were read by themselves."""

    records: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=RECORDS))
    totals: pl.DataFrame = field(default_factory=SYSTEM_CALLS.empty)  # of summaries
    rejects: pl.DataFrame = field(default_factory=REJECTS.empty)
    summary_lines: int = 0  # lines with such totals


class _Log:
    """The state of a log between its parts."""

    def __init__(self, read_plain: PlainReader) -> None:
        self._read_plain = read_plain
        self._clock = Clock()
        self._processes = Processes()
        self._summary = Summary()
        self._has_calls = False

    def read(self, lines: _Lines) -> Parsed:
        """Read the next lines."""
        interrupted, odd_lines = self._read_interrupted(lines.odd)
        odd = self._read_odd(odd_lines)
        records = lines.plain.merge_sorted(interrupted, "line").merge_sorted(odd.records, "line")
        times = self._clock.times_us(records["clock"])
        calls = self._processes.calls(records.with_columns(times.alias("time_us")))
        self._has_calls |= calls.height > 0
        totals, summary_lines = odd.totals, odd.summary_lines
        if self._has_calls:  # -C: the summary counts the same calls
            totals, summary_lines = totals.clear(), 0
        accepted, rejected = calls.height + summary_lines, odd.rejects.height
        account = Account(lines.count, accepted, rejected, lines.count - accepted - rejected)
        return Parsed(pl.concat([_totals(calls), totals]), odd.rejects, account)

    def _read_interrupted(self, odd: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Read interrupted calls in columns; return their records and the other lines."""
        joined = joined_lines(odd, self._processes.unfinished)
        records = self._read_plain(joined.select("line", "text")).filter(~NEEDS_FOLDER)
        read = joined.join(records, "line", "semi")
        return records, odd.filter(
            ~pl.col("line").is_in(pl.concat([read["line"], read["end_line"]]).implode())
        )

    def _read_odd(self, odd: pl.DataFrame) -> _Odd:
        """Read lines by themselves, some at a time: Python's objects take much memory."""
        parts = [self._read_some(some) for some in odd.iter_slices(_SLICE)] or [_Odd()]
        return _Odd(
            pl.concat([part.records for part in parts]),
            pl.concat([part.totals for part in parts]),
            pl.concat([part.rejects for part in parts]),
            sum(part.summary_lines for part in parts),
        )

    def _read_some(self, odd: pl.DataFrame) -> _Odd:
        records: list[tuple[object, ...]] = []
        totals: list[dict[str, object]] = []
        rejects: list[Reject] = []
        summary_lines = 0
        for line, text in odd.iter_rows():
            rows = self._summary.read(line, text)
            if rows is not None:
                summary_lines += bool(rows)
                totals += [_total(line, *row) for row in rows]
                continue
            try:
                record = read_exactly(text)
            except Unreadable as reason:
                rejects.append(Reject(line, text, str(reason)))
            else:
                if record.kind != OTHER or record.clock:
                    records.append((line, *record))
        return _Odd(
            pl.DataFrame(records, RECORDS, orient="row"),
            SYSTEM_CALLS.frame(totals),
            reject_frame(rejects),
            summary_lines,
        )


def _total(line: int, call: str, error: str, count: int) -> dict[str, object]:
    total = {"call": call, "error": error, "count": count, "first_line": line}
    return total | {"timed": 0, "duration_s": 0.0}


def _totals(calls: pl.DataFrame) -> pl.DataFrame:
    """Aggregate calls into `tables.SYSTEM_CALLS`."""
    is_relative = _PATH.is_not_null() & ~_PATH.str.starts_with("/")
    return (
        calls.lazy()
        .select(
            "call",
            "error",
            "path",
            "line",
            "duration_ns",
            second=pl.col("time_us") // _WINDOW_US * WINDOW_S,
            base=pl.when(is_relative & (pl.col("base") != "")).then("base"),
        )
        .group_by("second", "call", "base", "path", "error")
        .agg(
            count=pl.len(),
            timed=pl.col("duration_ns").count(),
            duration_s=pl.col("duration_ns").sum() / 1e9,
            first_line=pl.col("line").min(),
        )
        .with_columns(
            path=_normal(pl.coalesce(pl.concat_str("base", "path", separator="/"), "path"))
        )
        .select(pl.col(name).cast(dtype) for name, dtype in SYSTEM_CALLS.columns.items())
        .sort("first_line")
        .collect()
    )


def _normal(path: pl.Expr) -> pl.Expr:
    """Return paths without empty and "." components; ".." may follow a symbolic link and stays."""
    is_odd = path.str.contains(r"//|/\.(?:/|$)|^\./|.+/$")
    parts = path.str.replace_all(r"(?:/\.)+(?:/|$)", "/").str.replace_all(r"//+", "/")
    short = parts.str.replace(r"^(?:\./+)+", "").str.replace(r"(.)/$", "$1")
    return pl.when(is_odd).then(short).otherwise(path)


STRACE = Format(
    name="strace",
    label="strace log",
    table=SYSTEM_CALLS,
    parse=lambda source, _: parse(source),
    scopes=(),
    options=EXPERIMENT_OPTIONS,
    head=_HEAD,
)
