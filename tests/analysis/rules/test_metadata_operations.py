"""Two million operations are too many."""

import pytest

from ioportal.analysis.rules import METADATA_OPERATIONS

AT_THRESHOLDS = {"metadata_operations": 2_000_000}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"metadata_operations": 1_999_999}, False, id="one fewer"),
        pytest.param({"metadata_operations": None}, False, id="it is not known"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(METADATA_OPERATIONS, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
