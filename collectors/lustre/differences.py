"""Differences of counters between two reads.

The portal applies the same rules to job_stats reads that it loads from files.

Source: docs/architecture.md, "I/O windows".
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

import polars as pl

from collectors.tables import (
    BASES,
    COUNTED,
    COUNTERS,
    EXPORT_DELTAS,
    JOB_DELTAS,
    METADATA_OPERATIONS,
    TARGET_DELTAS,
    TIMES,
    UTC_US,
)

# An entry lives this part of job_cleanup_interval after its last use for sure: clocks differ.
SURE_LIFETIME = 0.9
OSTS = ""  # target name of the sum of all OSTs of a filesystem

_BEFORE = "_before"
_FELL = "fell"  # whether any counter decreased
_IS_OST = pl.col("target").str.contains(r"-OST[0-9a-fA-F]{4}$")
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Snapshot:
    """The latest read of each target.

    Attributes:
        totals: rows of `tables.JOB_COUNTERS`, `tables.TARGET_COUNTERS` or `tables.EXPORT_COUNTERS`.
        reads: time of each target's read (target, taken_at), including targets without rows.
    """

    totals: pl.DataFrame
    reads: pl.DataFrame

    @classmethod
    def at(cls, moment: datetime, totals: pl.DataFrame, targets: frozenset[str]) -> Self:
        """Return the snapshot of one read."""
        names = targets.union(totals["target"].unique())
        reads = {"target": sorted(names), "taken_at": [moment] * len(names)}
        return cls(totals, pl.DataFrame(reads, {"target": pl.String, "taken_at": UTC_US}))

    def updated(self, later: Self) -> "Snapshot":
        """Return the snapshot with the targets of a later read replaced."""
        return Snapshot(
            pl.concat([self.totals.join(later.reads, on="target", how="anti"), later.totals]),
            pl.concat([self.reads.join(later.reads, on="target", how="anti"), later.reads]),
        )

    def joined_with(self, earlier: Self, *key: str) -> pl.DataFrame:
        """Join each row of the totals with the same row of an earlier snapshot.

        Columns: the totals, the earlier totals with suffix ``_before``, taken_at, previous_at
        (null: no earlier read of the target) and exists_before (null: row not in that read).
        """
        previous = earlier.reads.rename({"taken_at": "previous_at"})
        return (
            self.totals.join(self.reads, on="target")
            .join(previous, on="target", how="left")
            .join(
                earlier.totals.with_columns(exists=True).select(
                    *key, pl.exclude(key).name.suffix(_BEFORE)
                ),
                on=key,
                how="left",
            )
        )


def job_deltas(earlier: Snapshot, later: Snapshot, idle: timedelta) -> pl.DataFrame:
    """Return the increments by job in rows of `tables.JOB_DELTAS`, OSTs added up.

    Args:
        earlier: the previous read of each target, `tables.JOB_COUNTERS`.
        later: the next read.
        idle: Lustre's job_cleanup_interval, the lifetime of an idle entry.
    """
    previous_at, started_at = pl.col("previous_at"), pl.col("entry_started_at")
    is_new = pl.col(f"exists{_BEFORE}").is_null()
    is_later = started_at > pl.col(f"entry_started_at{_BEFORE}")
    idled = pl.col(f"snapshot_at{_BEFORE}") < pl.col("taken_at") - idle
    basis = (
        pl.when(previous_at.is_null())
        .then(pl.lit("total"))
        # The entry is older than the previous read, which was therefore incomplete.
        .when(is_new & (started_at < previous_at))
        .then(pl.lit("total"))
        .when(is_new)
        .then(pl.lit("new_entry"))
        .when(is_later & (started_at < pl.col(f"snapshot_at{_BEFORE}") + idle * SURE_LIFETIME))
        .then(pl.lit("reset"))
        .when(is_later)
        .then(pl.lit("restarted"))
        .when(_fell() & idled)
        .then(pl.lit("restarted"))
        .when(_fell())
        .then(pl.lit("reset"))
        .otherwise(pl.lit("difference"))
    )
    counted = (
        later.joined_with(earlier, "target", "job")
        .with_columns(basis=basis.cast(pl.Enum(BASES)))
        .with_columns(*_added(COUNTED, lambda before: before))
        .with_columns(*_added_times())
    )
    rows = pl.concat([counted, _cleared(earlier, later, idle)], how="diagonal")
    rows = rows.with_columns(
        basis=pl.when(_was_restarted().over("target"), pl.col("basis") != "total")
        .then(pl.lit("reset", pl.Enum(BASES)))
        .otherwise("basis"),
        start=pl.coalesce("previous_at", "taken_at"),
        end="taken_at",
        target=pl.when(_IS_OST).then(pl.lit(OSTS)).otherwise("target"),
    )
    return _non_zero(
        rows.group_by("start", "end", "target", "job", maintain_order=True).agg(
            pl.max("basis"),
            *(_sum(name) for name in COUNTED),
            *(_sum_of_times(time, name) for time, name in TIMES.items()),
        )
    ).select(pl.col(name).cast(dtype) for name, dtype in JOB_DELTAS.columns.items())


def _cleared(earlier: Snapshot, later: Snapshot, idle: timedelta) -> pl.DataFrame:
    """Return a reset for each entry that vanished before the end of its lifetime.

    It was cleared, perhaps with operations since the earlier read.
    """
    return (
        earlier.totals.join(earlier.reads.rename({"taken_at": "previous_at"}), on="target")
        .join(later.reads, on="target")
        .join(later.totals, on=["target", "job"], how="anti")
        .filter(pl.col("snapshot_at") + idle * SURE_LIFETIME > pl.col("taken_at"))
        .select("target", "job", "previous_at", "taken_at", basis=pl.lit("reset", pl.Enum(BASES)))
    )


def _was_restarted() -> pl.Expr:
    """Whether all counters of a target were cleared, given the bases of its rows.

    Counters above their earlier values, and counters of new entries, do not show
    it. An entry older than the previous read does not survive it.
    """
    is_cleared, continues = pl.col("basis") == "reset", pl.col("basis") == "difference"
    survived = pl.col("entry_started_at") < pl.col("previous_at")
    return (
        is_cleared.any()
        & ~survived.fill_null(value=False).any()
        & (is_cleared.sum() >= continues.sum())
    )


def export_deltas(earlier: Snapshot, later: Snapshot) -> pl.DataFrame:
    """Return the increments by client in rows of `tables.EXPORT_DELTAS`.

    The counters of a client that the earlier read does not show are totals: it may have connected
    since, or its part of that read was damaged.
    """
    counted = _counted(earlier, later, "target", "nid")
    is_new = pl.col("basis") == "new_entry"
    counted = counted.with_columns(
        basis=pl.when(is_new).then(pl.lit("total")).otherwise("basis"),
        start=pl.when(is_new).then("end").otherwise("start"),
    )
    operations = {time: name for time, name in TIMES.items() if name in METADATA_OPERATIONS}
    has_time = (
        pl.col(time).is_not_null() | (pl.col(name).fill_null(0) == 0)
        for time, name in operations.items()
    )
    sums = counted.with_columns(
        metadata_operations=pl.sum_horizontal(METADATA_OPERATIONS),
        metadata_us=pl.when(pl.all_horizontal(has_time)).then(pl.sum_horizontal(*operations)),
    )
    has_operations = pl.col("metadata_operations") > 0
    return sums.filter(has_operations | (pl.col("basis") == "reset")).select(*EXPORT_DELTAS.columns)


def target_deltas(earlier: Snapshot, later: Snapshot) -> pl.DataFrame:
    """Return the increments by all clients in rows of `tables.TARGET_DELTAS`.

    A counter that md_stats does not show has been zero since the last clear.
    """
    return _non_zero(_counted(earlier, later, "target")).select(*TARGET_DELTAS.columns)


def _counted(earlier: Snapshot, later: Snapshot, *key: str) -> pl.DataFrame:
    """Return the increments of rows without job ids; counters that are not shown are zero."""
    basis = (
        pl.when(pl.col("previous_at").is_null())
        .then(pl.lit("total"))
        .when(_fell())
        .then(pl.lit("reset"))
        .when(pl.col(f"exists{_BEFORE}").is_null())
        .then(pl.lit("new_entry"))
        .otherwise(pl.lit("difference"))
    )
    return (
        later.joined_with(earlier, *key)
        .with_columns(basis=basis)
        .with_columns(
            *_added(COUNTED, lambda before: before.fill_null(0)),
            start=pl.coalesce("previous_at", "taken_at"),
            end="taken_at",
        )
        .with_columns(*_added_times())
    )


def completed(earlier: Snapshot, later: Snapshot, *key: str) -> Snapshot:
    """Return a read with missing counters as in the earlier read, unless they were cleared.

    A line may be damaged; without its value, the next increment would be the counter's total.
    """
    both = later.joined_with(earlier, *key).with_columns(_fell().alias(_FELL))
    counters = [
        pl.when(~pl.col(_FELL))
        .then(pl.coalesce(name, f"{name}{_BEFORE}"))
        .otherwise(name)
        .alias(name)
        for name in COUNTERS
    ]
    return Snapshot(both.with_columns(counters).select(later.totals.columns), later.reads)


def _fell() -> pl.Expr:
    """Whether any counter decreased."""
    return pl.any_horizontal(
        (pl.col(name) < pl.col(f"{name}{_BEFORE}")).fill_null(value=False) for name in COUNTERS
    )


def _added(names: Iterable[str], before: Callable[[pl.Expr], pl.Expr]) -> list[pl.Expr]:
    """Return the increment of each counter; its value if it restarted from zero."""
    return [
        pl.when(pl.col("basis") == "difference")
        .then(pl.col(name) - before(pl.col(f"{name}{_BEFORE}")))
        .otherwise(name)
        .alias(name)
        for name in names
    ]


def _added_times() -> list[pl.Expr]:
    """Return the time of the operations in each increment; null: unknown, or no operations.

    A time is null in a read before the first operation: then all of it was added.
    """
    return [
        pl.when(pl.col(name) > 0)
        .then(
            pl.when(pl.col("basis") != "difference")
            .then(time)
            .when(pl.col(f"{name}{_BEFORE}").fill_null(0) == 0)
            .then(time)
            .otherwise(pl.col(time) - pl.col(f"{time}{_BEFORE}"))
        )
        .alias(time)
        for time, name in TIMES.items()
    ]


def _sum(name: str) -> pl.Expr:
    """Add up a counter; null if all values are. Forged counters must not overflow."""
    present = pl.col(name).is_not_null().any()
    return pl.when(present).then(pl.col(name).cast(pl.Int128).sum().clip(upper_bound=_LARGEST))


def _sum_of_times(time: str, name: str) -> pl.Expr:
    """Add up the times of operations; null if the time of any operation is unknown."""
    has_time = pl.col(time).is_not_null() | (pl.col(name).fill_null(0) == 0)
    return pl.when(has_time.all()).then(_sum(time)).alias(time)


def _non_zero(rows: pl.DataFrame) -> pl.DataFrame:
    """Drop rows without operations, except resets: these mark a lossy interval."""
    counted = pl.any_horizontal((pl.col(*COUNTED) > 0).fill_null(value=False))
    return rows.filter(counted | (pl.col("basis") == "reset"))
