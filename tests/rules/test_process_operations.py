"""Many metadata operations of a user's processes, with a large share, and no trace."""

import pytest

from ioportal.rules import PROCESS_OPERATIONS

AT_THRESHOLDS = {
    "process_operations": 7_500,
    "process_operations_share": 0.05,
    "capacity_per_s": 2_500,
}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"process_operations": 7_499}, False, id="fewer operations"),
        pytest.param({"process_operations_share": 0.049}, False, id="small share"),
        pytest.param({"capacity_per_s": 2_501}, False, id="a larger server"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(PROCESS_OPERATIONS, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
