"""Interrupted calls of an strace log: their two lines as one.

    7035  TIME open("/scratch/out",  <unfinished ...>
    7035  TIME <... open resumed>O_RDONLY) = 3 <0.000090>

become the line of a complete call:

    7035  TIME open("/scratch/out", ) = 3 <0.000090>

Source: docs/formats.md, "strace".
"""

from collections.abc import Collection

import polars as pl

from collectors.experiments.strace_exact import CALL, INTERRUPTION, PREFIX

_INTERRUPTED = f" {INTERRUPTION}"
_PARTS = PREFIX + rf"(?:<\.\.\. (?P<resumed>{CALL}) resumed>|(?P<started>{CALL})\()?"
_RESULT = r"^.*(\) += [-0-9].*)$"
_RELATIVE_TIME = r"^[0-9]{1,8}\."  # the sum of all times is the time of a line
_REPLACES_PROCESS = "execve"

_PROCESS, _STARTED, _RESUMED = pl.col("process"), pl.col("started"), pl.col("resumed")


def joined_lines(lines: pl.DataFrame, waiting: Collection[int]) -> pl.DataFrame:
    """Join the two lines of each call whose meaning does not depend on other lines.

    Args:
        lines: `line` (number) and `text` of all lines that are not complete calls.
        waiting: processes with a call that began before these lines.

    Returns:
        `line` and `end_line` (numbers), and `text`.
    """
    parts = (
        lines.with_columns(pl.col("text").str.extract_groups(_PARTS).alias("part"))
        .unnest("part")
        .with_columns(
            process=pl.coalesce("bracketed", "pid").cast(pl.Int64),
            started=pl.when(pl.col("text").str.ends_with(_INTERRUPTED)).then("started"),
        )
        .with_columns(order=pl.int_range(pl.len()).over("process"))
    )
    marks = parts.filter(_STARTED.is_not_null() | _RESUMED.is_not_null())
    if marks["process"].has_nulls():  # a call may resume without the number of its process
        marks = marks.clear()
    next_mark = pl.col("line", "text", "resumed", "order").shift(-1).over("process")
    return (
        marks.with_columns(
            next_mark.name.prefix("next_"), was_waiting=_STARTED.shift(1).over("process")
        )
        .filter(
            pl.col("next_resumed") == _STARTED,
            pl.col("next_order") == pl.col("order") + 1,
            pl.col("was_waiting").is_null() & ~_PROCESS.is_in(list(waiting)),
            _STARTED != _REPLACES_PROCESS,
            ~pl.col("clock").str.contains(_RELATIVE_TIME).fill_null(value=False),
        )
        .select(
            "line",
            end_line="next_line",
            text=pl.col("text").str.strip_suffix(_INTERRUPTED)
            + pl.col("next_text").str.extract(_RESULT),
        )
        .drop_nulls()
    )
