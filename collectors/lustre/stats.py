"""Lustre parameters ``*.stats`` and ``*_stats``: one counter per line.

``NAME  SAMPLES samples [UNIT] MIN MAX SUM SUMSQ``, below the times of the read. A *block* is the
value of one parameter. Counters without samples are not printed.

Source: docs/formats.md, "md_stats" and "mds_stats"; lustre/obdclass/lprocfs_status.c.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from collectors.lustre.counters import moments
from collectors.lustre.params import (
    NO_BLOCK,
    PARAMETER,
    numbered_lines,
    place,
    repeated,
    whole_blocks,
)
from collectors.source import Chunk, Source

CUT = "possibly truncated: file ends in this line"

REMEMBERED = 10_000  # blocks: the search range for second ones

_NAME = re.compile(PARAMETER.encode(), re.MULTILINE)
_FIRST_LINE = re.compile(rb"^snapshot_time\s", re.MULTILINE)
_MOMENT = (
    r"(?<name>snapshot_time|start_time|elapsed_time)\s+"
    r"(?<seconds>[0-9]{1,12})\.(?<fraction>[0-9]{1,9})\s+(?<unit>secs\.[nu]secs)\s*$"
)
_COUNTER = (
    r"(?<name>[A-Za-z_][A-Za-z0-9_]*)\s+(?<samples>[0-9]+)\s+samples\s+\[(?<unit>[A-Za-z]+)\]"
    r"(?:\s+(?<min>[0-9]+)\s+(?<max>[0-9]+)\s+(?<sum>[0-9]+)(?:\s+[0-9]+)?)?\s*$"
)
_LCTL_ERROR = "error: get_param"


@dataclass(frozen=True)
class Kind:
    """A kind of statistics: its parameter, and the reasons to reject its lines."""

    parameter: str  # a pattern for ``NAME=``; its group is the owner, a target or service
    not_a_line: str
    second_block: str


@dataclass(frozen=True)
class Part:
    """Parsed whole blocks."""

    lines: int
    titles: int  # lines with nothing but the parameter's name
    blocks: pl.DataFrame  # line; owner ("": not in the source); row
    moments: pl.DataFrame  # as returned by `counters.moments`
    counters: pl.DataFrame  # line, text, row, name, samples, unit, min, max, sum; digits as strings
    bad: pl.DataFrame  # line, text, reason

    def unnamed(self) -> pl.Series:
        """Return the rows of blocks without a parameter name."""
        return self.blocks.filter(owner="")["row"]

    def without(self, rows: pl.Series, reason: str) -> tuple[Self, pl.DataFrame]:
        """Return the part without the blocks of `rows`, and their lines with the reason."""
        is_rejected = pl.col("row").is_in(rows.implode())
        columns = ("line", "text", pl.lit(reason).alias("reason"))
        rejected = pl.concat(
            frame.filter(is_rejected).select(columns) for frame in (self.moments, self.counters)
        )
        rest = replace(
            self,
            blocks=self.blocks.filter(~is_rejected),
            moments=self.moments.filter(~is_rejected),
            counters=self.counters.filter(~is_rejected),
        )
        return rest, rejected


@dataclass(frozen=True)
class _State:
    """Parser state between two chunks."""

    inside: bool  # the next line belongs to a block
    framed: bool  # the source names its parameters
    recent: pl.DataFrame  # owner of the latest blocks, to recognise second ones

    def after(self, marks: pl.DataFrame, blocks: pl.DataFrame) -> Self:
        """Return the state after `marks` with the new `blocks`."""
        if marks.is_empty():
            return self
        inside, framed = marks.select("inside", "framed").row(-1)
        recent = pl.concat([self.recent, blocks.select("owner")]).tail(REMEMBERED)
        return replace(self, inside=inside, framed=framed, recent=recent)


def parts(source: Source, kind: Kind) -> Iterator[Part]:
    """Parse statistics with or without the framing of `lctl get_param`.

    Raises:
        SourceUnavailable: the source cannot be opened or decompressed.
    """
    state = _State(inside=False, framed=False, recent=pl.DataFrame(schema={"owner": pl.String}))
    for chunk in whole_blocks(source, _NAME, _FIRST_LINE):
        part, state = _read(chunk, kind, state)
        yield part


def _read(chunk: Chunk, kind: Kind, state: _State) -> tuple[Part, _State]:
    start = rf"(?:{kind.parameter}|^)"
    lines = numbered_lines(chunk)
    marks = _marks(lines, kind, state)
    blocks = marks.filter(pl.col("row").is_not_null())

    unterminated = chunk.first_line + chunk.text.count(b"\n")
    placed = _sorted(place(lines, marks, inside=state.inside), kind, start, unterminated)
    counters = placed.filter(kind="counter").with_columns(
        pl.col("text").str.extract_groups(start + _COUNTER).alias("fields")
    )
    part = Part(
        lines=lines.height,
        titles=placed.filter(kind="title").height,
        blocks=blocks.select("line", "owner", "row"),
        moments=moments(placed.filter(kind="moment"), start + _MOMENT),
        counters=counters.unnest("fields").select(
            "line", "text", "row", "name", "samples", "unit", "min", "max", "sum"
        ),
        bad=placed.filter(kind="bad"),
    )
    return part, state.after(marks, blocks)


def _marks(lines: pl.DataFrame, kind: Kind, state: _State) -> pl.DataFrame:
    """Return the lines that open a parameter or a block, in order.

    Columns: line; framed; owner; inside, row and reason as in `params.place`.
    """
    text = pl.col("text")
    parameter, framed = pl.col("parameter"), pl.col("framed")
    openings = (
        lines.with_columns(parameter=text.str.contains(PARAMETER))
        .with_columns(framed=parameter.cum_max() | pl.lit(state.framed))
        # Without names, a block is recognised by the first line of its value.
        .filter(parameter | (~framed & text.str.contains(r"^snapshot_time\s")))
        .with_columns(owner=text.str.extract(kind.parameter, 1))
        .with_columns(
            inside=~parameter | pl.col("owner").is_not_null(),
            owner=pl.when(parameter).then("owner").otherwise(pl.lit("")),
        )
    )
    good = pl.col("reason").is_null()
    return openings.with_columns(
        reason=pl.when(~pl.col("inside"))
        .then(pl.lit(NO_BLOCK))
        .when(repeated(openings, state.recent))
        .then(pl.lit(kind.second_block))
    ).select("line", "framed", "owner", "inside", "reason", row=pl.when(good).then(good.cum_sum()))


def _sorted(placed: pl.DataFrame, kind: Kind, start: str, unterminated: int) -> pl.DataFrame:
    """Add `kind` to the lines inside blocks, and the reason to the bad ones."""
    text = pl.col("text")
    cut = (pl.col("line") == unterminated) & text.str.contains("[0-9]$")
    sort = (
        pl.when((text.str.strip_chars() == "") | text.str.starts_with(_LCTL_ERROR))
        .then(pl.lit("irrelevant"))
        .when(text.str.contains(rf"{kind.parameter}\s*$"))
        .then(pl.lit("title"))
        .when(pl.col("reason").is_not_null() | cut)
        .then(pl.lit("bad"))
        .when(text.str.contains(start + _MOMENT))
        .then(pl.lit("moment"))
        .when(text.str.contains(start + _COUNTER))
        .then(pl.lit("counter"))
        .otherwise(pl.lit("bad"))
    )
    return placed.with_columns(
        kind=sort,
        reason=pl.coalesce(
            "reason", pl.when(cut).then(pl.lit(CUT)).otherwise(pl.lit(kind.not_a_line))
        ),
    )
