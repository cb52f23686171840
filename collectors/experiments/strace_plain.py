"""The fast path for strace logs: complete calls without escapes, in columns.

The exact path (`strace_exact`) gives the same record, and reads all other lines.

Source: docs/formats.md, "strace".
"""

import polars as pl

from collectors.experiments.strace_exact import DURATION, PREFIX
from collectors.experiments.strace_records import (
    CALL_CHARACTERS,
    COMPLETE,
    FOLDER_CHANGES,
    PATH_AFTER_FOLDER,
    PATH_CHARACTERS,
    PATH_FIRST,
    PROCESS_STARTS,
    RECORDS,
)

# A line is split at its first "(" and at the first ") " after it.
_HEAD = PREFIX + rf"(?P<call>[a-z_][a-z0-9_]{{0,{CALL_CHARACTERS - 1}}})$"
_RESULT = (
    r"^ *= (?:(?P<success>[0-9]{1,20}|0x[0-9a-f]{1,16})(?:<[^<>() ]*>)?"
    rf"|-1 (?P<error>E[A-Z0-9]{{1,31}}) \([^()]*\))(?:{DURATION})?$"
)
# A path without quotes and escapes, and what precedes it.
_PATH = r'^(?:(?:(?P<cwd>AT_FDCWD)|-?[0-9]{1,10})(?:<(?P<base>/[^<>"\\]*)>)?, )?"(?P<path>[^"\\]*)"'

_SPECIAL = pl.Series(sorted(FOLDER_CHANGES | PROCESS_STARTS))
_PATH_FIRST, _PATH_AFTER_FOLDER = (
    pl.Series(sorted(PATH_FIRST)),
    pl.Series(sorted(PATH_AFTER_FOLDER)),
)


def read_plain(lines: pl.DataFrame) -> pl.DataFrame:
    """Read the plain lines.

    Args:
        lines: `line` (number) and `text` (no NUL).

    Returns:
        Their records, with the columns of `strace_records.RECORDS`.
    """
    halves = lines.select("line", pl.col("text").str.splitn("(", 2).alias("half")).unnest("half")
    parts = halves.select(
        "line",
        pl.col("field_0").str.extract_groups(_HEAD).alias("head"),
        pl.col("field_1").str.splitn(") ", 2).alias("part"),
    ).unnest("head", "part")
    results = parts.with_columns(
        pl.col("field_1").str.extract_groups(_RESULT).alias("result")
    ).unnest("result")
    calls = results.filter(
        pl.col("call").is_not_null(),
        pl.col("success").is_not_null() | pl.col("error").is_not_null(),
        ~pl.col("call").is_in(_SPECIAL.implode()),
    ).with_columns(
        has_path_first=pl.col("call").is_in(_PATH_FIRST.implode()),
        has_path_after_folder=pl.col("call").is_in(_PATH_AFTER_FOLDER.implode()),
    )
    has_path = pl.col("has_path_first") | pl.col("has_path_after_folder")
    places = (
        calls.filter(has_path)
        .with_columns(
            pl.col("field_0").str.extract_groups(_PATH).alias("place"),
            has_folder=~pl.col("field_0").str.starts_with('"'),
        )
        .unnest("place")
        .filter(
            pl.col("path").is_not_null(),
            pl.col("has_folder") == pl.col("has_path_after_folder"),
            pl.col("path").str.len_chars() <= PATH_CHARACTERS,
            pl.col("base").str.len_chars().fill_null(0) <= PATH_CHARACTERS,
        )
    )
    unplaced = calls.filter(~has_path).with_columns(
        cwd=pl.lit(None, pl.String), base=pl.lit(None, pl.String), path=pl.lit(None, pl.String)
    )
    in_cwd = pl.col("cwd").is_not_null()
    knows_no_folder = pl.col("has_path_after_folder") & ~in_cwd
    return (
        pl.concat([places.drop("has_folder"), unplaced])
        .select(
            "line",
            kind=pl.lit(COMPLETE),
            pid=pl.coalesce("bracketed", "pid").fill_null("0").cast(pl.Int64),
            clock="clock",
            call="call",
            base=pl.when(knows_no_folder).then(pl.col("base").fill_null("")).otherwise("base"),
            in_cwd=in_cwd,
            path=pl.when(pl.col("path") != "").then("path"),
            error=pl.col("error").fill_null(""),
            value=pl.lit(None),
            duration_ns=(pl.col("duration").cast(pl.Float64) * 1e9).round(),
        )
        .cast(RECORDS)
        .sort("line")
    )
