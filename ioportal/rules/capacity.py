"""Load relative to the capacity of the metadata servers, for rules."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

import polars as pl

from ioportal.core.units import Unit
from ioportal.rules.evidence import HOUR, PEAK_SPAN
from ioportal.rules.rule import Threshold

DEFAULT_PER_S: Final = 5_000  # requests of a small MDS
_COUNTS: Final = {  # of all kinds of subjects, with their spans
    **dict.fromkeys(("peak_operations", "rpcs", "operations", "process_operations"), PEAK_SPAN),
    "hour_operations": HOUR,
}

UNITS: Final = {"capacity_per_s": Unit.REQUESTS_PER_SECOND}  # of the number next to each share


def share(count: str, span: timedelta) -> pl.Expr:
    """Return the rate of a column's count within `span`, as a share of the column `capacity_per_s`.

    A size or a length alone is no abuse: the same count harms a small server more.
    """
    return pl.col(count) / span.total_seconds() / pl.col("capacity_per_s")


def share_of_run(count: pl.Expr) -> pl.Expr:
    """Return the mean rate of a count over a job's run, as a share of `capacity_per_s`."""
    return count / duration_s() / pl.col("capacity_per_s")


def duration_s() -> pl.Expr:
    """Return the duration of a job: at least a second, also if it ended when it began."""
    return pl.col("duration_s").clip(lower_bound=1)


def counted_share(columns: Collection[str]) -> pl.Expr:
    """Return the highest rate of a subject, as a share of the registered capacity.

    It bounds the harm of a subject whose requests are not timed. Null is unknown: an assumed
    capacity bounds nothing, because the server may be much faster.

    Args:
        columns: of the evidence.
    """
    shares = [share(count, span) for count, span in _COUNTS.items() if count in columns]
    highest = pl.max_horizontal(shares) if shares else pl.lit(None, pl.Float64)
    return pl.when("capacity_is_registered").then(highest)


def threshold(default: float) -> Threshold:
    """Return the threshold of such a share."""
    title = f"Share of the server's capacity (registered, or assumed: {DEFAULT_PER_S:,} requests/s)"
    return Threshold(default, title, Unit.SHARE, maximum=1)
