"""Long extra waiting of others, caused by many jobs of a group."""

import pytest

from ioportal.analysis.rules import IMPACT_OF_MANY_JOBS

AT_THRESHOLDS = {
    "peak_impact_s": 8,
    "impact_times": 5,
    "impact_share": 0.3,
    "part_impact_s": 3.9,
    "part_impact_share": 0.3,
}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="no part has half"),
        pytest.param({"part_impact_s": None}, True, id="no part has impact"),
        pytest.param({"part_impact_s": 4}, False, id="a part is flagged instead"),
        pytest.param(
            {"part_impact_s": 8, "part_impact_share": 0.05}, True, id="many parts of equal size"
        ),
        pytest.param({"peak_impact_s": 5, "part_impact_s": 2.9}, True, id="the part has little"),
        pytest.param({"peak_impact_s": 2.9}, False, id="shorter waiting"),
        pytest.param({"impact_times": 4.9}, False, id="smaller multiple of usual"),
        pytest.param({"impact_share": 0.29}, False, id="small share of the server"),
        pytest.param({"peak_impact_s": None}, False, id="unknown baseline"),
    ],
)
def test_only_groups_without_a_dominant_part_are_flagged(evaluate, changed, is_flagged):
    numbers = evaluate(IMPACT_OF_MANY_JOBS, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
