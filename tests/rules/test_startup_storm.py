"""Many opens on many nodes at the start of a job."""

import pytest

from ioportal.rules import STARTUP_STORM

AT_THRESHOLDS = {
    "startup_operations": 150_000,
    "startup_opens": 57_000,
    "node_count": 300,
    "metadata_operations": 214_285,
    "capacity_per_s": 25_000,
}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"startup_operations": 149_999}, False, id="fewer operations"),
        pytest.param({"node_count": 301}, False, id="fewer per node"),
        pytest.param({"node_count": 15}, False, id="too few nodes"),
        pytest.param({"node_count": 16}, True, id="enough nodes"),
        pytest.param({"startup_opens": 56_999}, False, id="mostly other operations"),
        pytest.param({"metadata_operations": 214_287}, False, id="constant rate"),
        pytest.param({"capacity_per_s": 25_001}, False, id="a larger server"),
        pytest.param({"metadata_operations": 1_000}, True, id="older statistics"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(STARTUP_STORM, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
