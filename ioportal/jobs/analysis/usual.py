"""Usual values of similar jobs: quantiles of a metric for pages, medians by group for rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ioportal.jobs.analysis.anonymity import MIN_GROUP, coarse, hides_owners

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.jobs.analysis.anonymity import Numbers

MIN_SAME_NAME = 20  # similar jobs of the same user and name that exclude all others
_HIGH = 0.95
_QUANTILES = (0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Usual:
    """Quantiles of a metric over similar jobs."""

    p25: float
    median: float
    p75: float
    p90: float

    @property
    def rounded(self) -> Usual:
        """The quantiles as readers see them who may not see all of the jobs."""
        return Usual(*map(coarse, (self.p25, self.median, self.p75, self.p90)))


def usual(values: Numbers) -> Usual | None:
    """Return the quantiles of a metric.

    Args:
        values: values of similar jobs, ascending.

    Returns:
        Linearly interpolated quantiles; None below `MIN_GROUP` values.
    """
    if values.size < MIN_GROUP:
        return None
    return Usual(*np.quantile(values, _QUANTILES).tolist())


def rank(values: Numbers, value: float) -> float:
    """Return the share of values below a value, without equal ones: 0 to 1.

    Args:
        values: values of similar jobs, ascending; at least one.
        value: value of the job, rounded like the others.
    """
    return float(values.searchsorted(value)) / values.size


def by_group(
    figures: pl.DataFrame, group: Sequence[str], min_jobs: int = 1, owner: str = ""
) -> pl.DataFrame:
    """Return the usual values of each group of jobs.

    Flags and their mails quote these values to the owner of a job. With `owner`, values are null
    that would reveal the jobs of another one to any of the owners (`hides_owners`).

    Args:
        figures: the group's columns, and metadata_operations_per_node and read_bytes (coarse
            values; null: unknown).
        group: columns with equal values within a group.
        min_jobs: smaller groups are omitted.
        owner: the column with the owners of jobs; "": all jobs of a group have the same owner.

    Returns:
        The group's columns, counts of known values (similar_jobs, similar_jobs_with_bytes), medians
        (usual_operations, usual_read_bytes), 95th percentiles (usual_high, usual_read_high), and
        usual_deviation: the median absolute deviation of ln(1 + metadata operations per node).
    """
    operations, read_bytes = pl.col("metadata_operations_per_node"), pl.col("read_bytes")
    logarithm = (operations + 1).log()
    center = (operations.median() + 1).log()
    # (Medians of the many small groups would take longer than all others.)
    large = figures.filter(pl.len().over(group) >= min_jobs) if min_jobs > 1 else figures
    if owner:
        large = large.with_columns(
            pl.when(_hides_owners(pl.col(name).is_not_null(), group, owner)).then(name)
            for name in ("metadata_operations_per_node", "read_bytes")
        )
    return large.group_by(group).agg(
        similar_jobs=operations.count().cast(pl.Float64),
        usual_operations=operations.median(),
        usual_high=operations.quantile(_HIGH, interpolation="linear"),
        usual_deviation=(logarithm - center).abs().median(),
        similar_jobs_with_bytes=read_bytes.count().cast(pl.Float64),
        usual_read_bytes=read_bytes.median(),
        usual_read_high=read_bytes.quantile(_HIGH, interpolation="linear"),
    )


def _hides_owners(known: pl.Expr, group: Sequence[str], owner: str) -> pl.Expr:
    """Return whether the known jobs of a group, without any one owner's jobs, reveal no other."""
    mine = known.sum().over([*group, owner])
    jobs = known.sum().over(group)
    is_first = known & (known.cum_sum().over([*group, owner]) == 1)  # a row for each owner
    owners = is_first.sum().over(group)
    of_owner = pl.when(is_first).then(mine).otherwise(0)
    largest = of_owner.max().over(group)
    second = of_owner.top_k(2).sum().over(group) - largest
    # Whoever reads it knows the own jobs: leaving out another owner reveals less.
    without: list[pl.Expr] = [
        hides_owners(jobs - largest, owners - 1, second, jobs - largest),
        hides_owners(jobs - second, owners - 1, largest, jobs - second),
    ]
    return pl.all_horizontal(without)
