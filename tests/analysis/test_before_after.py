"""Periods before and after a change, with awkward neighbours."""

from datetime import UTC, datetime, timedelta

import pytest

from ioportal.analysis.before_after import Event, NoPeriods, periods


def day(number):
    """Return a time; the change is on day 0."""
    return datetime(2017, 8, 19, 8, tzinfo=UTC) + timedelta(days=number)


def event(start, end=None, text="X"):
    return Event(day(start), day(start if end is None else end), text)


YEAR = (-200, 200)
CASES = [
    pytest.param({}, (-28, 0), (0, 28), [], id="nothing near: four weeks"),
    pytest.param({"extent": (-17, 200)}, (-14, 0), (0, 14), [], id="whole weeks"),
    pytest.param({"extent": (-200, 9.6)}, (-9, 0), (0, 9), [], id="whole days"),
    pytest.param({"ends": 5}, (-28, 0), (5, 33), [], id="a roll-out is excluded"),
    pytest.param({"reverted": 6}, (-6, 0), (0, 6), [], id="reverted"),
    pytest.param({"near": [event(-2)]}, (-2, 0), (0, 2), [], id="cut two days before"),
    pytest.param({"near": [event(10)]}, (-10, 0), (0, 10), [], id="cut after"),
    pytest.param({"near": [event(-9, -4)]}, (-4, 0), (0, 4), [], id="cut at the end of a roll-out"),
    pytest.param({"near": [event(12, 20)]}, (-12, 0), (0, 12), [], id="cut where one begins"),
    pytest.param({"near": [event(-60), event(90)]}, (-28, 0), (0, 28), [], id="far neighbours"),
    pytest.param(
        {"near": [event(-1)]},
        (-28, 0),
        (0, 28),
        ["X: in the period before, too close to exclude."],
        id="too close before",
    ),
    pytest.param(
        {"near": [event(1, text="close"), event(8)]},
        (-8, 0),
        (0, 8),
        ["close: in the period after, too close to exclude."],
        id="too close after, and a cut behind it",
    ),
    pytest.param(
        {"near": [event(0)]},
        (-28, 0),
        (0, 28),
        ["X: at the same time. Its effect cannot be separated."],
        id="the same moment",
    ),
    pytest.param(
        {"ends": 5, "near": [event(3)]},
        (-28, 0),
        (5, 33),
        ["X: at the same time. Its effect cannot be separated."],
        id="inside the roll-out",
    ),
    pytest.param(
        {"ends": 5, "near": [event(5)]},
        (-28, 0),
        (5, 33),
        ["X: in the period after, too close to exclude."],
        id="as the roll-out ends",
    ),
    pytest.param(
        {"near": [event(-3, 40)]},
        (-28, 0),
        (0, 28),
        ["X: at the same time. Its effect cannot be separated."],
        id="a longer roll-out around it",
    ),
    pytest.param(
        {"near": [event(-3, 0)]},
        (-28, 0),
        (0, 28),
        ["X: in the period before, too close to exclude."],
        id="a roll-out that ends as it begins",
    ),
    pytest.param(
        {"extent": (-1.5, 200)},
        (-1, 0),
        (0, 1),
        ["The periods are shorter than two days."],
        id="little data",
    ),
]


@pytest.mark.parametrize(("facts", "before", "after", "remarks"), CASES)
def test_periods_are_equal_and_exclude_neighbours(facts, before, after, remarks):
    extent = tuple(map(day, facts.get("extent", YEAR)))
    reverted = day(facts["reverted"]) if "reverted" in facts else None

    result = periods(event(0, facts.get("ends", 0)), extent, facts.get("near", []), reverted)

    assert result.before == tuple(map(day, before))
    assert result.after == tuple(map(day, after))
    assert list(result.remarks) == remarks


@pytest.mark.parametrize(
    ("extent", "reason"), [((0.5, 9), "before it"), ((-9, -1), "after it"), ((-9, 0.9), "after it")]
)
def test_a_change_outside_of_the_data_has_no_periods(extent, reason):
    result = periods(event(0), tuple(map(day, extent)), [])

    assert isinstance(result, NoPeriods)
    assert reason in result.reason
