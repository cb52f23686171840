"""Little else than stats, and very many."""

import pytest

from ioportal.analysis.rules import STAT_STORM

AT_LIMITS = {"peak_stats": 200_000, "peak_operations": 333_333, "node_count": 40}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every limit"),
        pytest.param({"peak_stats": 199_999}, False, id="fewer"),
        pytest.param({"node_count": 41}, False, id="fewer on each node"),
        pytest.param({"peak_operations": 333_334}, False, id="much else besides"),
    ],
)
def test_it_takes_all_limits(found, changed, is_found):
    numbers = found(STAT_STORM, **{**AT_LIMITS, **changed})

    assert (numbers is not None) is is_found
