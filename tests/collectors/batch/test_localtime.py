from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.batch import localtime
from collectors.batch.values import Unreadable

HOUR_S = 3_600


def wall(text):
    return datetime.fromisoformat(text)


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_most_times_have_a_single_reading(berlin, new_york):
    assert localtime.readings(wall("2024-07-01T12:00:00"), berlin) == (utc("2024-07-01T10:00:00"),)
    assert localtime.readings(wall("2024-07-01T12:00:00"), new_york) == (
        utc("2024-07-01T16:00:00"),
    )


def test_the_repeated_hour_has_two_readings(berlin, new_york):
    assert localtime.readings(wall("2024-10-27T02:30:00"), berlin) == (
        utc("2024-10-27T00:30:00"),
        utc("2024-10-27T01:30:00"),
    )
    assert localtime.readings(wall("2024-11-03T01:30:00"), new_york) == (
        utc("2024-11-03T05:30:00"),
        utc("2024-11-03T06:30:00"),
    )


def test_the_skipped_hour_is_read_with_the_offset_before(berlin, new_york):
    assert localtime.readings(wall("2024-03-31T02:30:00"), berlin) == (utc("2024-03-31T01:30:00"),)
    assert localtime.readings(wall("2024-03-10T02:30:00"), new_york) == (
        utc("2024-03-10T07:30:00"),
    )


def test_an_offset_overrides_the_zone(berlin):
    at = wall("2024-10-27T02:30:00-06:00")

    assert localtime.readings(at, berlin) == (utc("2024-10-27T08:30:00"),)


@pytest.mark.parametrize("year", [1, 9999])
def test_a_time_beyond_the_calendar_is_refused(year, berlin):
    edge = datetime(year, 1 if year == 1 else 12, 1 if year == 1 else 31, 12)  # noqa: DTZ001 (wall)
    offset = timezone(timedelta(hours=23 if year == 1 else -23))

    with pytest.raises(Unreadable, match="outside the calendar"):
        localtime.readings(edge.replace(tzinfo=offset), berlin)


@given(at=st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2100, 1, 1)))  # noqa: DTZ001 (walls)
def test_readings_of_a_wall_clock_contain_its_time(at, berlin):
    moment = at.replace(tzinfo=UTC)

    shown = moment.astimezone(berlin).replace(tzinfo=None)

    assert moment in localtime.readings(shown, berlin)


@pytest.mark.parametrize(
    "text", ["", "2024-13-01T00:00:00", "2024-01-01", "2024-01-01T25:00:00", "now", "2024-W01-1"]
)
def test_an_error_quotes_the_time(text):
    with pytest.raises(Unreadable, match=r"Start .* is not a time"):
        localtime.stamp(text, "Start")


@pytest.mark.parametrize("seconds", [0, 7_164, 10**12, -1])
def test_an_implausible_epoch_is_refused(seconds):
    with pytest.raises(Unreadable, match="is not the time of a job"):
        localtime.moment(seconds)


FIRST, SECOND = utc("2024-10-27T00:30:00"), utc("2024-10-27T01:30:00")
BEFORE, AFTER = utc("2024-10-26T23:30:00"), utc("2024-10-27T02:30:00")


@pytest.mark.parametrize(
    ("starts", "ends", "lasted_s", "expected"),
    [
        pytest.param((BEFORE,), (FIRST, SECOND), HOUR_S, (BEFORE, FIRST), id="a short run"),
        pytest.param((BEFORE,), (FIRST, SECOND), 2 * HOUR_S, (BEFORE, SECOND), id="a long run"),
        pytest.param((FIRST, SECOND), (AFTER,), HOUR_S, (SECOND, AFTER), id="a late start"),
        pytest.param((FIRST, SECOND), (AFTER,), None, (FIRST, AFTER), id="no duration: earliest"),
        pytest.param((SECOND,), (FIRST, SECOND), None, (SECOND, SECOND), id="not before its start"),
        pytest.param((FIRST, SECOND), (), None, (FIRST, None), id="still running"),
        pytest.param((), (FIRST, SECOND), 0, (None, FIRST), id="never started"),
        pytest.param((), (), None, (None, None), id="waiting"),
    ],
)
def test_readings_that_fit_the_duration_are_chosen(starts, ends, lasted_s, expected):
    assert localtime.run_between(starts, ends, lasted_s) == expected


def test_a_run_that_ends_before_it_starts_is_refused():
    with pytest.raises(
        Unreadable, match=r"ends at 2024-10-26T23:30:00Z, before it starts at 2024-10-27T02:30:00Z"
    ):
        localtime.run_between((AFTER,), (BEFORE,), HOUR_S)


def test_epoch_seconds_are_aware_times():
    assert localtime.moment(1_499_256_000) == utc("2017-07-05T12:00:00")
