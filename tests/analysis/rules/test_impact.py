"""Others wait, several times as long as usual, because of a job that has much of the server."""

import pytest

from ioportal.analysis.rules import IMPACT

AT_THRESHOLDS = {"peak_impact_s": 3, "impact_times": 5, "impact_share": 0.3}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"peak_impact_s": 2.9}, False, id="less waiting"),
        pytest.param({"impact_times": 4.9}, False, id="not so much longer"),
        pytest.param({"impact_share": 0.29}, False, id="others have the server"),
        pytest.param({"peak_impact_s": None}, False, id="what is usual is not known"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(IMPACT, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
