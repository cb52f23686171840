"""Many operations per node within ten minutes."""

import pytest

from ioportal.rules import METADATA_RATE

AT_THRESHOLDS = {"sustained_operations": 180_000, "node_count": 3, "capacity_per_s": 12_500}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"sustained_operations": 179_999}, False, id="fewer per node"),
        pytest.param(
            {"sustained_operations": 149_999, "node_count": 1}, False, id="fewer in total"
        ),
        pytest.param(
            {"sustained_operations": 150_000, "node_count": 1}, True, id="enough on one node"
        ),
        pytest.param({"capacity_per_s": 15_001}, False, id="a larger server"),
        pytest.param({"node_count": 4}, False, id="a larger job"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(METADATA_RATE, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
