"""What counters added between two reads of them.

For job_stats the rules are those by which the portal treats reads that it loads from files.

Source: docs/architecture.md, "I/O windows".
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

import polars as pl

from collectors.tables import BASES, COUNTERS, JOB_DELTAS, TARGET_DELTAS, UTC_US

OSTS = ""  # what all OSTs of a filesystem are called when they are added up

_BEFORE = "_before"
_IS_OST = pl.col("target").str.contains(r"-OST[0-9a-fA-F]{4}$")
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Counted:
    """What reads showed: of each target the last one.

    Attributes:
        totals: rows of `tables.JOB_COUNTERS` or `tables.TARGET_COUNTERS`.
        reads: when each target was read (target, taken_at); also those that show nothing.
    """

    totals: pl.DataFrame
    reads: pl.DataFrame

    @classmethod
    def at(cls, moment: datetime, totals: pl.DataFrame, targets: frozenset[str]) -> Self:
        """Return what one read showed."""
        names = targets.union(totals["target"].unique())
        reads = {"target": sorted(names), "taken_at": [moment] * len(names)}
        return cls(totals, pl.DataFrame(reads, {"target": pl.String, "taken_at": UTC_US}))

    def updated(self, later: Self) -> "Counted":
        """Return it with the targets of a later read as that showed them."""
        return Counted(
            pl.concat([self.totals.join(later.reads, on="target", how="anti"), later.totals]),
            pl.concat([self.reads.join(later.reads, on="target", how="anti"), later.reads]),
        )

    def beside(self, earlier: Self, *key: str) -> pl.DataFrame:
        """Return the totals beside what the same target's earlier read showed.

        Columns: besides those of the totals and the ones before, taken_at, previous_at (null: the
        target was not read before) and known_before (null: it was, and lacked this row).
        """
        previous = earlier.reads.rename({"taken_at": "previous_at"})
        return (
            self.totals.join(self.reads, on="target")
            .join(previous, on="target", how="left")
            .join(
                earlier.totals.with_columns(known=True).select(
                    *key, pl.exclude(key).name.suffix(_BEFORE)
                ),
                on=key,
                how="left",
            )
        )


def job_deltas(earlier: Counted, later: Counted, idle: timedelta) -> pl.DataFrame:
    """Return what jobs added, in rows of `tables.JOB_DELTAS`; OSTs are added up.

    Args:
        earlier: the last read of each target, `tables.JOB_COUNTERS`.
        later: the next one.
        idle: Lustre's job_cleanup_interval: so long an entry is kept that nobody uses.
    """
    previous_at, started_at = pl.col("previous_at"), pl.col("entry_started_at")
    is_new = pl.col(f"known{_BEFORE}").is_null()
    idled = pl.col(f"snapshot_at{_BEFORE}") < pl.col("taken_at") - idle
    basis = (
        pl.when(previous_at.is_null())
        .then(pl.lit("total"))
        # It is older than the read that lacked it: that read was not whole.
        .when(is_new & (started_at < previous_at))
        .then(pl.lit("total"))
        .when(is_new)
        .then(pl.lit("new_entry"))
        .when(started_at > pl.col(f"entry_started_at{_BEFORE}"))
        .then(pl.lit("restarted"))
        .when(_fell() & idled)
        .then(pl.lit("restarted"))
        .when(_fell())
        .then(pl.lit("reset"))
        .otherwise(pl.lit("difference"))
    )
    rows = (
        later.beside(earlier, "target", "job")
        .with_columns(basis=basis.cast(pl.Enum(BASES)))
        .with_columns(
            *_added(lambda before: before),
            start=pl.coalesce("previous_at", "taken_at"),
            end="taken_at",
            target=pl.when(_IS_OST).then(pl.lit(OSTS)).otherwise("target"),
        )
    )
    return _with_something(
        rows.group_by("start", "end", "target", "job", maintain_order=True).agg(
            pl.max("basis"), *(_sum(name) for name in COUNTERS)
        )
    ).select(pl.col(name).cast(dtype) for name, dtype in JOB_DELTAS.columns.items())


def target_deltas(earlier: Counted, later: Counted) -> pl.DataFrame:
    """Return what all clients added, in rows of `tables.TARGET_DELTAS`.

    A counter that md_stats do not show has counted nothing since they were cleared.
    """
    basis = (
        pl.when(pl.col("previous_at").is_null())
        .then(pl.lit("total"))
        .when(_fell())
        .then(pl.lit("reset"))
        .otherwise(pl.lit("difference"))
    )
    rows = (
        later.beside(earlier, "target")
        .with_columns(basis=basis)
        .with_columns(
            *_added(lambda before: before.fill_null(0)),
            start=pl.coalesce("previous_at", "taken_at"),
            end="taken_at",
        )
    )
    return _with_something(rows).select(*TARGET_DELTAS.columns)


def completed(earlier: Counted, later: Counted) -> Counted:
    """Return md_stats with what their text lacks as it was before, unless they were cleared.

    A line may be torn; without this, the next read would seem to have counted all anew.
    """
    both = later.beside(earlier, "target")
    lacking = [
        pl.when(~_fell()).then(pl.coalesce(name, f"{name}{_BEFORE}")).otherwise(name).alias(name)
        for name in COUNTERS
    ]
    return Counted(both.with_columns(lacking).select(later.totals.columns), later.reads)


def _fell() -> pl.Expr:
    """Tell whether any counter shows less than before."""
    return pl.any_horizontal(
        (pl.col(name) < pl.col(f"{name}{_BEFORE}")).fill_null(value=False) for name in COUNTERS
    )


def _added(before: Callable[[pl.Expr], pl.Expr]) -> list[pl.Expr]:
    """Take from each counter what it showed before, where it went on from there."""
    return [
        pl.when(pl.col("basis") == "difference")
        .then(pl.col(name) - before(pl.col(f"{name}{_BEFORE}")))
        .otherwise(name)
        .alias(name)
        for name in COUNTERS
    ]


def _sum(name: str) -> pl.Expr:
    """Add a counter up; null where none is told. Made-up counters must not overflow."""
    told = pl.col(name).is_not_null().any()
    return pl.when(told).then(pl.col(name).cast(pl.Int128).sum().clip(upper_bound=_LARGEST))


def _with_something(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out where nothing was counted; but what was cleared may show nothing yet."""
    counted = pl.any_horizontal((pl.col(*COUNTERS) > 0).fill_null(value=False))
    return rows.filter(counted | (pl.col("basis") == "reset"))
