"""Slow intervals of a server."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from ioportal.load.analysis.slowness import TIMES, SlownessCriteria, slow_intervals
from ioportal.load.analysis.waiting import Slowdown

NOON = datetime(2017, 7, 5, 12, tzinfo=UTC)


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def times(*means_us):
    """Return windows of server 1 from noon on, with 100 RPCs each and a baseline of 100 us."""
    return pl.DataFrame(
        [(1, at(10 * n), 100.0 * us, 10_000.0) for n, us in enumerate(means_us)],
        schema=TIMES,
        orient="row",
    )


def test_an_interval_contains_a_high_factor_and_ends_at_a_low_factor():
    intervals = slow_intervals(
        times(100, 170, 320, 900, 160, 140, 100, 100, 310),
        SlownessCriteria(max_pause=timedelta(seconds=10)),
    )

    assert intervals == [Slowdown(1, at(10), at(50), 9.0, pytest.approx(0.115))]


def test_an_interval_includes_short_pauses():
    [interval] = slow_intervals(times(400, 400, 100, 100, 400))

    assert (interval.start, interval.end) == (at(0), at(50))


def test_no_windows_give_no_interval():
    assert slow_intervals(times()) == []
