"""Far beyond the jobs of its size."""

import polars as pl
import pytest

from ioportal.analysis.rules import OUTLIER
from ioportal.analysis.rules.outlier import at_threshold, score_of

AT_THRESHOLDS = {
    "metadata_operations": 20_000,
    "metadata_operations_per_node": 20_000,
    "peers": 20,
    "peers_median": 6.0,
    "peers_deviation": 1.05,
}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"metadata_operations": 19_999}, False, id="little altogether"),
        pytest.param({"peers": 19}, False, id="too few to compare with"),
        pytest.param(
            {"metadata_operations_per_node": 10_800}, False, id="not so many times what is usual"
        ),
        pytest.param({"peers_deviation": 1.06}, False, id="its like differ much among themselves"),
        pytest.param({"peers_deviation": 0.0}, True, id="its like are all the same"),
        pytest.param({"peers_median": None}, False, id="no peers"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(OUTLIER, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found


def test_what_has_the_score_of_the_limit_is_told_from_a_finding(found):
    numbers = found(OUTLIER, **{**AT_THRESHOLDS, "metadata_operations_per_node": 1e6})
    per_node = pl.Series([at_threshold(numbers, OUTLIER.defaults), 1e6])

    scores = pl.select(score_of(pl.lit(per_node), numbers)).to_series().to_list()

    assert scores == pytest.approx([2.5, numbers["z_score"]])
