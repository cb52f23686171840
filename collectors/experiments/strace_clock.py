"""Times of an strace log: since the epoch (-ttt), of the day (-t, -tt), or relative (-r).

Source: docs/formats.md, "strace".
"""

import numpy as np
import numpy.typing as npt
import polars as pl

_SECOND_US = 1_000_000
_DAY_US = 86_400 * _SECOND_US
_EPOCH_DIGITS = 9  # shorter numbers are relative
_CLOCK = pl.col("clock")

_IS_OF_DAY = _CLOCK.str.contains(":", literal=True)
_IS_EPOCH = ~_IS_OF_DAY & (_CLOCK.str.splitn(".", 2).struct[0].str.len_bytes() >= _EPOCH_DIGITS)
_KIND = pl.when(_IS_OF_DAY).then(pl.lit("day")).when(_IS_EPOCH).then(pl.lit("epoch"))


class Clock:
    """The clock of one log, continued over its parts. The first time decides the kind of all."""

    def __init__(self) -> None:
        self._kind: str | None = None
        self._last_us: int | None = None  # without days
        self._days = 0

    def times_us(self, clocks: pl.Series) -> pl.Series:
        """Return the times of consecutive lines.

        Args:
            clocks: times as they are written; null: the line has none.

        Returns:
            In microseconds since the epoch, since the midnight before the first line, or since the
            first line. Null: no time, or one of another kind than the first.
        """
        lines = clocks.alias("clock").to_frame().with_row_index("number")
        known = lines.drop_nulls().with_columns(kind=_KIND.otherwise(pl.lit("relative")))
        if self._kind is None and known.height:
            self._kind = known["kind"][0]
        known = known.filter(pl.col("kind") == pl.lit(self._kind, pl.String))
        times = known.select("number", us=pl.Series(self._times_us(known["clock"]), dtype=pl.Int64))
        return lines.join(times, "number", "left", maintain_order="left")["us"]

    def _times_us(self, clocks: pl.Series) -> npt.NDArray[np.int64]:
        if not clocks.len():
            return np.zeros(0, np.int64)
        if self._kind == "day":
            return self._with_days(_of_day_us(clocks))
        numbers = _microseconds(clocks)
        return numbers if self._kind == "epoch" else self._accumulated(numbers)

    def _accumulated(self, steps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        times = (self._last_us or 0) + np.cumsum(np.minimum(steps, _DAY_US))
        self._last_us = int(times[-1])
        return times

    def _with_days(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Add the days: a step of more than half a day crosses midnight.

        Lines of several processes are not strictly in order, also around midnight.
        """
        steps = np.diff(times, prepend=times[0] if self._last_us is None else self._last_us)
        crossed = (steps < -_DAY_US // 2).astype(np.int64) - (steps > _DAY_US // 2)
        days = self._days + np.cumsum(crossed)
        self._days, self._last_us = int(days[-1]), int(times[-1])
        return times + days * _DAY_US


def _microseconds(clocks: pl.Series) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = (
        (clocks.cast(pl.Float64) * _SECOND_US).round().cast(pl.Int64).to_numpy()
    )
    return numbers


def _of_day_us(clocks: pl.Series) -> npt.NDArray[np.int64]:
    hours, minutes = (clocks.str.slice(offset, 2).cast(pl.Int64).to_numpy() for offset in (0, 3))
    seconds_us = _microseconds(clocks.str.slice(6))
    return np.asarray((hours * 60 + minutes) * (60 * _SECOND_US) + seconds_us, np.int64)
