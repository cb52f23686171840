"""Extents of an RPC trace: the intervals in which it was recorded, by its records."""

from datetime import timedelta

import polars as pl

from collectors.tables import RPC_WINDOWS

# Clients ping their server every 25 s: a longer silence means that the trace was off.
SILENCE = timedelta(minutes=5)

EXTENT = {name: RPC_WINDOWS.columns[name] for name in ("first", "last")}


def joined(extents: pl.DataFrame) -> pl.DataFrame:
    """Join extents (or windows) no further apart than `SILENCE`; return first and last, sorted."""
    reached = pl.col("last").cum_max().shift()
    return (
        extents.sort("first")
        .with_columns(
            (pl.col("first") > reached + SILENCE).fill_null(value=False).cum_sum().alias("island")
        )
        .group_by("island", maintain_order=True)
        .agg(pl.min("first"), pl.max("last"))
        .select(*EXTENT)
    )
