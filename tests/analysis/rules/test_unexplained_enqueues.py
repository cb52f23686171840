"""Enqueues that nothing explains, where servers do not count failed opens."""

import pytest

from ioportal.analysis.rules import UNEXPLAINED_ENQUEUES

AT_LIMITS = {"failures_counted": False, "peak_unexplained": 30_000}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every limit"),
        pytest.param({"peak_unexplained": 29_999}, False, id="fewer"),
        pytest.param(
            {"failures_counted": True}, False, id="servers that count failures: another rule tells"
        ),
        pytest.param({"peak_unexplained": None}, False, id="counters of the time are not known"),
    ],
)
def test_it_takes_all_limits(found, changed, is_found):
    numbers = found(UNEXPLAINED_ENQUEUES, **{**AT_LIMITS, **changed})

    assert (numbers is not None) is is_found
