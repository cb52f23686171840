"""More opens than closes, on servers that count failed opens."""

import pytest

from ioportal.rules import OPEN_CLOSE_IMBALANCE

AT_THRESHOLDS = {
    "failures_counted": True,
    "opens": 33_000,
    "closes": 13_000,
    "open_close_ratio": 2.54,
}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"opens": 32_999}, False, id="fewer opens"),
        pytest.param({"opens": 50_000, "closes": 20_001}, False, id="lower ratio"),
        pytest.param({"closes": 0}, True, id="no closes"),
        pytest.param({"failures_counted": False}, False, id="failures not counted"),
        pytest.param({"failures_counted": None}, False, id="unknown server version"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(OPEN_CLOSE_IMBALANCE, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
