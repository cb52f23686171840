"""Files made and removed on each node."""

import pytest

from ioportal.analysis.rules import CREATE_UNLINK_CHURN

AT_LIMITS = {"peak_churn": 15_000, "node_count": 50}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every limit"),
        pytest.param({"peak_churn": 14_999}, False, id="fewer"),
        pytest.param(
            {"node_count": 51}, False, id="fewer on each node: a checkpoint of a large job"
        ),
    ],
)
def test_it_takes_all_limits(found, changed, is_found):
    numbers = found(CREATE_UNLINK_CHURN, **{**AT_LIMITS, **changed})

    assert (numbers is not None) is is_found
