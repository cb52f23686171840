"""More enqueues than operations, on servers that do not count failed opens."""

import pytest

from ioportal.rules import UNEXPLAINED_ENQUEUES

AT_THRESHOLDS = {
    "failures_counted": False,
    "counted_enqueues": 48_000,
    "metadata_operations": 40_000,
    "closes": 10_000,
}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"counted_enqueues": 47_999}, False, id="fewer enqueues"),
        pytest.param(
            {"counted_enqueues": 65_000, "metadata_operations": 54_000},
            False,
            id="similar number of operations",
        ),
        pytest.param({"failures_counted": True}, False, id="failures counted"),
        pytest.param({"counted_enqueues": None}, False, id="not traced"),
        pytest.param({"metadata_operations": None}, False, id="not counted"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(UNEXPLAINED_ENQUEUES, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
