"""Long extra waiting of other users, caused by a job with a large share of a server."""

import pytest

from ioportal.analysis.rules import IMPACT

AT_THRESHOLDS = {"peak_impact_s": 3, "impact_times": 5, "impact_share": 0.3}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"peak_impact_s": 2.9}, False, id="shorter waiting"),
        pytest.param({"impact_times": 4.9}, False, id="smaller multiple of usual"),
        pytest.param({"impact_share": 0.29}, False, id="small share of the server"),
        pytest.param({"peak_impact_s": None}, False, id="unknown baseline"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(IMPACT, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
