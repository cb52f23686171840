"""A fifth of the load is nobody's."""

import pytest

from ioportal.analysis.rules import UNATTRIBUTED

AT_THRESHOLDS = {"rpcs": 500, "unattributed_rpcs": 100}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"rpcs": 499, "unattributed_rpcs": 499}, False, id="hardly any load"),
        pytest.param({"unattributed_rpcs": 99}, False, id="less"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(UNATTRIBUTED, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
