"""Many jobs of one user that add up."""

import pytest

from ioportal.analysis.rules import CAMPAIGN

AT_THRESHOLDS = {"metadata_operations": 20_000_000, "jobs": 20, "largest_job_operations": 4_000_000}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"metadata_operations": 19_999_999}, False, id="fewer operations"),
        pytest.param({"jobs": 19}, False, id="few jobs"),
        pytest.param(
            {"largest_job_operations": 4_000_001},
            False,
            id="one job does much of it: another rule tells",
        ),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(CAMPAIGN, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
