"""Many RPCs of a host outside jobs, with a large share of the server."""

import pytest

from ioportal.rules import HOST_OUTSIDE_JOBS

AT_THRESHOLDS = {"rpcs": 7_500, "server_share": 0.05, "impact_s": None, "capacity_per_s": 2_500}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"rpcs": 7_499}, False, id="fewer RPCs"),
        pytest.param({"server_share": 0.049}, False, id="small share of the server"),
        pytest.param({"capacity_per_s": 5_000}, False, id="a find on a log-in node"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(HOST_OUTSIDE_JOBS, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
