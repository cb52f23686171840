"""Far beyond the jobs of its size."""

import pytest

from ioportal.analysis.rules import OUTLIER

AT_LIMITS = {
    "metadata_operations": 100_000,
    "metadata_operations_per_node": 25_000,
    "peers": 30,
    "peers_median": 5.0,
    "peers_deviation": 0.5,
}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every limit"),
        pytest.param({"metadata_operations": 99_999}, False, id="little altogether"),
        pytest.param({"peers": 29}, False, id="too few to compare with"),
        pytest.param({"metadata_operations_per_node": 12_000}, False, id="not so far beyond"),
        pytest.param({"peers_deviation": 1.0}, False, id="its like differ much among themselves"),
        pytest.param({"peers_deviation": 0.0}, True, id="its like are all the same"),
        pytest.param({"peers_median": None}, False, id="no peers"),
    ],
)
def test_it_takes_all_limits(found, changed, is_found):
    numbers = found(OUTLIER, **{**AT_LIMITS, **changed})

    assert (numbers is not None) is is_found
