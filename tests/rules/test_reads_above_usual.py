"""Bytes read, compared with similar jobs."""

from math import isfinite

import pytest

from ioportal.rules import READS_ABOVE_USUAL

AT_THRESHOLDS = {
    "read_bytes": 50e9,
    "similar_jobs_with_bytes": 20,
    "usual_read_bytes": 5e9,
    "usual_read_high": 5e9,
}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param(
            {"read_bytes": 49e9, "usual_read_bytes": 4e9, "usual_read_high": 4e9},
            False,
            id="fewer bytes",
        ),
        pytest.param({"similar_jobs_with_bytes": 19}, False, id="too few similar jobs"),
        pytest.param({"usual_read_bytes": 5.1e9}, False, id="similar jobs read much too"),
        pytest.param({"usual_read_high": 5.1e9}, False, id="some similar jobs read much too"),
        pytest.param({"usual_read_bytes": None}, False, id="no similar jobs"),
        pytest.param({"usual_read_bytes": 0, "usual_read_high": 0}, True, id="usually no reads"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(READS_ABOVE_USUAL, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
    if numbers:
        assert all(isfinite(number) for number in numbers.values())  # JSON has no infinity
