"""Half a million writes of little."""

import pytest

from ioportal.analysis.rules import SMALL_WRITES

AT_THRESHOLDS = {"write_bytes": 16_383 * 500_000, "mean_write_bytes": 16_383}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"write_bytes": 16_383 * 499_999}, False, id="fewer"),
        pytest.param(
            {"mean_write_bytes": 16_384, "write_bytes": 16_384 * 500_000}, False, id="larger ones"
        ),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(SMALL_WRITES, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
