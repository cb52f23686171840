"""Many operations by many jobs of a group."""

import pytest

from ioportal.rules import CAMPAIGN

AT_THRESHOLDS = {
    "metadata_operations": 20_000_000,
    "jobs": 20,
    "largest_job_operations": 4_000_000,
    "capacity_per_s": 57_870,
}

PART = {"part_operations": 20_000_000, "part_jobs": 20, "part_largest_job_operations": 4_000_000}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"metadata_operations": 19_999_999}, False, id="fewer operations"),
        pytest.param({"jobs": 19}, False, id="few jobs"),
        pytest.param({"capacity_per_s": 57_871}, False, id="little of a larger server"),
        pytest.param(PART, False, id="a part is flagged instead"),
        pytest.param(PART | {"metadata_operations": 40_000_001}, True, id="not by a part alone"),
        pytest.param(PART | {"part_jobs": 19}, True, id="the part has few jobs"),
        pytest.param(
            {"largest_job_operations": 4_000_001},
            False,
            id="mostly one job",
        ),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(CAMPAIGN, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
