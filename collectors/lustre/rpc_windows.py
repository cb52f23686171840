"""Windows of an RPC trace: where they begin in its text, and their rows added up.

Source: docs/formats.md, "RPC trace".
"""

import re

import polars as pl

from collectors.lustre.rpc_breaks import LABEL

WINDOW_S = 10
WRITTEN_S = 1  # records are written at most this long after their time

# The start of a line with a record, and its second. No job id is long enough to imitate it.
_RECORD = re.compile(
    rb"^[^:\n]*:[^:\n]*:[^:\n]*:([0-9]{1,10})\.[^\n]*" + re.escape(LABEL), re.MULTILINE
)


def current_window_s(now_s: float) -> int:
    """Return the start of the window whose records may still be written.

    Args:
        now_s: the time, in seconds since 1970.
    """
    return int(now_s - WRITTEN_S) // WINDOW_S * WINDOW_S


def before_window(text: bytes, start_s: int) -> int:
    """Return the length of the text before the first record of a window.

    Records further ahead than the following window do not count: their times are wrong.

    Args:
        text: whole lines.
        start_s: start of the window, in seconds since 1970.
    """
    last = text.rfind(b"\n", 0, max(text.rfind(LABEL), 0)) + 1
    if not _is_reached(_RECORD.match(text, last), start_s):
        return len(text)
    records = (record for record in _RECORD.finditer(text) if _is_reached(record, start_s))
    return next(records).start()


def _is_reached(record: re.Match[bytes] | None, start_s: int) -> bool:
    return record is not None and 0 <= int(record[1]) - start_s < 2 * WINDOW_S


def merged(windows: pl.DataFrame, *key: str) -> pl.DataFrame:
    """Add up rows of the same window.

    Args:
        windows: rows with the figures of `tables.RPC_WINDOWS`.
        key: the columns that identify a window.
    """
    minima = pl.col("service_us_min", "queue_us_min")
    return (
        windows.lazy()
        # Three times as fast as inside the aggregation.
        .with_columns(pl.when(pl.col("timed") > 0).then(minima))
        .group_by(*key)
        .agg(
            pl.sum("count", "timed", "service_us_sum", "total_us_sum"),
            pl.min("service_us_min", "queue_us_min", "first"),
            pl.max("service_us_max", "queue_us_max", "last"),
        )
        .with_columns(minima.fill_null(0))
        .collect()
    )
