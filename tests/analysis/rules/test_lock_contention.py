"""Its enqueues take long, and no others do."""

import pytest

from ioportal.analysis.rules import LOCK_CONTENTION

AT_THRESHOLDS = {"peak_locks_s": 90, "lock_share": 0.3, "lock_ratio": 50}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"peak_locks_s": 89}, False, id="less time"),
        pytest.param({"lock_share": 0.29}, False, id="mostly other requests"),
        pytest.param({"lock_ratio": 49.9}, False, id="everybody waits: the server is overloaded"),
        pytest.param({"lock_ratio": None}, False, id="nobody else was there"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(LOCK_CONTENTION, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
