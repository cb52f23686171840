"""Text of `lctl get_param`: its framing, its lines, and chunks that tear no block apart.

A parameter is printed as ``NAME=`` with its value on the lines below, or as ``NAME=VALUE`` when
that is short; ``-n`` and the files under /proc and /sys have no names. A *block* is what becomes
one row of a table: an entry of job_stats, the whole of an md_stats.

Source: docs/formats.md, "lctl get_param"; lustre/utils/lustre_cfg.c.
"""

import re
from collections.abc import Iterator, Sequence

import polars as pl

from collectors.source import Chunk, Source

# The first line of any parameter. Names contain NIDs, so dots, colons and "@", but never "=".
PARAMETER = r"^[A-Za-z][^\s=]*="

# A block's lines, the first included; whatever follows further down belongs to no block. The
# longest known has 30 lines, of which two may be wrapped a few times.
BLOCK_LINES = 256

NO_BLOCK = "belongs to no entry"


def parameter_of(heads: str, tail: str) -> str:
    """Return a pattern for the start of ``HEAD.TARGET.TAIL=VALUE``; its group is the target."""
    return rf"^(?:{heads})\.([^\s=]+)\.{tail}="


def whole_blocks(source: Source, *openings: re.Pattern[bytes]) -> Iterator[Chunk]:
    """Cut the text of `source` into small chunks, none of which ends inside a block.

    Args:
        source: the text.
        openings: where a block begins; multi-line. A later one counts only where no earlier one is
            found.

    Yields:
        Chunks that begin where a block begins, unless the text holds none, or one with more than
        `BLOCK_LINES` lines. A chunk is held back until there is more text, so that a short text is
        one chunk.
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
    """Return where the block begins that `text` ends in; the end of `text` if it is in none."""
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
    r"""Return the lines of `chunk`: their numbers (line, Int64) and their text (text, String).

    Bytes that are not UTF-8, and NUL, which a database cannot hold, are written as ``\xHH``.
    """
    text = chunk.text.replace(b"\0", rb"\x00")
    if not text.isascii():
        text = text.decode("utf-8", "backslashreplace").encode()
    return (
        # polars takes a text that begins like a compressed one ("x^") for one: ours never does.
        pl.scan_lines(b"\n" + text, name="text")
        .with_row_index("line", offset=chunk.first_line - 1)
        .slice(1)
        .cast({"line": pl.Int64})
        .collect()
    )


def place(lines: pl.DataFrame, marks: pl.DataFrame, *, inside: bool) -> pl.DataFrame:
    """Say of every line of our parameters which block it is in.

    Args:
        lines: as `numbered_lines` returns them.
        marks: the lines that open a parameter or a block, in order: line; inside (whether the
            lines from here on belong to a parameter of ours); row (which row of the table they
            make); reason (why they make none).
        inside: the same for the lines before the first mark.

    Returns:
        Those of `lines` that are inside, with the row they make, or the reason why they make none.
    """
    return (
        lines.join_asof(marks.select("line", "inside", "row", "reason", mark="line"), on="line")
        .filter(pl.col("inside").fill_null(value=inside))
        .with_columns(
            reason=pl.when(pl.col("line") < pl.col("mark") + BLOCK_LINES)
            .then("reason")
            .otherwise(pl.lit(NO_BLOCK))
        )
        .drop("mark", "inside")
    )


def repeated(found: pl.DataFrame, seen: pl.DataFrame) -> pl.Series:
    """Say which rows of `found` have a key that is in `seen` or in a row above.

    Args:
        found: any frame with the columns of `seen`.
        seen: distinct keys.
    """
    known = found.join(
        seen.with_columns(known=True), on=seen.columns, how="left", maintain_order="left"
    )
    first = pl.struct(seen.columns).is_first_distinct()
    return known.select(pl.col("known").fill_null(value=False) | ~first).to_series()
