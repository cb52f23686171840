"""Lustre job_stats of MDTs and OSTs, 2.5 to 2.17: operations of each job id on a target.

Source: docs/formats.md, "job_stats"; lustre/obdclass/lprocfs_jobstats.c.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Self

import numpy as np
import polars as pl

from collectors.format import Format
from collectors.lustre.counters import (
    JOB_CHARACTERS,
    MOMENTS,
    assembled,
    clocks,
    moments,
    sift_moments,
    sift_readings,
    totals,
    trusted_clocks,
)
from collectors.lustre.params import (
    NO_BLOCK,
    PARAMETER,
    numbered_lines,
    parameter_of,
    place,
    repeated,
    whole_blocks,
)
from collectors.parsed import Account, Parsed
from collectors.source import Chunk, Source
from collectors.tables import COUNTERS, JOB_COUNTERS, JOB_DELTAS, REJECTS

NOT_JOB_STATS = "not a job_stats line"
CUT = "truncated before the closing brace"
NO_JOB_ID = "job_id of the entry is unreadable"
SECOND_TARGET = (
    "second job_stats without the name of its target: use lctl get_param without -n, or load the "
    "file of each target by itself"
)
SECOND_ENTRY = "second entry of the same target and job id"

REMEMBERED_ENTRIES = 1_000_000  # search range for second entries


def _spaced(pattern: str) -> str:
    """Return `pattern` with each blank matching any number of blanks."""
    return pattern.replace(" ", r"[ \t]*")


_OPENING = re.compile(rb"^-", re.MULTILINE)
_PARAMETER = parameter_of("mdt|obdfilter", "job_stats")
_TITLE = _spaced(rf"(?:{_PARAMETER}(?:job_stats:)?|^job_stats:) $")
_HEADER = _spaced(r"^job_stats: $")
_NAMED_HEADER = _spaced(r"=job_stats: $")
_TITLE_PARTS = re.compile(_spaced(f"({_PARAMETER})?(job_stats:)? "))
_JOB_ID = _spaced(r'^-[ \t]+job_id : (?:"(.*)"|(.*?)) $')
_MOMENT = _spaced(
    r"^ (?<name>snapshot_time|start_time|elapsed_time) : (?<seconds>[0-9]{1,12})"
    r"(?:\.(?<fraction>[0-9]{1,9}) (?<unit>secs\.[nu]secs))? $"
)
_COUNTER = _spaced(
    r"^ [A-Za-z_][A-Za-z0-9_]* : \{ samples: [0-9]+,\x20unit: [A-Za-z]+ "
    r"(?:, [a-z]+: (?:[0-9]+|\{[^{}]*\}) )*\} $"
)
_COUNTER_HEAD = _spaced(r"^ [A-Za-z_][A-Za-z0-9_]* : \{")
_HISTOGRAM_HEAD = _spaced(r"^ h?i?s?t? : \{")  # the name itself may be wrapped
_SUM = _spaced(r"\bsum: ([0-9]+)")
_UNIT = _spaced(", unit:")
_UNIT_NAME = "^[ \t]*([A-Za-z]+)"
_LCTL_ERROR = "error: get_param"
_ESCAPES = {rf"\x{code:02x}": chr(code) for code in range(0x20, 0x7F)}


@dataclass(frozen=True)
class _State:
    """Parser state between two chunks."""

    inside: bool  # the next line belongs to a job_stats
    target: str
    headers: int  # "job_stats:" since the latest name
    recent: pl.DataFrame  # target and job of the latest entries, to recognise second ones

    def after(self, marks: pl.DataFrame, entries: pl.DataFrame) -> Self:
        """Return the state after `marks` with the new `entries`."""
        if marks.is_empty():
            return self
        inside, target, headers = marks.select("inside", "target", "headers").row(-1)
        recent = pl.concat([self.recent, entries.select("target", "job")]).tail(REMEMBERED_ENTRIES)
        return replace(self, inside=inside, target=target, headers=headers, recent=recent)


def parse(source: Source) -> Iterator[Parsed]:
    """Parse job_stats of one or many targets, with or without the framing of `lctl get_param`.

    Yields:
        Parts with a frame of `tables.JOB_COUNTERS`: totals since the entry was created. A counter
        without a readable line is null, not zero. `observed` has all targets, including those
        without entries ("": the source does not name the target).

    Raises:
        SourceUnavailable: the source cannot be opened or decompressed.
    """
    state = _State(
        inside=False,
        target="",
        headers=0,
        recent=pl.DataFrame(schema={"target": pl.String, "job": pl.String}),
    )
    for chunk in whole_blocks(source, _OPENING):
        part, state = _read(chunk, state)
        yield part


def _read(chunk: Chunk, state: _State) -> tuple[Parsed, _State]:
    return _read_plain(chunk, state) or _read_any(chunk, state)


@cache
def _plain_path() -> ModuleType | None:
    """Return the compiled path where numba is installed and may cache machine code on disk.

    Its import takes half a second, and its first use on a host ten.
    """
    with suppress(ImportError, RuntimeError):
        return import_module("collectors.lustre.job_stats_plain")
    return None


def _read_plain(chunk: Chunk, state: _State) -> tuple[Parsed, _State] | None:
    """Read a chunk of plain lines; None for others."""
    path = _plain_path()
    plain = path and state.headers <= 1 and path.read(chunk.text)
    if not plain:
        return None
    target, headers = state.target, state.headers
    targets, first_entries = [target], [0]
    for start, end, entry in plain.titles:
        title = _TITLE_PARTS.fullmatch(chunk.text[start:end].decode())
        parameter, name, header = title.groups() if title else (None, None, None)
        if parameter:
            target, headers = str(name), 0
        headers += header is not None
        if not (parameter or header) or headers > 1:
            return None
        targets.append(target)
        first_entries.append(entry)
    title_of_entry = np.searchsorted(first_entries, range(len(plain.values)), side="right") - 1
    lines = plain.entry_lines + chunk.first_line
    values = pl.LazyFrame({"values": plain.values}).select(
        pl.col("values").arr.to_struct([*MOMENTS, *COUNTERS])
    )
    entries = pl.concat(
        [
            pl.LazyFrame({"line": lines, "target": pl.Series(targets).gather(title_of_entry)}),
            pl.scan_lines(b"\n" + plain.jobs, name="job").slice(1),
            values.unnest("values").select(pl.when(pl.all() >= 0).then(pl.all())),
        ],
        how="horizontal",
    )
    table = trusted_clocks(entries).select(*JOB_COUNTERS.columns).collect()
    keys = table.select("target", "job")
    recent = pl.concat([state.recent, keys])
    if recent.is_duplicated().any():
        return None
    if plain.accepted:
        recent = recent.tail(REMEMBERED_ENTRIES)
        state = _State(inside=True, target=target, headers=headers, recent=recent)
    account = Account(plain.lines, plain.accepted, irrelevant=plain.lines - plain.accepted)
    observed = frozenset(targets if 0 in title_of_entry[:1] else targets[1:])
    return Parsed(table, REJECTS.empty(), account, observed), state


def _read_any(chunk: Chunk, state: _State) -> tuple[Parsed, _State]:
    lines = numbered_lines(chunk)
    marks = _marks(lines, state, unterminated=chunk.first_line + chunk.text.count(b"\n"))
    entries = marks.filter(pl.col("row").is_not_null())

    before = SECOND_TARGET if state.headers > 1 else NO_BLOCK
    placed = place(lines, marks, inside=state.inside, reason=before).with_columns(
        counter=pl.col("reason").is_null() & pl.col("text").str.contains(_COUNTER)
    )
    others = placed.filter(~pl.col("counter")).with_columns(kind=_kind())
    times, repeated_times = sift_moments(moments(others.filter(kind="moment"), _MOMENT))
    wrapped, continuations, unreadable = _unwrap(others.filter(kind="odd"))
    readings, bad_readings = sift_readings(
        pl.concat([_readings(placed.filter("counter")), _readings(wrapped)]).sort("line")
    )

    accepted = (
        others.filter(kind="title").height
        + times.height
        + readings.height
        + continuations.join(readings.select(head="line"), on="head", how="semi").height
    )
    rejected = [
        others.filter(kind="misplaced"),
        repeated_times,
        unreadable,
        bad_readings,
        continuations.join(bad_readings.select("reason", head="line"), on="head"),
    ]
    table = totals(clocks(entries, times), readings).select(*JOB_COUNTERS.columns)
    part = assembled(table, lines=lines.height, accepted=accepted, rejected=rejected)
    observed = frozenset(marks.filter("inside")["target"])
    return replace(part, observed=observed), state.after(marks, entries)


def _marks(lines: pl.DataFrame, state: _State, unterminated: int) -> pl.DataFrame:
    """Return the lines that open a parameter, a job_stats or an entry, in order.

    Columns: line; inside; target and job; headers as in `_State`; row and reason as in
    `params.place`.
    """
    text = pl.col("text")
    openings = (
        lines.filter(~text.str.starts_with(" "))
        .with_columns(
            parameter=text.str.contains(PARAMETER),
            target=text.str.extract(_PARAMETER, 1),
            header=text.str.contains(_HEADER),
            dash=text.str.starts_with("-"),
            job=pl.coalesce(text.str.extract(_JOB_ID, 1), text.str.extract(_JOB_ID, 2)),
        )
        .filter(pl.any_horizontal("parameter", "header", "dash"))
    )
    parameter, target, job = pl.col("parameter"), pl.col("target"), pl.col("job")
    located = openings.with_columns(
        # A header or an entry identifies job_stats even if the parameter line is missing.
        inside=pl.when(parameter)
        .then(target.is_not_null())
        .when(pl.col("header") | job.is_not_null())
        .then(pl.lit(value=True))
        .forward_fill()
        .fill_null(value=state.inside),
        target=pl.when(parameter)
        .then(target.fill_null(""))
        .forward_fill()
        .fill_null(value=state.target),
        job=pl.when(job.str.len_chars() <= JOB_CHARACTERS, pl.col("line") != unterminated).then(
            job.str.replace_many(_ESCAPES, ascii_case_insensitive=True)
        ),
    )
    # A target has one job_stats: a second one belongs to a target without a name.
    headers = text.str.contains(_HEADER) | (parameter & text.str.contains(_NAMED_HEADER))
    names = parameter.cum_sum()
    located = located.with_columns(
        headers=headers.cast(pl.Int64).cum_sum().over(names)
        + pl.when(names == 0).then(state.headers).otherwise(0)
    )
    checked = located.with_columns(
        reason=pl.when(pl.col("headers") > 1)
        .then(pl.lit(SECOND_TARGET))
        .when(~pl.col("dash"))
        .then(pl.lit(NO_BLOCK))
        .when(job.is_null())
        .then(pl.lit(NO_JOB_ID))
        .when(repeated(located, state.recent))
        .then(pl.lit(SECOND_ENTRY))
    )
    good = pl.col("reason").is_null()
    return checked.select(
        "line",
        "inside",
        "target",
        "job",
        "headers",
        "reason",
        row=pl.when(good).then(good.cum_sum()),
    )


def _kind() -> pl.Expr:
    """Classify lines inside job_stats that are not counters of an entry."""
    text, placed = pl.col("text"), pl.col("reason").is_null()
    return (
        pl.when((text.str.strip_chars() == "") | text.str.starts_with(_LCTL_ERROR))
        .then(pl.lit("irrelevant"))
        .when(pl.col("reason") == SECOND_TARGET)
        .then(pl.lit("misplaced"))
        .when(text.str.contains(_TITLE) | (placed & text.str.starts_with("-")))
        .then(pl.lit("title"))
        .when(~placed)
        .then(pl.lit("misplaced"))
        .when(text.str.contains(_MOMENT))
        .then(pl.lit("moment"))
        .otherwise(pl.lit("odd"))
    )


def _readings(counters: pl.DataFrame) -> pl.DataFrame:
    """Parse lines that match `_COUNTER`, for `counters.sift_readings`."""
    text = pl.col("text")
    # "name", "{ samples", "5, unit" and the rest: much faster than the groups of a pattern.
    parts = text.str.splitn(":", 4).struct
    readings = counters.select(
        "line",
        "text",
        "row",
        name=parts["field_0"].str.strip_chars(),
        samples=parts["field_2"].str.head(-len(", unit")).str.strip_chars(),
        rest=parts["field_3"],
    )
    # Most counters have no operations, or no sum.
    has_sum = pl.col("rest").str.contains("sum", literal=True)
    has_value = (pl.col("samples") != "0") | text.str.contains("bytes", literal=True)
    sums = readings.filter(has_sum & has_value).select(
        "line",
        unit=pl.col("rest").str.extract(_UNIT_NAME, 1),
        sum=pl.col("rest").str.extract(_SUM, 1),
    )
    return readings.drop("rest").join(sums, on="line", how="left", maintain_order="left")


def _unwrap(odd: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Join counters that were wrapped inside their braces.

    Only punctuation separates tokens there, so lines can be joined without knowing whether they
    were wrapped at a blank or inside a number.

    Returns:
        The counters, each with the number of its first line; their other lines, with that number
        as `head`; and the remaining lines with the reason.
    """
    text, prior = pl.col("text"), pl.col("prior")
    opens = text.str.contains(_COUNTER_HEAD) & ~text.str.contains(_HISTOGRAM_HEAD)
    braces = text.str.count_matches("{", literal=True).cast(pl.Int32) - text.str.count_matches(
        "}", literal=True
    )
    pieces = (
        odd.with_columns(
            opens=opens,
            braces=braces,
            group=(opens | (pl.col("line").diff() != 1)).fill_null(value=True).cum_sum(),
        )
        .with_columns(prior=pl.col("braces").cum_sum().over("group") - pl.col("braces"))
        .with_columns(
            # Up to the closing brace of the counter.
            is_part=(pl.col("opens") | (prior > 0)).cast(pl.Int8).cum_min().over("group") == 1
        )
    )
    joined = (
        pieces.filter("is_part")
        .group_by("group", maintain_order=True)
        .agg(pl.first("line", "row"), text.str.strip_chars().str.join())
        .with_columns(text.str.replace(_UNIT, ", unit:"))
        .filter(text.str.contains(_COUNTER))
    )
    members = pieces.join(joined.select("group", head="line"), on="group", how="left").with_columns(
        used=pl.col("is_part") & pl.col("head").is_not_null()
    )
    unreadable = members.filter(~pl.col("used")).with_columns(
        reason=pl.when(pl.col("braces") > 0).then(pl.lit(CUT)).otherwise(pl.lit(NOT_JOB_STATS))
    )
    continuations = members.filter("used", pl.col("line") != pl.col("head")).drop("reason")
    return joined, continuations, unreadable


JOB_STATS = Format(
    name="job_stats",
    label="Lustre job_stats",
    table=JOB_COUNTERS,
    parse=lambda source, _: parse(source),
    scopes=("server", "filesystem"),
    options=("target", "filesystem", "at", "register_targets"),
    agent_inputs=("command",),
    agent_table=JOB_DELTAS,
)
