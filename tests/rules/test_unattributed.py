"""A large share of unattributed RPCs."""

import pytest

from ioportal.rules import UNATTRIBUTED

AT_THRESHOLDS = {"rpcs": 500, "unattributed_rpcs": 100}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"rpcs": 499, "unattributed_rpcs": 499}, False, id="little load"),
        pytest.param({"unattributed_rpcs": 99}, False, id="smaller share"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(UNATTRIBUTED, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
