"""Many nodes open very many files at once."""

import pytest

from ioportal.analysis.rules import STARTUP_STORM

AT_LIMITS = {"startup_operations": 200_000, "startup_opens": 60_000, "node_count": 200}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every limit"),
        pytest.param({"startup_operations": 199_999}, False, id="fewer operations"),
        pytest.param({"node_count": 201}, False, id="fewer on each node"),
        pytest.param({"node_count": 15}, False, id="few nodes"),
        pytest.param({"node_count": 16}, True, id="just enough nodes"),
        pytest.param({"startup_opens": 59_999}, False, id="mostly something else than opens"),
    ],
)
def test_it_takes_all_limits(found, changed, is_found):
    numbers = found(STARTUP_STORM, **{**AT_LIMITS, **changed})

    assert (numbers is not None) is is_found
