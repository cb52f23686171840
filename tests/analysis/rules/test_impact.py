"""Five minutes of others' waiting within five."""

import pytest

from ioportal.analysis.rules import IMPACT

AT_LIMITS = {"peak_impact_s": 300}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every limit"),
        pytest.param({"peak_impact_s": 299.9}, False, id="less"),
        pytest.param({"peak_impact_s": None}, False, id="what is usual is not known"),
    ],
)
def test_it_takes_all_limits(found, changed, is_found):
    numbers = found(IMPACT, **{**AT_LIMITS, **changed})

    assert (numbers is not None) is is_found
