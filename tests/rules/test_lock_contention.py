"""Long lock enqueues, compared with other jobs."""

import pytest

from ioportal.rules import LOCK_CONTENTION

AT_THRESHOLDS = {"peak_locks_s": 90, "lock_share": 0.3, "lock_ratio": 50}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"peak_locks_s": 89}, False, id="shorter time"),
        pytest.param({"lock_share": 0.29}, False, id="mostly other requests"),
        pytest.param({"lock_ratio": 49.9}, False, id="overloaded server"),
        pytest.param({"lock_ratio": None}, False, id="no other jobs"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(LOCK_CONTENTION, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
