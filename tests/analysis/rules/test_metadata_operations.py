"""Many metadata operations of a job."""

import pytest

from ioportal.analysis.rules import METADATA_OPERATIONS

AT_THRESHOLDS = {"metadata_operations": 2_000_000}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"metadata_operations": 1_999_999}, False, id="fewer operations"),
        pytest.param({"metadata_operations": None}, False, id="unknown operations"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(METADATA_OPERATIONS, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
