"""The fast path for strace logs: complete calls without escapes, in columns.

The exact path (`strace_exact`) gives the same record, and reads all other lines.

Source: docs/formats.md, "strace".
"""

import polars as pl

from collectors.experiments.strace_exact import CALL, DURATION, PREFIX
from collectors.experiments.strace_records import (
    COMPLETE,
    FOLDER_CHANGES,
    PATH_AFTER_FOLDER,
    PATH_CHARACTERS,
    PATH_FIRST,
    PROCESS_STARTS,
)

# A line is split at its first "(" and at the first ") " after it.
_HEAD = PREFIX + rf"(?P<call>{CALL})$"
# The head of strace -f -o with -ttt, -tt or -r is recognised and split much faster.
_TIME = r"(?:[0-9]{1,12}|[0-9]{2}:[0-9]{2}:[0-9]{2})\.[0-9]{1,9}"
_USUAL_HEAD = rf"^[0-9]{{1,7}} +{_TIME} {CALL}$"
_RESULT = (
    r"^ *= (?:(?P<success>[0-9]{1,20}|0x[0-9a-f]{1,16})(?:<[^<>() ]*>)?"
    rf"|-1 (?P<error>E[A-Z0-9]{{1,31}}) \([^()]*\))(?:{DURATION})?$"
)
# A path without quotes and escapes, and what precedes it.
_PATH = r'^(?:(?:(?P<cwd>AT_FDCWD)|-?[0-9]{1,10})(?:<(?P<base>/[^<>"\\]*)>)?, )?"(?P<path>[^"\\]*)"'

_SAMPLE = 100  # lines that show the head of a log
_NO_PATH, _FIRST, _AFTER_FOLDER, _SPECIAL = range(4)
_PLACES = {
    **dict.fromkeys(PATH_FIRST, _FIRST),
    **dict.fromkeys(PATH_AFTER_FOLDER, _AFTER_FOLDER),
    **dict.fromkeys(FOLDER_CHANGES | PROCESS_STARTS, _SPECIAL),
}


def read_plain(lines: pl.DataFrame) -> pl.DataFrame:
    """Read the plain lines.

    Args:
        lines: `line` (number) and `text` (no NUL).

    Returns:
        Their records, with the columns of `strace_records.RECORDS`.
    """
    halves = lines.select("line", pl.col("text").str.splitn("(", 2).alias("half")).unnest("half")
    parts = pl.concat(
        [
            _heads(halves["field_0"]),
            halves.select("line", pl.col("field_1").str.splitn(") ", 2).alias("part")).unnest(
                "part"
            ),
        ],
        how="horizontal",
    )
    calls = parts.select(
        "line",
        "pid",
        "clock",
        "call",
        place=pl.col("field_0").str.extract_groups(_PATH),
        result=pl.col("field_1").str.extract_groups(_RESULT),
        starts_with_path=pl.col("field_0").str.starts_with('"'),
    ).unnest("place", "result")
    kinds = pl.col("call").replace_strict(_PLACES, default=_NO_PATH, return_dtype=pl.Int8)
    in_cwd = pl.col("cwd").is_not_null()
    has_path, has_folder = pl.col("kind") != _NO_PATH, pl.col("kind") == _AFTER_FOLDER
    is_placed = (
        pl.col("path").is_not_null()
        & (pl.col("starts_with_path") != has_folder)
        & (pl.col("path").str.len_bytes() <= PATH_CHARACTERS)
        & (pl.col("base").str.len_bytes().fill_null(0) <= PATH_CHARACTERS)
    )
    return (
        calls.with_columns(kind=kinds)
        .filter(
            pl.col("success").is_not_null() | pl.col("error").is_not_null(),
            pl.col("call").is_not_null(),
            pl.col("kind") != _SPECIAL,
            ~has_path | is_placed,
        )
        .select(
            "line",
            pl.lit(COMPLETE, pl.Int8).alias("kind"),
            pl.col("pid").fill_null("0").cast(pl.Int64),
            "clock",
            "call",
            base=pl.when(has_folder & ~in_cwd)
            .then(pl.col("base").fill_null(""))
            .when(has_folder)
            .then("base"),
            in_cwd=has_folder & in_cwd,
            path=pl.when(has_path & (pl.col("path") != "")).then("path"),
            error=pl.col("error").fill_null(""),
            value=pl.lit(None, pl.Int64),
            duration_ns=(pl.col("duration").cast(pl.Float64) * 1e9).round(),
        )
    )


def _heads(heads: pl.Series) -> pl.DataFrame:
    """Return `pid`, `clock` and `call` of heads; null: not one of a plain line."""
    if heads.head(_SAMPLE).str.contains(_USUAL_HEAD).any():
        is_usual = heads.str.contains(_USUAL_HEAD)
        halves = heads.str.splitn(" ", 2).struct.unnest()
        ends = halves["field_1"].str.strip_chars_start(" ").str.splitn(" ", 2).struct.unnest()
        columns = {"pid": halves["field_0"], "clock": ends["field_0"], "call": ends["field_1"]}
        return pl.DataFrame(columns).select(pl.when(is_usual).then(pl.all()))
    groups = heads.str.extract_groups(_HEAD).struct.unnest()
    return groups.select(pid=pl.coalesce("bracketed", "pid"), clock="clock", call="call")
