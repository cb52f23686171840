"""Bursts of output: transfers between clients and storage targets that start together.

Each client writes to one or more targets; a burst ends when all its transfers have ended.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

MIN_BURSTS = 3
SLOW = 1.5  # a straggler takes more than this many times the median time per byte of its burst
FAST = 0.8
BAND = (0.4, 0.9)  # of scores
_MOST_SIZES = 4  # that are kept apart
_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Bursts:
    """Transfers with their scores, and bursts.

    Attributes:
        transfers: a row per transfer: start_s, client, target, bytes, duration_s, burst, size
            (class of its bytes), bandwidth_bytes_per_s, slowness, pair_effective, lag_effective.
        bursts: a row per burst x size: burst, size, start_s, clients, targets, transfers, bytes,
            makespan_s, aggregate_bytes_per_s, delivered_bytes_per_s, effective (aggregate),
            straggler_share, mean_distance (null: positions unknown).
        refusal: reason why bursts are not distinguished; "" if they are.
    """

    transfers: pl.DataFrame
    bursts: pl.DataFrame
    refusal: str = ""


def bursts(transfers: pl.DataFrame) -> Bursts:
    """Divide transfers into bursts and score them.

    Definitions, for a transfer of b bytes that takes d seconds, in a burst that starts at s:

    - bandwidth = b / d
    - slowness = median bandwidth of the burst's transfers of this size / bandwidth
    - straggler: slowness > 1.5
    - peak of a size: the highest bandwidth of a target in any burst (sum of the bandwidths of its
      clients)
    - pair effective bandwidth = bandwidth / peak: an upper bound of what client and target
      contributed, because a delayed start does not count
    - lag effective bandwidth = b / (end - s) / peak: a lower bound, because waiting counts
    - aggregate bandwidth of a burst = sum over its clients of bytes / time from the client's first
      to its last transfer
    - effective aggregate bandwidth = aggregate bandwidth / (targets x peak)
    - delivered bandwidth = bytes of the burst / time until its last transfer ends
    - mean distance: of all pairs of its clients, sum of the differences of their coordinates

    A burst begins with a transfer that starts when all earlier ones have ended.

    Args:
        transfers: columns of `tables.PAIR_TRANSFERS`, in any order; those without bytes are left
            out.

    Source: docs/experiments.md, "Output performance".
    """
    scored = _with_bursts(transfers.filter(pl.col("bytes") > 0))
    scored = _scored(scored.with_columns(size=_size_class(scored)))
    summary = _summary(scored)
    refusal = ""
    if scored["burst"].n_unique() < MIN_BURSTS:
        refusal = (
            f"There are fewer than {MIN_BURSTS} bursts: transfers overlap without a pause, or the "
            "series is short."
        )
    return Bursts(scored, summary, refusal)


def _with_bursts(transfers: pl.DataFrame) -> pl.DataFrame:
    end = pl.col("start_s") + pl.col("duration_s")
    earlier_end = end.cum_max().shift(1)
    begins = (pl.col("start_s") >= earlier_end).fill_null(value=False)
    return transfers.sort("start_s").with_columns(burst=begins.cum_sum().cast(pl.Int64))


def _bounds(transfers: pl.DataFrame) -> list[int]:
    """Return the sizes of the classes, or a single bound between small and large transfers."""
    distinct = transfers["bytes"].unique().sort().to_list()
    if len(distinct) <= _MOST_SIZES:
        return distinct
    return [round((distinct[0] * distinct[-1]) ** 0.5)]


def _size_class(transfers: pl.DataFrame) -> pl.Expr:
    bounds = _bounds(transfers)
    if transfers["bytes"].n_unique() <= _MOST_SIZES:
        return pl.col("bytes").replace_strict(
            {size: size_text(size) for size in bounds}, return_dtype=pl.String
        )
    bound = size_text(bounds[0])
    return (
        pl.when(pl.col("bytes") < bounds[0])
        .then(pl.lit(f"below {bound}"))
        .otherwise(pl.lit(f"from {bound}"))
    )


def size_text(size_bytes: int) -> str:
    """Return a size in the largest binary unit that divides it, otherwise in decimal units."""
    for power, unit in enumerate(("GiB", "MiB", "KiB")):
        scale = 1024 ** (3 - power)
        if size_bytes % scale == 0:
            return f"{size_bytes // scale:,} {unit}"
    for power, unit in enumerate(("GB", "MB", "kB")):
        scale = 1000 ** (3 - power)
        if size_bytes >= scale:
            return f"{size_bytes / scale:.3g} {unit}"
    return f"{size_bytes} B"


def _scored(transfers: pl.DataFrame) -> pl.DataFrame:
    bandwidth = pl.col("bandwidth_bytes_per_s")
    measured = transfers.with_columns(bandwidth_bytes_per_s=pl.col("bytes") / pl.col("duration_s"))
    by_target = measured.group_by("burst", "size", "target").agg(bandwidth.sum())
    peaks = by_target.group_by("size").agg(peak=bandwidth.max())
    end = pl.col("start_s") + pl.col("duration_s")
    waited_s = end - pl.col("start_s").min().over("burst")
    return measured.join(peaks, on="size", maintain_order="left").with_columns(
        slowness=bandwidth.median().over("burst", "size") / bandwidth,
        pair_effective=bandwidth / pl.col("peak"),
        lag_effective=pl.col("bytes") / waited_s / pl.col("peak"),
    )


def _summary(transfers: pl.DataFrame) -> pl.DataFrame:
    end = (pl.col("start_s") + pl.col("duration_s")).max()
    targets = pl.col("target").n_unique()
    aggregate = pl.col("aggregate_bytes_per_s")
    summary = transfers.group_by("burst", "size").agg(
        pl.min("start_s"),
        clients=pl.col("client").n_unique(),
        targets=targets,
        transfers=pl.len(),
        bytes=pl.col("bytes").sum(),
        makespan_s=end - pl.col("start_s").min(),
        peak=pl.col("peak").first(),
        straggler_share=(pl.col("slowness") > SLOW).mean(),
    )
    return (
        summary.join(_client_bandwidths(transfers), on=["burst", "size"])
        .with_columns(
            delivered_bytes_per_s=pl.col("bytes") / pl.col("makespan_s"),
            effective=aggregate / (pl.col("targets") * pl.col("peak")),
        )
        .drop("peak")
        .join(_distances(transfers), on=["burst", "size"], how="left")
        .sort("start_s", "size")
    )


def _client_bandwidths(transfers: pl.DataFrame) -> pl.DataFrame:
    """Return the sum of the bandwidths of the clients by burst and size.

    Bytes of a client's transfers, divided by the time from its first to its last.
    """
    end = (pl.col("start_s") + pl.col("duration_s")).max()
    bandwidth = pl.col("bytes").sum() / (end - pl.col("start_s").min())
    clients = transfers.group_by("burst", "size", "client").agg(bandwidth=bandwidth)
    return clients.group_by("burst", "size").agg(aggregate_bytes_per_s=pl.col("bandwidth").sum())


def _distances(transfers: pl.DataFrame) -> pl.DataFrame:
    """Return the mean distance of the pairs of clients by burst and size."""
    placed = transfers.drop_nulls(_AXES).unique(["burst", "size", "client"])
    count = pl.len()
    # In a sorted list, each value is subtracted from the later ones and they from it.
    signed = 2.0 * pl.int_range(count) - (count - 1)
    distance = pl.sum_horizontal((signed * pl.col(axis).sort()).sum() for axis in _AXES)
    grouped = placed.group_by("burst", "size").agg(
        mean_distance=distance * 2 / (count * (count - 1)), placed=count
    )
    return grouped.filter(pl.col("placed") > 1).drop("placed")


def share_in_band(transfers: pl.DataFrame) -> dict[str, float]:
    """Return the share of pair and lag effective bandwidths between 0.4 and 0.9.

    Args:
        transfers: at least one row of `Bursts.transfers`.
    """
    shares = transfers.select(
        pl.col(name).is_between(*BAND).mean() for name in ("pair_effective", "lag_effective")
    )
    return shares.row(0, named=True)
