"""When a server's RPC trace was recorded, told from its records."""

from datetime import timedelta

import polars as pl

from collectors.tables import RPC_WINDOWS

# A server's clients ping it every 25 s: silent for this long, it was not recorded.
SILENCE = timedelta(minutes=5)

EXTENT = {name: RPC_WINDOWS.columns[name] for name in ("first", "last")}


def joined(extents: pl.DataFrame) -> pl.DataFrame:
    """Join extents (or windows) no further apart than `SILENCE`; first and last, in order."""
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
