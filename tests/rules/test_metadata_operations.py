"""Many metadata operations of a job."""

import pytest

from ioportal.rules import METADATA_OPERATIONS

AT_THRESHOLDS = {
    "metadata_operations": 2_000_000,
    "metadata_operations_per_node": 27_777.8,  # on 72 nodes
    "duration_s": 100_000,
    "capacity_per_s": 5_000,
}
WEEK_S = 7 * 86_400


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"metadata_operations": 1_999_999}, False, id="fewer operations"),
        pytest.param({"metadata_operations": None}, False, id="unknown operations"),
        pytest.param({"metadata_operations_per_node": 27_777.7}, False, id="fewer per node-hour"),
        pytest.param({"capacity_per_s": 5_001}, False, id="a larger server"),
        pytest.param(
            {"metadata_operations_per_node": 440, "duration_s": 7_200}, False, id="5,000 nodes"
        ),
        pytest.param(
            {"metadata_operations_per_node": 2e6, "duration_s": WEEK_S}, False, id="a week at 3/s"
        ),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(METADATA_OPERATIONS, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
