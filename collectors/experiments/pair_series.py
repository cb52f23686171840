"""Series of transfers between clients and storage targets, as CSV.

Source: docs/formats.md, "Pair series".
"""

import re
from collections.abc import Iterator

import polars as pl

from collectors.batch.values import Unreadable, quoted
from collectors.format import EXPERIMENT_OPTIONS, Format
from collectors.parsed import REJECT_TEXT_CHARACTERS, Account, Parsed
from collectors.source import Chunk, Source
from collectors.tables import PAIR_TRANSFERS

_NAMES = ("time", "client", "target", "bytes", "seconds")
_POSITIONS = ("x", "y", "z")
_LONGEST_NAME = 64
_TIMES_S = (-1e12, 1e12)
_LONGEST_S = 1e7
_SHORTEST_S = 1e-6
_LARGEST_BYTES = 2.0**53


def parse(source: Source) -> Iterator[Parsed]:
    """Read the transfers of a series.

    Args:
        source: CSV with the columns time (s), client, target, bytes, seconds, and optionally x, y
            and z, in any order; the first line names them.

    Yields:
        Parts with a frame of `tables.PAIR_TRANSFERS`, one row per transfer. The header and blank
        lines are irrelevant.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "Pair series".
    """
    columns: list[str] = []
    flaw = ""
    for chunk in source.chunks():
        lines = _lines(chunk)
        header = lines.filter(pl.col("text") != "").head(1)
        if not (columns or flaw or header.is_empty()):
            try:
                columns = _columns(header["text"].item())
            except Unreadable as error:
                flaw = str(error)
            else:
                is_header = pl.col("line") == header["line"].item()
                blank = pl.when(is_header).then(pl.lit("")).otherwise("text")
                lines = lines.with_columns(text=blank)
        yield _read(lines, columns, flaw)


def _lines(chunk: Chunk) -> pl.DataFrame:
    """Return line numbers and texts, without blanks around them."""
    text = chunk.text.removesuffix(b"\n").decode(errors="replace").replace("\0", "\ufffd")
    texts = pl.DataFrame({"text": [text]}).select(pl.col("text").str.split("\n").explode())
    numbered = texts.with_row_index("line", offset=chunk.first_line)
    return numbered.with_columns(pl.col("line").cast(pl.Int64), pl.col("text").str.strip_chars())


def _columns(header: str) -> list[str]:
    columns = [cell.strip(' "').lower() for cell in header.split(",")]
    missing = [name for name in _NAMES if name not in columns]
    if missing:
        raise Unreadable(f"the header {quoted(header)} has no column {missing[0]}")
    unknown = [name for name in columns if name not in (*_NAMES, *_POSITIONS)]
    if unknown:
        raise Unreadable(f"the header has an unknown column {quoted(unknown[0])}")
    if len(set(columns)) < len(columns):
        raise Unreadable("the header has a column twice")
    return columns


def _read(lines: pl.DataFrame, columns: list[str], flaw: str) -> Parsed:
    written = lines.filter(pl.col("text") != "")
    if not columns:
        rejected = written.with_columns(reason=pl.lit(flaw))
        return _parsed(PAIR_TRANSFERS.empty(), rejected, lines.height)
    cells = pl.col("text").str.split(",")
    texts = {
        name: cells.list.get(number, null_on_oob=True).str.strip_chars(' "')
        for number, name in enumerate(columns)
    }
    texts |= {name: pl.lit("") for name in _POSITIONS if name not in columns}
    number = {
        name: text.cast(pl.Float64, strict=False)
        for name, text in texts.items()
        if name not in {"client", "target"}
    }
    read = written.select(
        "line",
        "text",
        start_s=number["time"],
        client=texts["client"],
        target=texts["target"],
        bytes=number["bytes"],
        duration_s=number["seconds"],
        **{name: number[name] for name in _POSITIONS},
        reason=pl.when(cells.list.len() != len(columns))
        .then(pl.format(f"{{}} cells instead of {len(columns)}", cells.list.len()))
        .otherwise(_flaw(texts, number)),
    )
    is_accepted = pl.col("reason").is_null()
    accepted = read.filter(is_accepted).select(*PAIR_TRANSFERS.columns)
    whole = accepted.with_columns(pl.col("bytes").cast(pl.Int64))
    return _parsed(whole, read.filter(~is_accepted), lines.height)


def _flaw(texts: dict[str, pl.Expr], number: dict[str, pl.Expr]) -> pl.Expr:
    """Return the reason why a line is refused; null if it is accepted."""
    names = [texts[name].str.len_chars() for name in ("client", "target")]
    is_name = pl.all_horizontal(size.is_between(1, _LONGEST_NAME) for size in names)
    size = number["bytes"]
    is_known = [
        (texts[name] == "") | number[name].is_finite().fill_null(value=False) for name in _POSITIONS
    ]
    checks = {
        f"client and target need names of 1 to {_LONGEST_NAME} characters": is_name,
        "time is not a number of seconds": number["time"].is_between(*_TIMES_S),
        "bytes is not a whole number from 0 to 2^53": size.is_between(0, _LARGEST_BYTES)
        & (size.floor() == size),
        "seconds is not a number above 0": (number["seconds"] >= _SHORTEST_S)
        & (number["seconds"] <= _LONGEST_S),
        "a position is not a number": pl.all_horizontal(is_known),
    }
    flaws = [
        pl.when(~check.fill_null(value=False)).then(pl.lit(reason))
        for reason, check in checks.items()
    ]
    return pl.coalesce(flaws)


def _parsed(accepted: pl.DataFrame, rejected: pl.DataFrame, lines: int) -> Parsed:
    text = pl.col("text").str.head(REJECT_TEXT_CHARACTERS)
    rejects = rejected.select("line", text, "reason")
    other = lines - accepted.height - rejects.height
    account = Account(lines, accepted.height, rejects.height, other)
    return Parsed(accepted, rejects, account)


PAIR_SERIES = Format(
    name="pair_series",
    label="Pair series",
    table=PAIR_TRANSFERS,
    parse=lambda source, _: parse(source),
    scopes=(),
    options=EXPERIMENT_OPTIONS,
    head=re.compile(rb"\A[^\n]*\bclient\b[^\n]*\btarget\b"),
)
