"""Many small reads."""

import pytest

from ioportal.rules import SMALL_READS

AT_THRESHOLDS = {"read_bytes": 16_383 * 500_000, "mean_read_bytes": 16_383}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"read_bytes": 16_383 * 499_999}, False, id="fewer reads"),
        pytest.param(
            {"mean_read_bytes": 16_384, "read_bytes": 16_384 * 500_000}, False, id="larger reads"
        ),
        pytest.param({"mean_read_bytes": None}, False, id="unknown size"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(SMALL_READS, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
