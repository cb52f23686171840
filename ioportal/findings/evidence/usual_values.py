"""Usual values of the jobs similar to those under evaluation, by day of start."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

import polars as pl
from django.core.cache import cache

from ioportal.jobs import similar_jobs
from ioportal.jobs.analysis.usual import MIN_SAME_NAME, by_group
from ioportal.jobs.similar_jobs import FIGURES, GROUP
from ioportal.rules.evidence import USUAL_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable

    # Returns the usual values of all groups for jobs that started on a day.
    UsualOn: TypeAlias = Callable[[date], pl.DataFrame]

_CACHE_S = 600
_RETAINED = timedelta(days=14)  # jobs that end in sequence may have started out of sequence
_NEVER = datetime.max.replace(tzinfo=UTC)
_SIZE_GROUP = ["cluster", "size_class"]
_COLUMNS = {**GROUP, **USUAL_VALUES}
_VERSION = crc32(" ".join(["3", *_COLUMNS]).encode())  # of cached rows


class MovingWindow:
    """Usual values by day. Days close to each other share the figures that are read."""

    def __init__(self) -> None:
        self._figures = pl.DataFrame(schema=FIGURES)
        self._start, self._end = _NEVER, _NEVER

    def on(self, day: date) -> pl.DataFrame:
        """Return the usual values of all groups for a day.

        Groups by size class have no `user_and_name`.
        """
        start, end = similar_jobs.window(day)
        self._extend(start, end)
        started_at = pl.col("started_at")
        figures = self._figures.filter(started_at >= start, started_at < end)
        named = figures.filter(pl.col("user_and_name").is_not_null())
        sized = by_group(figures, _SIZE_GROUP, owner="owner").with_columns(user_and_name=None)
        return pl.concat(
            groups.select(pl.col(name).cast(dtype) for name, dtype in _COLUMNS.items())
            for groups in (sized, by_group(named, list(GROUP), MIN_SAME_NAME))
        )

    def _extend(self, start: datetime, end: datetime) -> None:
        """Read missing figures of [start, end), and drop figures that are much older."""
        if start < self._start or start > self._end:
            self._figures = similar_jobs.read_figures(start, end)
            self._start, self._end = start, end
        elif end > self._end:
            new = similar_jobs.read_figures(self._end, end)
            self._start, self._end = max(self._start, start - _RETAINED), end
            recent = self._figures.filter(pl.col("started_at") >= self._start)
            self._figures = pl.concat([recent, new])


def cached(day: date) -> pl.DataFrame:
    """Return the usual values for a day, computed every ten minutes at most."""
    key = f"flags:usual:{_VERSION}:{day.isoformat()}"
    rows: list[Any] | None = cache.get(key)
    if rows is None:
        rows = MovingWindow().on(day).rows()
        cache.set(key, rows, _CACHE_S)
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row")


def with_usual_values(jobs: pl.DataFrame, usual_on: UsualOn | None) -> pl.DataFrame:
    """Add the columns of `USUAL_VALUES` to jobs; null without `usual_on`.

    Args:
        jobs: columns of `GROUP` and started_at.
        usual_on: usual values by day of start.
    """
    if usual_on is None:
        nulls = {name: pl.lit(None, dtype) for name, dtype in USUAL_VALUES.items()}
        return jobs.with_columns(**nulls)
    days = jobs.with_columns(day=pl.col("started_at").dt.date()).sort("day").partition_by("day")
    return pl.concat(_join(each.drop("day"), usual_on(each["day"][0])) for each in days)


def _join(jobs: pl.DataFrame, usual: pl.DataFrame) -> pl.DataFrame:
    """Join the group of user and name where it is large enough, otherwise the size class."""
    named = usual.filter(pl.col("user_and_name").is_not_null())
    sized = usual.filter(pl.col("user_and_name").is_null()).drop("user_and_name")
    joined = jobs.join(named.with_columns(is_named=True), on=list(GROUP), how="left").join(
        sized, on=_SIZE_GROUP, how="left", suffix="_of_size"
    )
    return joined.with_columns(
        pl.when("is_named").then(name).otherwise(f"{name}_of_size").alias(name)
        for name in USUAL_VALUES
    )
