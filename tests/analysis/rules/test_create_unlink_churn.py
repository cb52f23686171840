"""Short-lived files on each node."""

import pytest

from ioportal.analysis.rules import CREATE_UNLINK_CHURN

AT_THRESHOLDS = {"count_mknod": 60_000, "count_unlink": 70_000, "node_count": 120}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"count_mknod": 59_999}, False, id="fewer made"),
        pytest.param({"count_unlink": 59_999}, False, id="fewer removed"),
        pytest.param(
            {"node_count": 121}, False, id="fewer on each node: a checkpoint of a large job"
        ),
        pytest.param({"count_unlink": None}, False, id="not counted"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(CREATE_UNLINK_CHURN, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
