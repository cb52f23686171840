"""Short-lived files on each node."""

import pytest

from ioportal.rules import CREATE_UNLINK_CHURN

AT_THRESHOLDS = {
    "count_mknod": 60_000,
    "count_unlink": 70_000,
    "node_count": 120,
    "duration_s": 13_000,
    "capacity_per_s": 5_000,
}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"count_mknod": 59_999}, False, id="fewer creates"),
        pytest.param({"count_unlink": 59_999}, False, id="fewer unlinks"),
        pytest.param({"node_count": 121}, False, id="fewer per node: checkpoint of a large job"),
        pytest.param({"count_unlink": None}, False, id="not counted"),
        pytest.param({"capacity_per_s": 5_001}, False, id="little of a larger server"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(CREATE_UNLINK_CHURN, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
