"""Very many operations within five minutes, on few nodes."""

import pytest

from ioportal.analysis.rules import METADATA_RATE

AT_LIMITS = {"peak_operations": 300_000, "node_count": 30}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every limit"),
        pytest.param({"peak_operations": 299_999}, False, id="fewer operations"),
        pytest.param({"node_count": 31}, False, id="fewer on each node"),
        pytest.param({"node_count": 1}, True, id="one node alone"),
    ],
)
def test_it_takes_all_limits(found, changed, is_found):
    numbers = found(METADATA_RATE, **{**AT_LIMITS, **changed})

    assert (numbers is not None) is is_found
