"""Rankings of the subjects of jobs, compared with sums by hand."""

import pytest

from ioportal.jobs.models import Job, JobStatistics
from ioportal.jobs.rankings import MEASURES, SUBJECTS, Choice, over_time, ranking
from ioportal.site.models import Cluster
from tests.logs import at, panda, panda_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def jobs():
    """Jobs of 1 hour: owner, nodes, opens."""
    anvil = Cluster.objects.create(name="anvil", time_zone="UTC", batch_system="slurm")
    for number, (owner, nodes, opens) in enumerate(
        (
            ("alice", 2, 600),
            ("alice", 4, 600),
            ("bob", 1, 900),
            ("carol", 1, None),
            ("alice", 8, None),  # in no divisor
            ("bob", 0, 50),  # in no sum of a ratio by nodes
        )
    ):
        job = Job.objects.create(
            cluster=anvil,
            batch_id=str(number),
            owner=owner,
            name=f"relax_{number}",
            node_count=nodes,
            submitted_at=at("11:00"),
            started_at=at("12:00"),
            ended_at=at("13:00"),
        )
        JobStatistics.objects.create(
            job=job, computed_at=at("14:00"), opens=opens, covered_share=1, quality="good"
        )
    return Job.objects.all()


def ranked(jobs, of, by, per=""):
    rows = ranking(jobs, Choice(SUBJECTS[of], MEASURES[by], per))
    return [(row.subject, row.value) for row in rows]


@pytest.mark.parametrize(
    ("of", "per", "expected"),
    [
        ("user", "", [("alice", 1200), ("bob", 950)]),
        ("user", "node_hour", [("bob", 900), ("alice", 200)]),
        ("user", "job", [("alice", 600), ("bob", 475)]),
        ("application", "node", [("bob:relax", 900), ("alice:relax", 200)]),
    ],
)
def test_subjects_are_ranked_by_a_sum(jobs, of, per, expected):
    assert ranked(jobs, of, "opens", per) == expected


def test_jobs_with_unknown_values_are_counted(jobs):
    rows = ranking(jobs, Choice(SUBJECTS["user"], MEASURES["opens"], "node"))

    assert [(row.subject, row.jobs, row.unknown) for row in rows] == [
        ("bob", 2, 1),
        ("alice", 3, 1),
    ]


def test_the_minimum_is_of_node_hours_with_known_values(jobs):
    choice = Choice(SUBJECTS["user"], MEASURES["opens"], "node_hour", min_node_hours=7)

    assert ranking(jobs, choice) == []  # alice: 14 hours, 6 of them known


@pytest.mark.parametrize(("per", "value", "without_jobs"), [("", 1200, 0), ("node", 200, None)])
def test_values_over_time(jobs, per, value, without_jobs):
    choice = Choice(SUBJECTS["user"], MEASURES["opens"], per)
    Job.objects.filter(owner="bob").update(started_at=at("12:59"))

    first, *_, last = over_time(jobs, choice, ["alice"])["alice"]

    assert (first, last) == (value, without_jobs)


def test_jobs_of_several_tasks_count_in_parts(jobs, logs, ingest):
    records = panda(
        *(panda_job(number, "2", jeditaskid=task) for number, task in ((1, 71), (2, 71), (3, 72)))
    )
    ingest("panda", logs("panda.json", records), cluster="anvil")

    assert ranked(jobs, "task", "opens") == [("71", 600), ("72", 300)]
    assert ranked(jobs, "task", "opens", "job") == [("71", 900), ("72", 900)]


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ("user", [("bob", 15), ("alice", 11)]),
        ("task", [("72", 18), ("71", 12)]),
    ],
)
def test_copy_latency_is_the_highest_mean_of_a_job(jobs, logs, ingest, of, expected):
    copies = (
        (1, "0", 71, 10),
        (2, "0", 71, 12),
        (3, "1", 71, 9),
        (4, "2", 71, 12),
        (5, "2", 72, 18),
    )
    records = panda(
        *(
            panda_job(number, batch_id, jeditaskid=task, pilottiming=f"0|{stage_in_s}|600|1|40")
            for number, batch_id, task, stage_in_s in copies
        ),
        panda_job(6, "2", jeditaskid=73),
    )
    ingest("panda", logs("panda.json", records), cluster="anvil")

    assert ranked(jobs, of, "panda_stage_in_s") == expected
