"""Very many operations within ten minutes on each node."""

import pytest

from ioportal.analysis.rules import METADATA_RATE

AT_THRESHOLDS = {"sustained_operations": 180_000, "node_count": 3}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"sustained_operations": 179_999}, False, id="fewer on each node"),
        pytest.param(
            {"sustained_operations": 149_999, "node_count": 1}, False, id="fewer altogether"
        ),
        pytest.param(
            {"sustained_operations": 150_000, "node_count": 1}, True, id="just enough by one node"
        ),
        pytest.param({"node_count": 4}, False, id="a larger job"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(METADATA_RATE, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
