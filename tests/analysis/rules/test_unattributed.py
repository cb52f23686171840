"""A fifth of the load is nobody's."""

import pytest

from ioportal.analysis.rules import UNATTRIBUTED

AT_LIMITS = {"rpcs": 1_000, "unattributed_rpcs": 200}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every limit"),
        pytest.param({"rpcs": 999, "unattributed_rpcs": 999}, False, id="hardly any load"),
        pytest.param({"unattributed_rpcs": 199}, False, id="less"),
    ],
)
def test_it_takes_all_limits(found, changed, is_found):
    numbers = found(UNATTRIBUTED, **{**AT_LIMITS, **changed})

    assert (numbers is not None) is is_found
