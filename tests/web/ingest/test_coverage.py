from datetime import UTC, datetime, timedelta

import pytest

from ioportal.web.ingest.coverage import WIDTH, strip

NOON = datetime(2017, 7, 5, 12, tzinfo=UTC)


def at(minutes):
    return NOON + timedelta(minutes=minutes)


def test_bars_cover_observed_intervals():
    assert strip([(at(0), at(15)), (at(30), at(60))], at(0), at(60)) == [(0, 250), (500, 500)]


def test_a_short_interval_has_a_visible_bar():
    [(left, width)] = strip([(at(30), at(30.0001))], at(0), at(60))

    assert (left, width) == (WIDTH / 2, 1)


def test_touching_bars_are_merged():
    minutes = 60 * 24
    bars = strip([(at(n), at(n + 0.99)) for n in range(minutes)], at(0), at(minutes))

    assert bars == [(0, pytest.approx(WIDTH, abs=1))]


def test_no_intervals_give_no_bars():
    assert strip([], at(0), at(60)) == []
