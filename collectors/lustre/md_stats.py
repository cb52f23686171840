"""Lustre md_stats of MDTs: what all clients together did on a target.

Source: docs/formats.md, "md_stats"; lustre/obdclass/lprocfs_status.c.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from collectors.lustre.counters import (
    assembled,
    clocks,
    moments,
    sift_moments,
    sift_readings,
    totals,
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
from collectors.parsed import Parsed
from collectors.source import Chunk, Source
from collectors.tables import BYTES, TARGET_COUNTERS

NOT_MD_STATS = "not a line of md_stats"
CUT = "may lack its end: the text stops here"
SECOND_BLOCK = "belongs to a second md_stats of the same target"

REMEMBERED_TARGETS = 10_000  # so far back a second md_stats is recognised

_NAME = re.compile(PARAMETER.encode(), re.MULTILINE)
_FIRST_LINE = re.compile(rb"^snapshot_time\s", re.MULTILINE)
_PARAMETER = parameter_of("mdt", "md_stats")
_START = rf"(?:{_PARAMETER}|^)"
_TITLE = rf"{_PARAMETER}\s*$"
_MOMENT = (
    rf"{_START}(?<name>snapshot_time|start_time|elapsed_time)\s+"
    r"(?<seconds>[0-9]{1,12})\.(?<fraction>[0-9]{1,9})\s+(?<unit>secs\.[nu]secs)\s*$"
)
_COUNTER = (
    rf"{_START}(?<name>[A-Za-z_][A-Za-z0-9_]*)\s+(?<samples>[0-9]+)\s+samples\s+"
    r"\[(?<unit>[A-Za-z]+)\](?:\s+[0-9]+\s+[0-9]+\s+(?<sum>[0-9]+)(?:\s+[0-9]+)?)?\s*$"
)
_LCTL_ERROR = "error: get_param"


@dataclass(frozen=True)
class _State:
    """What the lines so far say about the next one."""

    inside: bool  # whether it belongs to an md_stats
    framed: bool  # whether the text names its parameters
    seen: pl.DataFrame  # target: the latest, to recognise a second md_stats

    def after(self, marks: pl.DataFrame, blocks: pl.DataFrame) -> Self:
        """Return the state after these marks, of which `blocks` are new."""
        if marks.is_empty():
            return self
        inside, framed = marks.select("inside", "framed").row(-1)
        seen = pl.concat([self.seen, blocks.select("target")]).tail(REMEMBERED_TARGETS)
        return replace(self, inside=inside, framed=framed, seen=seen)


def parse(source: Source) -> Iterator[Parsed]:
    """Read md_stats, with or without the framing of `lctl get_param`, of one or many MDTs.

    Yields:
        Parts whose table is `tables.TARGET_COUNTERS`: totals since mount or clear. Counters that
        were never hit are not printed, and so null.

    Raises:
        SourceUnavailable: the source cannot be opened or decompressed.
    """
    state = _State(inside=False, framed=False, seen=pl.DataFrame(schema={"target": pl.String}))
    for chunk in whole_blocks(source, _NAME, _FIRST_LINE):
        part, state = _read(chunk, state)
        yield part


def _read(chunk: Chunk, state: _State) -> tuple[Parsed, _State]:
    lines = numbered_lines(chunk)
    marks = _marks(lines, state)
    blocks = marks.filter(pl.col("row").is_not_null())

    unterminated = chunk.first_line + chunk.text.count(b"\n")
    placed = _sorted(place(lines, marks, inside=state.inside), unterminated)
    times, repeated_times = sift_moments(moments(placed.filter(kind="moment"), _MOMENT))
    readings, bad_readings = sift_readings(_readings(placed.filter(kind="counter")))

    table = totals(clocks(blocks, times), readings).select(*TARGET_COUNTERS.columns)
    part = assembled(
        table,
        lines=lines.height,
        accepted=placed.filter(kind="title").height + times.height + readings.height,
        rejected=[placed.filter(kind="bad"), repeated_times, bad_readings],
    )
    return part, state.after(marks, blocks)


def _marks(lines: pl.DataFrame, state: _State) -> pl.DataFrame:
    """Return the lines that open a parameter or an md_stats, in order.

    Columns: line; framed; target; inside, row and reason as `place` wants them.
    """
    text = pl.col("text")
    parameter, framed = pl.col("parameter"), pl.col("framed")
    found = (
        lines.with_columns(parameter=text.str.contains(PARAMETER))
        .with_columns(framed=parameter.cum_max() | pl.lit(state.framed))
        # Without names, the first line of a value is all there is to go by.
        .filter(parameter | (~framed & text.str.contains(r"^snapshot_time\s")))
        .with_columns(target=text.str.extract(_PARAMETER, 1))
        .with_columns(
            inside=~parameter | pl.col("target").is_not_null(),
            target=pl.when(parameter).then("target").otherwise(pl.lit("")),
        )
    )
    good = pl.col("reason").is_null()
    return found.with_columns(
        reason=pl.when(~pl.col("inside"))
        .then(pl.lit(NO_BLOCK))
        .when(repeated(found, state.seen))
        .then(pl.lit(SECOND_BLOCK))
    ).select("line", "framed", "target", "inside", "reason", row=pl.when(good).then(good.cum_sum()))


def _sorted(placed: pl.DataFrame, unterminated: int) -> pl.DataFrame:
    """Add to each line inside md_stats its `kind`, and to the bad ones the reason."""
    text = pl.col("text")
    cut = (pl.col("line") == unterminated) & text.str.contains("[0-9]$")
    kind = (
        pl.when((text.str.strip_chars() == "") | text.str.starts_with(_LCTL_ERROR))
        .then(pl.lit("irrelevant"))
        .when(text.str.contains(_TITLE))
        .then(pl.lit("title"))
        .when(pl.col("reason").is_not_null() | cut)
        .then(pl.lit("bad"))
        .when(text.str.contains(_MOMENT))
        .then(pl.lit("moment"))
        .when(text.str.contains(_COUNTER))
        .then(pl.lit("counter"))
        .otherwise(pl.lit("bad"))
    )
    return placed.with_columns(
        kind=kind,
        reason=pl.coalesce(
            "reason", pl.when(cut).then(pl.lit(CUT)).otherwise(pl.lit(NOT_MD_STATS))
        ),
    )


def _readings(counters: pl.DataFrame) -> pl.DataFrame:
    """Read lines of the shape `_COUNTER`; the columns are those of `counters.sift_readings`."""
    found = counters.with_columns(pl.col("text").str.extract_groups(_COUNTER).alias("found"))
    return found.unnest("found").select(
        "line",
        "text",
        "row",
        "name",
        "samples",
        sum=pl.when(pl.col("name").is_in(BYTES) | (pl.col("unit") == "bytes")).then("sum"),
    )
