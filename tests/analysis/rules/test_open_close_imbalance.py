"""Opens beyond closes, where servers count those that fail."""

import pytest

from ioportal.analysis.rules import OPEN_CLOSE_IMBALANCE

AT_THRESHOLDS = {
    "failures_counted": True,
    "opens": 33_000,
    "closes": 13_000,
    "open_close_ratio": 2.54,
}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"opens": 32_999}, False, id="fewer failed"),
        pytest.param({"opens": 50_000, "closes": 20_001}, False, id="most are closed"),
        pytest.param({"closes": 0}, True, id="none is closed"),
        pytest.param({"failures_counted": False}, False, id="servers that count successes only"),
        pytest.param({"failures_counted": None}, False, id="versions that are not known"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(OPEN_CLOSE_IMBALANCE, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
