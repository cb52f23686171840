"""Many small writes."""

import pytest

from ioportal.rules import SMALL_WRITES

AT_THRESHOLDS = {"write_bytes": 16_383 * 500_000, "mean_write_bytes": 16_383}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"write_bytes": 16_383 * 499_999}, False, id="fewer writes"),
        pytest.param(
            {"mean_write_bytes": 16_384, "write_bytes": 16_384 * 500_000}, False, id="larger writes"
        ),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(SMALL_WRITES, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
