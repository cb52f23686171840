"""Periods before and after a change, with awkward neighbours."""

from datetime import UTC, datetime, timedelta

import pytest

from ioportal.changes.analysis.periods import Event, NoPeriods, periods


def day(number):
    """Return a time; the change is on day 0."""
    return datetime(2017, 8, 19, 8, tzinfo=UTC) + timedelta(days=number)


def event(start, end=None, text="far"):
    return Event(day(start), day(start if end is None else end), text)


YEAR = (-200, 200)
CASES = [
    pytest.param({}, (-28, 0), (0, 28), id="nothing near: four weeks"),
    pytest.param({"extent": (-17, 200)}, (-14, 0), (0, 14), id="whole weeks"),
    pytest.param({"extent": (-200, 9.6)}, (-9, 0), (0, 9), id="whole days"),
    pytest.param({"extent": (-1.5, 200)}, (-1, 0), (0, 1), id="little data"),
    pytest.param({"ends": 5}, (-28, 0), (5, 33), id="a roll-out is excluded"),
    pytest.param({"reverted": 6}, (-6, 0), (0, 6), id="reverted"),
    pytest.param({"near": [event(-5)]}, (-5, 0), (0, 5), id="cut five days before"),
    pytest.param({"near": [event(10)]}, (-10, 0), (0, 10), id="cut after"),
    pytest.param({"near": [event(-20, -6)]}, (-6, 0), (0, 6), id="cut at the end of a roll-out"),
    pytest.param({"near": [event(12, 20)]}, (-12, 0), (0, 12), id="cut where one begins"),
    pytest.param({"near": [event(-60), event(90)]}, (-28, 0), (0, 28), id="far neighbours"),
    pytest.param({"near": [event(-1, text="X")]}, (-29, -1), (0, 28), "X", id="too close before"),
    pytest.param({"near": [event(4.9, text="X")]}, (-28, 0), (4.9, 32.9), "X", id="close after"),
    pytest.param(
        {"near": [event(2, text="X"), event(12)]}, (-10, 0), (2, 12), "X", id="close, then a cut"
    ),
    pytest.param(
        {"near": [event(7, text="Y"), event(4, text="X")]}, (-28, 0), (7, 35), "XY", id="a chain"
    ),
    pytest.param({"near": [event(0, text="X")]}, (-28, 0), (0, 28), "X", id="the same moment"),
    pytest.param(
        {"ends": 5, "near": [event(3, text="X")]}, (-28, 0), (5, 33), "X", id="inside the roll-out"
    ),
    pytest.param(
        {"near": [event(-3, 40, "X")]}, (-31, -3), (40, 68), "X", id="a roll-out around it"
    ),
    pytest.param(
        {"near": [event(-3, 0, "X")]}, (-31, -3), (0, 28), "X", id="a roll-out that ends with it"
    ),
]


@pytest.mark.parametrize(
    ("facts", "before", "after", "together"),
    [pytest.param(*(*case.values, "")[:4], id=case.id) for case in CASES],
)
def test_periods_are_equal_and_exclude_neighbours(facts, before, after, together):
    extent = tuple(map(day, facts.get("extent", YEAR)))
    reverted = day(facts["reverted"]) if "reverted" in facts else None

    result = periods(event(0, facts.get("ends", 0)), extent, facts.get("near", []), reverted)

    assert result.before == tuple(map(day, before))
    assert result.after == tuple(map(day, after))
    assert "".join(each.text for each in result.together) == together


@pytest.mark.parametrize(
    ("extent", "reason"), [((0.5, 9), "before it"), ((-9, -1), "after it"), ((-9, 0.9), "after it")]
)
def test_a_change_outside_of_the_data_has_no_periods(extent, reason):
    result = periods(event(0), tuple(map(day, extent)), [])

    assert isinstance(result, NoPeriods)
    assert reason in result.reason
