"""Output of `lctl get_param`: framing, lines, and chunks of whole blocks.

A parameter is printed as ``NAME=`` with its value on the lines below, or as ``NAME=VALUE`` if the
value is short; ``-n`` and the files under /proc and /sys have no names. A *block* yields one row of
a table: an entry of job_stats, or a whole md_stats.

Source: docs/formats.md, "lctl get_param"; lustre/utils/lustre_cfg.c.
"""

import re
from collections.abc import Iterator, Sequence

import polars as pl

from collectors.source import Chunk, Source

# The first line of a parameter. Names may contain NIDs (dots, colons, "@") but no "=".
PARAMETER = r"^[A-Za-z][^\s=]*="

# Maximum lines of a block; later lines belong to no block. The longest known has 30 lines, two of
# which may be wrapped several times.
BLOCK_LINES = 256

NO_BLOCK = "outside any entry"


def parameter_of(heads: str, tail: str) -> str:
    """Return a pattern for ``HEAD.TARGET.TAIL=``; its group is the target."""
    return rf"^(?:{heads})\.([^\s=]+)\.{tail}="


def whole_blocks(source: Source, *openings: re.Pattern[bytes]) -> Iterator[Chunk]:
    """Split a source into small chunks of whole blocks.

    Args:
        source: the source.
        openings: multi-line patterns of a block's start. A later pattern applies only where no
            earlier one matches.

    Yields:
        Chunks that begin at a block, unless there is none or it has more than `BLOCK_LINES` lines.
        The last blocks of a chunk move to the next one; a short source is one chunk.
    """
    first_line, text = 1, b""
    for chunk in source.chunks():
        end = _last_opening(text, openings) if text else 0
        if end:
            yield Chunk(first_line, text[:end])
        first_line += text.count(b"\n", 0, end)
        text = text[end:] + chunk.text
    if text:
        yield Chunk(first_line, text)


def _last_opening(text: bytes, openings: Sequence[re.Pattern[bytes]]) -> int:
    """Return the offset of the block in which `text` ends; its length if it ends in none."""
    tail = len(text)
    for _ in range(BLOCK_LINES + 1):
        tail = text.rfind(b"\n", 0, tail)
        if tail < 0:
            break
    for opening in openings:
        starts = [match.start() for match in opening.finditer(text, tail + 1)]
        if starts:
            return starts[-1]
    return len(text)


def numbered_lines(chunk: Chunk) -> pl.DataFrame:
    r"""Return the lines of `chunk`: line (Int64, number) and text (String).

    Invalid UTF-8, and NUL, which PostgreSQL cannot store, are escaped as ``\xHH``.
    """
    text = chunk.text.replace(b"\0", rb"\x00")
    if not text.isascii():
        text = text.decode("utf-8", "backslashreplace").encode()
    return (
        # The newline keeps polars from taking the text for a compressed one ("x^" is a magic).
        pl.scan_lines(b"\n" + text, name="text")
        .with_row_index("line", offset=chunk.first_line - 1)
        .slice(1)
        .cast({"line": pl.Int64})
        .collect()
    )


def place(
    lines: pl.DataFrame, marks: pl.DataFrame, *, inside: bool, reason: str = NO_BLOCK
) -> pl.DataFrame:
    """Assign the lines of relevant parameters to blocks.

    Args:
        lines: as returned by `numbered_lines`.
        marks: the lines that open a parameter or a block, in order: line; inside (the following
            lines belong to a relevant parameter); row (their row of the table); reason (for
            rejecting them, if they have no row).
        inside: the same for the lines before the first mark.
        reason: for rejecting these.

    Returns:
        The lines that are inside, with their row or the reason for rejection.
    """
    return (
        lines.join_asof(marks.select("line", "inside", "row", "reason", mark="line"), on="line")
        .filter(pl.col("inside").fill_null(value=inside))
        .with_columns(
            reason=pl.when(pl.col("mark").is_null())
            .then(pl.lit(reason))
            .when(pl.col("line") < pl.col("mark") + BLOCK_LINES)
            .then("reason")
            .otherwise(pl.lit(NO_BLOCK))
        )
        .drop("mark", "inside")
    )


def repeated(rows: pl.DataFrame, earlier: pl.DataFrame) -> pl.Series:
    """Mark the rows whose key is in `earlier` or in a row above.

    Args:
        rows: any frame with the columns of `earlier`.
        earlier: distinct keys.
    """
    joined = rows.join(
        earlier.with_columns(in_earlier=True), on=earlier.columns, how="left", maintain_order="left"
    )
    first = pl.struct(earlier.columns).is_first_distinct()
    return joined.select(pl.col("in_earlier").fill_null(value=False) | ~first).to_series()
