"""Enqueues that nothing explains, where servers do not count failed opens."""

import pytest

from ioportal.analysis.rules import UNEXPLAINED_ENQUEUES

AT_THRESHOLDS = {
    "failures_counted": False,
    "counted_enqueues": 48_000,
    "metadata_operations": 40_000,
    "closes": 10_000,
}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"counted_enqueues": 47_999}, False, id="fewer"),
        pytest.param(
            {"counted_enqueues": 65_000, "metadata_operations": 54_000},
            False,
            id="as many operations",
        ),
        pytest.param(
            {"failures_counted": True}, False, id="servers that count failures: another rule tells"
        ),
        pytest.param({"counted_enqueues": None}, False, id="not traced"),
        pytest.param({"metadata_operations": None}, False, id="not counted"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(UNEXPLAINED_ENQUEUES, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
