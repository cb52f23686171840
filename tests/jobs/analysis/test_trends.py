from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from ioportal.core.timelines import Gap, Known
from ioportal.jobs.analysis.trends import MAX_BUCKETS, Step, buckets, missing_reads, step_for, table

NEW_YORK = ZoneInfo("America/New_York")
KOLKATA = ZoneInfo("Asia/Kolkata")


def at(text):
    return datetime.fromisoformat(f"{text}+00:00")


def edges(start, end, step, zone=UTC):
    return [f"{edge:%m-%d %H:%M}" for edge in buckets(at(start), at(end), step, zone).edges]


@pytest.mark.parametrize(
    ("start", "end", "step", "zone", "expected"),
    [
        pytest.param(
            "2017-07-05 10:30",
            "2017-07-05 13:00",
            Step.HOUR,
            UTC,
            ["07-05 10:30", "07-05 11:00", "07-05 12:00", "07-05 13:00"],
            id="hours after a cut first hour",
        ),
        pytest.param(
            "2017-07-05 10:30",
            "2017-07-05 11:45",
            Step.HOUR,
            KOLKATA,
            ["07-05 10:30", "07-05 11:30", "07-05 11:45"],
            id="hours of a zone with an offset of half an hour",
        ),
        pytest.param(
            "2017-03-11 06:00",
            "2017-03-14 00:00",
            Step.DAY,
            NEW_YORK,
            ["03-11 06:00", "03-12 05:00", "03-13 04:00", "03-14 00:00"],
            id="a day of 23 hours",
        ),
        pytest.param(
            "2017-07-05 00:00",
            "2017-07-12 00:00",
            Step.WEEK,
            UTC,
            ["07-05 00:00", "07-10 00:00", "07-12 00:00"],
            id="weeks begin on Mondays",
        ),
        pytest.param(
            "2017-01-31 00:00",
            "2017-03-02 00:00",
            Step.MONTH,
            UTC,
            ["01-31 00:00", "02-01 00:00", "03-01 00:00", "03-02 00:00"],
            id="months have 28 to 31 days",
        ),
        pytest.param(
            "2016-12-31 00:00",
            "2017-01-02 00:00",
            Step.YEAR,
            UTC,
            ["12-31 00:00", "01-01 00:00", "01-02 00:00"],
            id="years",
        ),
    ],
)
def test_a_range_is_split_by_the_calendar_of_a_zone(start, end, step, zone, expected):
    assert edges(start, end, step, zone) == expected


def test_a_cut_bucket_has_the_label_of_the_whole_bucket():
    cut = buckets(at("2017-07-05 10:30"), at("2017-07-11 00:00"), Step.WEEK, UTC)

    assert cut.labels == ["week of 2017-07-03", "week of 2017-07-10"]
    assert len(cut) == 2


@pytest.mark.parametrize(
    ("days", "step"),
    [(0.1, Step.HOUR), (3, Step.HOUR), (90, Step.DAY), (365, Step.WEEK), (3_000, Step.MONTH)],
)
def test_a_range_has_about_a_hundred_buckets(days, step):
    start = at("2010-01-01")

    assert step_for(start, start + timedelta(days=days)) is step


def test_the_longest_step_fits_any_range():
    assert step_for(at("1970-01-01"), at("2199-01-01")) is Step.YEAR
    assert step_for(at("1970-01-01"), at("2199-01-01"), MAX_BUCKETS) is Step.YEAR


def test_buckets_without_values_have_a_row():
    frame = table([(2, {"n": 4, "median": 1.5})], {"n": int, "median": float}, 3, None)

    assert frame["n"].to_list() == [None, None, 4]
    assert frame["median"].to_list() == [None, None, 1.5]


HOURS = [at(f"2017-07-05 {hour:02}:00") for hour in range(6)]


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        pytest.param({1: {0, 1, 2, 3, 4}}, [], id="no gap"),
        pytest.param({1: {0, 1, 4}}, [(2, 4, Known.NOTHING)], id="gap between reads"),
        pytest.param({1: {0, 4}, 2: {0, 1, 2, 3, 4}}, [(1, 4, Known.PART)], id="one of two"),
        pytest.param({1: {0, 1, 2, 3, 4}, 2: {3, 4}}, [], id="target added later"),
        pytest.param(
            {1: {2, 3}}, [(0, 2, Known.NOTHING), (4, 5, Known.NOTHING)], id="at both ends"
        ),
        pytest.param({}, [(0, 5, Known.NOTHING)], id="no reads"),
    ],
)
def test_gaps_are_between_the_reads_of_a_target_or_without_any_reads(reads, expected):
    gaps = [Gap(HOURS[start], HOURS[end], known) for start, end, known in expected]

    assert missing_reads(reads, HOURS) == gaps
