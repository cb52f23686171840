"""Load relative to the capacity of the metadata servers, for rules."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

import polars as pl

from ioportal.analysis.metrics import Unit
from ioportal.analysis.rules.evidence import PEAK_SPAN
from ioportal.analysis.rules.rule import Threshold

DEFAULT_PER_S: Final = 5_000  # requests of a small MDS
_COUNTS = ("peak_operations", "rpcs", "operations", "process_operations")  # in `PEAK_SPAN`

UNITS: Final = {"capacity_per_s": Unit.REQUESTS_PER_SECOND}  # of the number next to each share


def share(count: str, span: timedelta) -> pl.Expr:
    """Return the rate of a column's count within `span`, as a share of the column `capacity_per_s`.

    A size or a length alone is no abuse: the same count harms a small server more.
    """
    return pl.col(count) / span.total_seconds() / pl.col("capacity_per_s")


def counted_share(columns: Collection[str]) -> pl.Expr:
    """Return the highest rate of a subject within five minutes, as a share of the capacity.

    It bounds the harm of a subject whose requests are not timed. Null is unknown.

    Args:
        columns: of the evidence; groups of jobs on several filesystems have no capacity.
    """
    counts = [name for name in _COUNTS if name in columns and "capacity_per_s" in columns]
    shares = [share(count, PEAK_SPAN) for count in counts]
    return pl.max_horizontal(shares) if shares else pl.lit(None, pl.Float64)


def threshold(default: float) -> Threshold:
    """Return the threshold of such a share."""
    title = f"Share of the registered capacity ({DEFAULT_PER_S:,} requests/s if there is none)"
    return Threshold(default, title, Unit.SHARE, maximum=1)
