from datetime import timedelta

import pytest

from tests.web.conftest import NOON
from tests.web.reading import csv_of, words_of


@pytest.fixture
def among(new_job):
    """A job of 2 nodes among others with 1, 2, 3, ... metadata operations."""

    def make(amount, others, owners=("bob", "dave", "erin"), **facts):
        for number in range(1, others + 1):
            owner = owners[number % len(owners)]
            started = {"started_at": NOON - timedelta(days=1)} | facts
            new_job({"metadata_operations": number}, owner=owner, project="BIO3", **started)
        return new_job({"metadata_operations": amount})

    return make


def test_a_job_is_ranked_among_similar_jobs(as_alice, among):
    job = among(15, others=20)
    [row] = csv_of(as_alice.get(f"/jobs/{job.pk}/similar-jobs/"))

    assert row["metric"] == "metadata_operations"
    assert row["similar_jobs"] == "20"
    assert float(row["share_below"]) == 0.7  # 14 of 20: the equal one is not below
    assert float(row["p50"]) == 11  # 10.5, in two digits
    assert "70 %" in words_of(as_alice.get(f"/jobs/{job.pk}/"))


@pytest.mark.parametrize(
    ("others", "owners", "is_ranked"),
    [
        pytest.param(10, ("bob", "dave", "erin"), True, id="enough"),
        pytest.param(9, ("bob", "dave", "erin"), False, id="few jobs"),
        pytest.param(20, ("bob", "dave"), False, id="few owners"),
        pytest.param(20, (*["bob"] * 18, "dave", "erin"), False, id="one dominates"),
    ],
)
def test_a_rank_reveals_no_owner_of_similar_jobs(as_alice, among, others, owners, is_ranked):
    job = among(5, others, owners)
    [row] = csv_of(as_alice.get(f"/jobs/{job.pk}/similar-jobs/"))

    assert row["similar_jobs"] == f"{round(others, -1)}"
    assert bool(row["share_below"]) == bool(row["p50"]) == is_ranked
    words = words_of(as_alice.get(f"/jobs/{job.pk}/"))
    assert ("Too few similar jobs. A comparison needs at least 10" in words) == (not is_ranked)


def test_staff_and_owners_of_all_similar_jobs_see_exact_figures(client, among, sam, alice):
    job = among(5, others=12, owners=["bob"])
    own = among(5, others=12, owners=["alice"], node_count=4)
    own.node_count = 4
    own.save()

    for person, pk in ((sam, job.pk), (alice, own.pk)):
        client.force_login(person)
        [row] = csv_of(client.get(f"/jobs/{pk}/similar-jobs/"))
        assert row["similar_jobs"] == "12"
        assert float(row["p90"]) == 10.9


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"node_count": 4}, id="larger jobs"),
        pytest.param({"started_at": NOON + timedelta(days=31)}, id="later jobs"),
        pytest.param({"started_at": NOON - timedelta(minutes=1)}, id="jobs of the same day"),
    ],
)
def test_dissimilar_jobs_are_excluded(as_alice, among, facts):
    job = among(5, others=12, **facts)
    [row] = csv_of(as_alice.get(f"/jobs/{job.pk}/similar-jobs/"))

    assert row["similar_jobs"] == "0"


@pytest.mark.parametrize(
    ("severity", "similar"),
    [pytest.param(1, "12", id="notices"), pytest.param(2, "0", id="warnings")],
)
def test_storms_do_not_make_storms_usual(as_alice, new_job, new_flag, severity, similar):
    for number in range(12):
        before = NOON - timedelta(days=1)
        storm = new_job({"metadata_operations": 10_000_000 + number}, started_at=before)
        new_flag(storm, severity=severity)
    job = new_job({"metadata_operations": 5})
    [row] = csv_of(as_alice.get(f"/jobs/{job.pk}/similar-jobs/"))

    assert row["similar_jobs"] == similar


def test_jobs_with_poor_data_are_excluded(as_alice, new_job):
    for number in range(12):
        poor = {"metadata_operations": number, "quality": "poor"}
        new_job(poor, started_at=NOON - timedelta(days=1))
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
