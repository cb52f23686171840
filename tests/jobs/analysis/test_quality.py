"""Grades of data quality."""

import pytest

from ioportal.jobs.analysis import quality
from ioportal.jobs.analysis.quality import Grade


@pytest.mark.parametrize(
    ("covered", "ambiguous", "contradicted", "resets", "grade"),
    [
        pytest.param(1.0, 0.0, 0.0, 0, Grade.GOOD, id="complete"),
        pytest.param(0.95, 0.05, 0.0, 0, Grade.GOOD, id="just good"),
        pytest.param(0.9499, 0.0, 0.0, 0, Grade.PARTIAL, id="not always observed"),
        pytest.param(1.0, 0.0501, 0.0, 0, Grade.PARTIAL, id="shared"),
        pytest.param(1.0, 0.02, 0.04, 0, Grade.PARTIAL, id="partly contradicted"),
        pytest.param(1.0, 0.1, 0.2, 0, Grade.POOR, id="contradicted"),
        pytest.param(1.0, 0.0, 0.0, 1, Grade.PARTIAL, id="reset"),
        pytest.param(0.5, 0.25, 0.0, 3, Grade.PARTIAL, id="just partial"),
        pytest.param(0.4999, 0.0, 0.0, 0, Grade.POOR, id="rarely observed"),
        pytest.param(1.0, 0.2501, 0.0, 0, Grade.POOR, id="ambiguous"),
        pytest.param(0.0, 1.0, 0.0, 0, Grade.POOR, id="never observed"),
    ],
)
def test_grades(covered, ambiguous, contradicted, resets, grade):
    result = quality.grade(covered, ambiguous, contradicted, resets)

    assert result.grade is grade
    assert bool(result.reasons) == (grade is not Grade.GOOD)


def test_all_reasons_are_listed():
    assert quality.grade(0.499, 0.251, 0.101, 2).reasons == (
        "The metadata targets' counters were observed in 49 % of its run.",
        "26 % of its operations may be another job's.",
        (
            "11 % of the operations with its job id or from its nodes are contradicted: the node "
            "or user is not that of the job id. Counters may include another's operations."
        ),
        "Counters were cleared or restarted 2 times: operations may be missing.",
    )


def test_the_reason_distinguishes_never_from_rarely_observed():
    assert quality.grade(0.0, 0.0, 0.0, 0).reasons == (
        (
            "The metadata targets' counters were never observed while it ran: "
            "operations are known from reads far apart, if at all."
        ),
    )
    assert "in 0 % of its run" in quality.grade(0.001, 0.0, 0.0, 0).reasons[0]
