"""Little else than stats, and very many."""

import pytest

from ioportal.analysis.rules import STAT_STORM

AT_THRESHOLDS = {"peak_stats": 240_000, "peak_operations": 400_000}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"peak_stats": 239_999}, False, id="fewer"),
        pytest.param({"peak_operations": 400_001}, False, id="much else besides"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(STAT_STORM, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
