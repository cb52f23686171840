"""Many requests, and a notable part of all, from outside any job."""

import pytest

from ioportal.analysis.rules import HOST_OUTSIDE_JOBS

AT_THRESHOLDS = {"rpcs": 7_500, "server_share": 0.05, "impact_s": None}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"rpcs": 7_499}, False, id="fewer"),
        pytest.param({"server_share": 0.049}, False, id="others do far more"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(HOST_OUTSIDE_JOBS, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
