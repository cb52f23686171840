"""Many nodes open very many files at once, and are quiet then."""

import pytest

from ioportal.analysis.rules import STARTUP_STORM

AT_THRESHOLDS = {
    "startup_operations": 150_000,
    "startup_opens": 57_000,
    "node_count": 300,
    "metadata_operations": 214_285,
}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"startup_operations": 149_999}, False, id="fewer operations"),
        pytest.param({"node_count": 301}, False, id="fewer on each node"),
        pytest.param({"node_count": 15}, False, id="few nodes"),
        pytest.param({"node_count": 16}, True, id="just enough nodes"),
        pytest.param({"startup_opens": 56_999}, False, id="mostly something else than opens"),
        pytest.param({"metadata_operations": 214_287}, False, id="it goes on like that"),
        pytest.param({"metadata_operations": 1_000}, True, id="statistics are older"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(STARTUP_STORM, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
