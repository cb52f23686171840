"""Far beyond the jobs of its size."""

import pytest

from ioportal.analysis.rules import OUTLIER

AT_LIMITS = {
    "metadata_operations": 20_000,
    "metadata_operations_per_node": 20_000,
    "peers": 20,
    "peers_median": 6.0,
    "peers_deviation": 0.7,
}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every limit"),
        pytest.param({"metadata_operations": 19_999}, False, id="little altogether"),
        pytest.param({"peers": 19}, False, id="too few to compare with"),
        pytest.param(
            {"metadata_operations_per_node": 10_000}, False, id="not so many times what is usual"
        ),
        pytest.param({"peers_deviation": 0.8}, False, id="its like differ much among themselves"),
        pytest.param({"peers_deviation": 0.0}, True, id="its like are all the same"),
        pytest.param({"peers_median": None}, False, id="no peers"),
    ],
)
def test_it_takes_all_limits(found, changed, is_found):
    numbers = found(OUTLIER, **{**AT_LIMITS, **changed})

    assert (numbers is not None) is is_found
