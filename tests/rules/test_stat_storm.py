"""Many operations, mostly stats."""

import pytest

from ioportal.rules import STAT_STORM

AT_THRESHOLDS = {"peak_stats": 240_000, "peak_operations": 400_000, "capacity_per_s": 20_000}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"peak_stats": 239_999}, False, id="fewer stats"),
        pytest.param({"capacity_per_s": 20_001}, False, id="a larger server"),
        pytest.param({"peak_operations": 400_001}, False, id="many other operations"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(STAT_STORM, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
