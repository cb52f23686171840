"""Long extra wait of others, caused by a job or many jobs."""

import pytest

from ioportal.rules import IMPACT, IMPACT_OF_MANY_JOBS

AT_THRESHOLDS = {"impact_s": 60, "peak_impact_s": 10, "impact_times": 2}
OF_A_GROUP = {
    "impact_s": 60,
    "peak_impact_s": 40,
    "impact_times": 2,
    "parts_impact_s": 29,
}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"peak_impact_s": 9.9}, False, id="little at once"),
        pytest.param({"impact_s": 59}, False, id="shorter waiting"),
        pytest.param({"impact_times": 1.9}, False, id="smaller multiple of usual"),
        pytest.param({"peak_impact_s": None}, False, id="unknown baseline"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(IMPACT, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="no part has half"),
        pytest.param({"parts_impact_s": None}, True, id="no part has impact"),
        pytest.param({"parts_impact_s": 30}, False, id="a part explains half"),
        pytest.param({"peak_impact_s": 9.9}, False, id="little at once"),
        pytest.param({"impact_s": 59}, False, id="shorter waiting"),
        pytest.param({"impact_times": 1.9}, False, id="smaller multiple of usual"),
        pytest.param({"peak_impact_s": None}, False, id="unknown baseline"),
    ],
)
def test_only_groups_without_a_dominant_part_are_flagged(evaluate, changed, is_flagged):
    numbers = evaluate(IMPACT_OF_MANY_JOBS, **{**OF_A_GROUP, **changed})

    assert (numbers is not None) is is_flagged
