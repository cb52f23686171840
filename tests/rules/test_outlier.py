"""Metadata operations per node, compared with similar jobs."""

from math import expm1

import polars as pl
import pytest

from ioportal.rules import OUTLIER
from ioportal.rules.outlier import at_threshold, score_at

AT_THRESHOLDS = {
    "metadata_operations": 100_000,
    "metadata_operations_per_node": 20_000,
    "similar_jobs": 20,
    "usual_operations": expm1(6.0),
    "usual_high": 4_000,
    "usual_deviation": 1.05,
}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"metadata_operations": 99_999}, False, id="few operations in total"),
        pytest.param({"similar_jobs": 19}, False, id="too few similar jobs"),
        pytest.param({"metadata_operations_per_node": 10_800}, False, id="not far above usual"),
        pytest.param({"usual_deviation": 1.06}, False, id="similar jobs differ widely"),
        pytest.param({"usual_deviation": 0.0}, True, id="similar jobs are all equal"),
        pytest.param({"usual_high": 4_001}, False, id="a less frequent kind of work"),
        pytest.param({"usual_operations": None}, False, id="no similar jobs"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(OUTLIER, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged


def test_the_threshold_value_has_the_threshold_score(evaluate):
    numbers = evaluate(OUTLIER, **{**AT_THRESHOLDS, "metadata_operations_per_node": 1e6})
    per_node = pl.Series([at_threshold(numbers, OUTLIER.defaults), 1e6])

    scores = pl.select(score_at(pl.lit(per_node), numbers)).to_series().to_list()

    assert scores == pytest.approx([2.5, numbers["z_score"]])
