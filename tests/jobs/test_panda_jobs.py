"""PanDA jobs and their links to batch jobs, in any order of arrival."""

from dataclasses import replace
from itertools import permutations

import pytest

from ioportal.jobs import panda_jobs
from ioportal.jobs.models import WorkloadJob
from tests.logs import Run, at, panda, panda_job, sacct

pytestmark = pytest.mark.usefixtures("module_site")

PILOT = Run("77", nodes="n[1-2]", node_count=2)
LONG_BEFORE = replace(PILOT, submit="01:00", start="02:00", end="03:00", user="carol")
LATER = replace(PILOT, submit="19:00", start="20:00", end="21:00", user="bob")


@pytest.fixture
def load(logs, ingest):
    """Load a file and return its account."""

    def run(form, name, text, cluster="anvil"):
        return ingest(form, logs(name, text), cluster=cluster)

    return run


@pytest.fixture
def linked():
    """Submit hours of the linked batch jobs by PanDA job."""

    def read():
        links = WorkloadJob.objects.order_by("panda_id", "jobs__array_index")
        hours = {}
        for panda_id, submitted_at in links.values_list("panda_id", "jobs__submitted_at"):
            hours.setdefault(panda_id, [])
            hours[panda_id] += [submitted_at.hour] if submitted_at else []
        return hours

    return read


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_a_panda_job_is_linked_by_batch_id_and_time(load, linked, reconcile, order):
    loads = [
        lambda: load("panda", "w", panda(panda_job(1), panda_job(2), panda_job(3, "99"))),
        lambda: load("sacct", "now", sacct(PILOT)),
        lambda: load("sacct", "before", sacct(LONG_BEFORE)),
        lambda: load("sacct", "later", sacct(LATER)),
    ]
    for number in order:
        loads[number]()

    assert linked() == {1: [11], 2: [11], 3: []}
    assert reconcile()


@pytest.mark.long
@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_records_of_a_panda_job_may_arrive_in_any_order(load, linked, order):
    waiting = panda_job(1, None, None, None, jobstatus="activated", modificationtime=None)
    running = panda_job(1, end=None)
    moved = panda_job(1, "78", modificationtime=at("12:10").isoformat())
    loads = [
        *(
            lambda record=record: load("panda", str(record["jobstatus"]), panda(record))
            for record in (waiting, running, panda_job(1))
        ),
        lambda: load("panda", "moved", panda(moved)),
    ]
    load("sacct", "j", sacct(PILOT, replace(PILOT, batch_id="78", submit="10:00")))

    for number in order:
        loads[number]()

    job = WorkloadJob.objects.get()
    assert (job.state, job.ended_at, job.batch_id) == ("finished", at("12:55"), "77")
    assert linked() == {1: [11]}


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        pytest.param(
            "11:56", "12:30", [11], id="starts shortly before its batch job: clock difference"
        ),
        pytest.param("11:30", "12:30", [11], id="starts while its batch job is pending"),
        pytest.param("11:30", "11:50", [], id="ends before any batch job"),
        pytest.param("13:04", "13:05", [11], id="starts shortly after its batch job"),
        pytest.param("13:06", "13:07", [], id="starts long after its batch job"),
        pytest.param("12:30", "20:30", [11], id="overlaps two jobs with the id: the earlier"),
        pytest.param(None, "12:30", [11], id="not started, failed during its batch job"),
        pytest.param("12:30", None, [11], id="still running"),
    ],
)
def test_the_linked_batch_job_depends_on_time(load, linked, reconcile, start, end, expected):
    load("sacct", "j", sacct(PILOT, LATER))

    load("panda", "w", panda(panda_job(1, "77.sdb", start, end)))

    assert linked() == {1: expected}
    assert reconcile()


def test_links_are_updated_when_the_run_of_a_batch_job_changes(load, linked):
    load("sacct", "pending", sacct(replace(PILOT, start=None, end=None, nodes="")))
    load("panda", "w", panda(panda_job(1)))
    assert linked() == {1: []}

    load("sacct", "running", sacct(PILOT.running()))
    assert linked() == {1: [11]}

    load("sacct", "requeued", sacct(replace(PILOT, start="16:00", end="17:00")))
    assert linked() == {1: []}


def test_an_array_id_without_an_index_links_all_tasks(load, linked, reconcile):
    columns = "JobID|State|Submit|Start|End|NodeList|JobName"
    tasks = [
        f"77_{n}|COMPLETED|2017-07-05T0{n}:00:00|2017-07-05T12:00:00|2017-07-05T13:00:00|n{n}|x"
        for n in (1, 2)
    ]
    load("sacct", "j", "\n".join([columns, *tasks]))

    load("panda", "w", panda(panda_job(1), panda_job(2, "77[2].sdb")))

    assert linked() == {1: [1, 2], 2: [2]}
    assert reconcile()


def test_links_do_not_cross_clusters(load, linked):
    load("sacct", "j", sacct(PILOT))

    load("panda", "w", panda(panda_job(1)), cluster="birch")

    assert linked() == {1: []}


def test_a_repeated_load_changes_nothing(load, linked):
    text = panda(panda_job(1), panda_job(1), {"pandaid": 2})
    first = load("panda", "w", text)
    again = load("panda", "w", text)

    assert first | {"seconds": 0} == again | {"seconds": 0}
    assert (first["lines"], first["accepted"], first["rejected"]) == (4, 2, 1)
    assert linked() == {1: []}


def test_the_number_of_panda_jobs_without_batch_job_is_reported(logs, call):
    path = logs("w", panda(panda_job(1), panda_job(2)))

    output = call("ingest", "panda", path, "--cluster", "anvil")

    assert f"{path}: 2 of its PanDA jobs have no batch job on anvil." in output


def test_long_values_are_truncated(load):
    long = "x" * 2_000
    load("panda", "w", panda(panda_job(1, long, transformation=long, piloterrorcode=long)))

    job = WorkloadJob.objects.get()
    assert (len(job.reported_batch_id), len(job.transformation), len(job.error)) == (240, 255, 255)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ({"pandaid": ["1"]}, ["77"]),
        ({"pandaid": [1, 2]}, ["77", "78"]),
        ({"jeditaskid": ["10995522"]}, ["77", "78"]),
        ({"batchid": ["78.sdb"]}, ["78"]),
        ({"batchid": ["79"]}, ["79"]),
        ({"pandaid": ["9" * 30, "-1", "x", "\u0661"], "jeditaskid": [2**63]}, []),
        ({}, []),
    ],
)
def test_batch_jobs_by_ids_of_panda_jobs(load, ids, expected):
    runs = [replace(PILOT, batch_id=batch_id) for batch_id in ("77", "78", "79")]
    load("sacct", "j", sacct(*runs))
    load("panda", "w", panda(panda_job(1), panda_job(2, "78.sdb")))

    jobs = panda_jobs.batch_jobs(**ids)

    assert sorted(jobs.values_list("batch_id", flat=True)) == expected
