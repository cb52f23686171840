"""Usual values of groups of jobs, and the outliers among several kinds of work."""

import numpy as np
import polars as pl
import pytest

from ioportal.jobs.analysis.usual import by_group, rank
from ioportal.rules import OUTLIER
from ioportal.rules.evidence import JOB_EVIDENCE


@pytest.fixture
def per_node():
    """Operations per node of 700 jobs: 630 with few files, 70 with many."""
    random = np.random.default_rng(7)
    return np.concatenate([random.lognormal(7, 0.5, 630), random.lognormal(11.5, 0.5, 70)])


def usual(values):
    figures = pl.DataFrame({"group": 1, "metadata_operations_per_node": values, "read_bytes": None})
    [row] = by_group(figures, ["group"]).to_dicts()
    return row


def test_usual_values_match_numpy(per_node):
    row = usual(per_node)

    logarithms = np.log1p(per_node)
    assert row["similar_jobs"] == 700
    assert row["usual_operations"] == pytest.approx(np.median(per_node))
    assert row["usual_high"] == pytest.approx(np.quantile(per_node, 0.95))
    assert row["usual_deviation"] == pytest.approx(
        np.median(abs(logarithms - np.log1p(np.median(per_node))))
    )
    assert (row["similar_jobs_with_bytes"], row["usual_read_bytes"]) == (0, None)


@pytest.mark.parametrize(
    ("jobs", "is_known"),
    [
        ([5, 5, 5, 5], True),
        ([5, 5, 5], False),  # without any one owner, two owners are left
        ([100, 4, 4, 1], False),  # without the largest, nine jobs
        ([50, 20, 10, 10], True),
        ([5, 100, 1, 1, 1], False),  # without the second, one has most of the rest
        ([100, 90, 3, 3, 3], False),
    ],
)
def test_usual_values_reveal_no_other_owner(jobs, is_known):
    owners = [owner for owner, number in enumerate(jobs) for _ in range(number)]
    figures = pl.DataFrame({"group": 1, "owner": owners, "read_bytes": 5.0})
    figures = figures.with_columns(metadata_operations_per_node=pl.lit(None, pl.Float64))

    [row] = by_group(figures, ["group"], owner="owner").to_dicts()

    assert row["usual_read_bytes"] == (5 if is_known else None)
    assert row["similar_jobs_with_bytes"] == (sum(jobs) if is_known else 0)
    assert row["usual_operations"] is None


def test_a_second_kind_of_work_is_no_outlier(per_node):
    values = np.append(per_node, 3e6)  # one real outlier
    row = {name: value for name, value in usual(values).items() if name in JOB_EVIDENCE}
    jobs = pl.DataFrame(
        {
            "subject": [str(number) for number in range(values.size)],
            "metadata_operations_per_node": values,
            "metadata_operations": 4 * values,
            **row,
        },
        schema_overrides=JOB_EVIDENCE,
    )

    findings = OUTLIER.check(jobs, OUTLIER.defaults)
    without_percentile = OUTLIER.check(jobs, {**OUTLIER.defaults, "times_high": 0})

    assert findings["subject"].to_list() == [str(per_node.size)]
    assert without_percentile.height > 50


def test_a_rank_counts_only_values_below():
    assert rank(np.array([0.0, 0.0, 5.0, 9.0]), 0.0) == 0
    assert rank(np.array([0.0, 0.0, 5.0, 9.0]), 5.0) == 0.5
