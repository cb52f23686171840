from datetime import timedelta

import pytest

from tests.web.conftest import NOON
from tests.web.reading import csv_of, words_of


@pytest.fixture
def among(new_job):
    """A job of 2 nodes among others with 1, 2, 3, ... metadata operations."""

    def make(amount, others, **facts):
        for number in range(1, others + 1):
            new_job({"metadata_operations": number}, owner="bob", project="BIO3", **facts)
        return new_job({"metadata_operations": amount})

    return make


def test_a_job_is_ranked_among_similar_jobs(as_alice, among):
    job = among(15, others=20)
    [row] = csv_of(as_alice.get(f"/jobs/{job.pk}/similar-jobs/"))

    assert row["metric"] == "metadata_operations"
    assert row["similar_jobs"] == "20"
    assert float(row["share_below"]) == 0.725  # 14 below, ties by half
    assert float(row["p50"]) == 11  # 10.5, in two digits
    assert "73 %" in words_of(as_alice.get(f"/jobs/{job.pk}/"))


def test_a_rank_needs_ten_similar_jobs(as_alice, among):
    job = among(5, others=9)
    [row] = csv_of(as_alice.get(f"/jobs/{job.pk}/similar-jobs/"))

    assert (row["similar_jobs"], row["share_below"], row["p50"]) == ("9", "", "")
    assert "Only 9 similar jobs. A comparison needs at least 10" in words_of(
        as_alice.get(f"/jobs/{job.pk}/")
    )


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"node_count": 4}, id="larger jobs"),
        pytest.param({"started_at": NOON + timedelta(days=31)}, id="later jobs"),
    ],
)
def test_dissimilar_jobs_are_excluded(as_alice, among, facts):
    job = among(5, others=12, **facts)
    [row] = csv_of(as_alice.get(f"/jobs/{job.pk}/similar-jobs/"))

    assert row["similar_jobs"] == "0"


def test_jobs_with_poor_data_are_excluded(as_alice, new_job):
    for number in range(12):
        new_job({"metadata_operations": number, "quality": "poor"})
    job = new_job({"metadata_operations": 5})
    [row] = csv_of(as_alice.get(f"/jobs/{job.pk}/similar-jobs/"))

    assert row["similar_jobs"] == "0"


def test_similar_jobs_are_anonymous(as_alice, among):
    job = among(15, others=20)
    words = words_of(as_alice.get(f"/jobs/{job.pk}/"))

    assert "bob" not in words
    assert "BIO3" not in words


def test_a_job_without_statistics_has_no_rank(as_alice, new_job):
    job = new_job()

    assert csv_of(as_alice.get(f"/jobs/{job.pk}/similar-jobs/")) == []
