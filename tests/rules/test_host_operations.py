"""Many metadata operations of a host outside jobs, with a large share, and no trace."""

import pytest

from ioportal.rules import HOST_OPERATIONS

AT_THRESHOLDS = {
    "rpcs": None,
    "operations": 7_500,
    "operations_share": 0.05,
    "capacity_per_s": 2_500,
}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"operations": 7_499}, False, id="fewer operations"),
        pytest.param({"operations_share": 0.049}, False, id="small share of all clients"),
        pytest.param({"capacity_per_s": 2_501}, False, id="a larger server"),
        pytest.param({"rpcs": 90_000}, False, id="a trace shows the same host"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(HOST_OPERATIONS, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
