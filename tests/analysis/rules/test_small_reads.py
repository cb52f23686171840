"""Half a million reads of little."""

import pytest

from ioportal.analysis.rules import SMALL_READS

AT_THRESHOLDS = {"read_bytes": 16_383 * 500_000, "mean_read_bytes": 16_383}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"read_bytes": 16_383 * 499_999}, False, id="fewer"),
        pytest.param(
            {"mean_read_bytes": 16_384, "read_bytes": 16_384 * 500_000}, False, id="larger ones"
        ),
        pytest.param({"mean_read_bytes": None}, False, id="their size is not known"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(SMALL_READS, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
