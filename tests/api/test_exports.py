"""Export statistics: operations of hosts outside jobs, and of all clients with jobs together."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Event

import pytest
from django.db import connection, transaction

from ioportal.findings import history
from ioportal.findings.models import Flag
from ioportal.jobs.models import JobStatistics
from ioportal.site.models import Nid, Node
from tests import contents
from tests.batches import batch
from tests.loading import evaluate
from tests.logs import Run, at, job_stats, sacct, squeue

pytestmark = pytest.mark.usefixtures("sources")

JOB, HOST, UNATTRIBUTED = 1, 3, 6
VERIFIED = """
[[filesystem]]
name = "lake"
clusters = ["anvil"]
job_id_pattern = '(?P<batch_id>[0-9]+):(?P<uid>[0-9]+)'
[[user]]
name = "alice"
uid = 1001
"""


def poll(sequence, start, end, operations, basis="difference", us=None):
    """Return a batch of the operations by NID."""
    rows = [
        {
            "start": at(start), "end": at(end), "target": "lake-MDT0000", "nid": nid,
            "basis": basis, "metadata_operations": count, "metadata_us": us and us * count,
        }
        for nid, count in operations.items()
    ]  # fmt: skip
    return batch(sequence, "export_deltas", rows, [("lake-MDT0000", start, end)])


@pytest.fixture
def windows(queries, attribute):
    """Return NID, kind, operations and time."""

    def read():
        attribute()
        return queries(
            "SELECT coalesce(i.text, ''), w.kind, w.metadata_operations, w.metadata_us "
            "FROM telemetry_hostwindow w LEFT JOIN site_nid i ON i.id = w.nid_id ORDER BY 2, 1, 3"
        )

    return read


def test_only_hosts_outside_jobs_are_stored_separately(deliver, logs, ingest, windows, reconcile):
    ingest("squeue", logs("q", squeue(Run("77", nodes="n[1-2]", node_count=2))), cluster="anvil")

    status, _ = deliver(
        poll(1, "12:00", "12:01", {"1@gni": 700, "2@gni": 30, "3@gni": 9, "8@nowhere": 4}, us=50),
        "mds1-exports",
    )

    assert status == 202
    assert windows() == [
        ("", JOB, 730, 36_500),
        ("3@gni", HOST, 9, 450),
        ("", UNATTRIBUTED, 4, 200),
    ]
    assert reconcile() == "2 segments reconcile."


def test_a_late_job_takes_its_nodes_from_the_hosts(deliver, logs, ingest, windows, reconcile):
    clocks = ("11:58", "11:59", "12:00", "12:01", "12:02")
    for number, (start, end) in enumerate(pairwise(clocks), start=1):
        deliver(poll(number, start, end, {"1@gni": 10 * number, "3@gni": number}), "mds1-exports")
    ingest("sacct", logs("s", sacct(Run("77", nodes="n1"))), cluster="anvil")

    assert windows() == [
        ("", JOB, 20, None),  # until its start
        ("", JOB, 30, None),
        ("", JOB, 40, None),
        ("1@gni", HOST, 10, None),  # before its start
        ("3@gni", HOST, 1, None),
        ("3@gni", HOST, 2, None),
        ("3@gni", HOST, 3, None),
        ("3@gni", HOST, 4, None),
    ]
    assert reconcile() == "5 segments reconcile."


@pytest.mark.django_db(transaction=True)
def test_a_job_recorded_during_a_delivery_takes_its_nodes(deliver, token, logs, ingest, windows):
    token("mds1-exports")
    stored, recorded = Event(), Event()

    def deliver_slowly():
        try:
            with transaction.atomic():
                deliver(poll(1, "12:00", "12:01", {"1@gni": 10, "3@gni": 9}), "mds1-exports")
                stored.set()
                assert recorded.wait(30)
        finally:
            stored.set()
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        delivery = thread.submit(deliver_slowly)
        stored.wait(30)
        ingest("sacct", logs("s", sacct(Run("77", nodes="n1"))), cluster="anvil")
        recorded.set()
        delivery.result(timeout=30)

    assert windows() == [("", JOB, 10, None), ("3@gni", HOST, 9, None)]


def test_a_repeated_delivery_changes_nothing(deliver):
    deliver(poll(1, "12:00", "12:01", {"3@gni": 9}), "mds1-exports")
    before = contents.everything()

    assert deliver(poll(1, "12:00", "12:01", {"3@gni": 9}), "mds1-exports") == (
        202, {"already": True},
    )  # fmt: skip
    assert contents.everything() == before


def test_a_busy_host_is_flagged_without_a_trace(deliver, logs, ingest):
    ingest("squeue", logs("q", squeue(Run("77", nodes="n1"))), cluster="anvil")
    clocks = [f"12:{minute:02}" for minute in range(6)]
    for number, (start, end) in enumerate(pairwise(clocks), start=1):
        busy = {"1@gni": 50_000, "3@gni": 20_000, "4@gni": 10}
        deliver(poll(number, start, end, busy), "mds1-exports")

    evaluate()

    [flag] = Flag.objects.unresolved()
    nid = Nid.objects.get(text="3@gni")
    assert (flag.rule, flag.subject, flag.value) == ("host-operations", f"{HOST}:{nid.pk}", 100_000)
    assert flag.numbers["operations_share"] == 0.29  # 100,000 / 350,050: others are in it
    curve = history.for_flag(flag)
    assert curve.amounts["amount"].to_list() == [20_000, 40_000, 60_000, 80_000, 100_000]


@pytest.fixture
def graded(deliver, logs, ingest, attribute, refresh):
    """Send counters of job 77 on n1, then what clients sent; return its statistics after each."""

    def run(sent, job_id="77"):
        ingest("sacct", logs("s", sacct(Run("77", nodes="n1", end="12:20"))), cluster="anvil")
        for clock, opens in (("11:59", 0), ("12:09", 30_000), ("12:20", 60_000)):
            text = job_stats("lake-MDT0000", {job_id: {"open": opens}}, snapshot=clock)
            ingest("job_stats", logs(f"counters-{clock}", text), at=at(clock).isoformat())
        yield statistics()
        clocks = ["11:59", *(f"12:{minute:02}" for minute in range(21))]
        for number, (start, end) in enumerate(pairwise(clocks), start=1):
            each = {nid: count / 20 for nid, count in sent.items()}
            deliver(poll(number, start, end, each), "mds1-exports")
        yield statistics()

    def statistics():
        attribute()
        refresh()
        return JobStatistics.objects.get(job__batch_id="77")

    return run


def test_operations_that_a_jobs_nodes_did_not_send_lower_the_quality(graded):
    before, after = graded({"1@gni": 3_000, "3@gni": 57_000})

    assert before.quality == "good"
    assert after.quality == "poor"
    assert after.contradicted_share == pytest.approx(0.95, abs=0.01)
    assert "Counters may include another's operations." in after.quality_reasons[0]


@pytest.mark.parametrize(
    ("sent", "forwarding"),
    [
        pytest.param({"1@gni": 3_000, "3@gni": 57_000}, "n3", id="a forwarding node"),
        pytest.param({"1@gni": 3_000, "8@nowhere": 57_000}, None, id="an unregistered client"),
        pytest.param({"1@gni": 40_000, "3@gni": 20_000}, None, id="within the tolerance"),
    ],
)
def test_clients_that_may_send_for_the_job_contradict_nothing(graded, sent, forwarding):
    Node.objects.filter(name=forwarding).update(forwards=True)
    _, after = graded(sent)
    assert after.quality == "good"


def test_a_job_id_with_a_user_id_needs_no_proof_by_nodes(graded, register):
    register(VERIFIED)
    before, after = graded({"1@gni": 3_000, "3@gni": 57_000}, "77:1001")
    assert (before.quality, after.quality) == ("good", "good")


@pytest.mark.parametrize("is_late", [False, True])
def test_huge_operations_of_a_jobs_nodes_are_capped(deliver, logs, ingest, windows, is_late):
    def record():
        run = Run("77", nodes="n[1-4]", node_count=4)
        ingest("sacct", logs("s", sacct(run)), cluster="anvil")

    if not is_late:
        record()
    nids = [f"{number}@gni" for number in range(1, 5)]
    deliver(poll(1, "12:00", "12:01", dict.fromkeys(nids, 2**62), us=1), "mds1-exports")
    if is_late:
        record()

    assert windows() == [("", JOB, 2**63 - 1, 2**63 - 1)]


def test_an_id_that_is_used_before_its_job_begins_lowers_the_quality(
    deliver, logs, ingest, attribute, refresh
):
    run = Run("77", nodes="n1", start="12:10", end="12:40")
    ingest("sacct", logs("s", sacct(run)), cluster="anvil")
    for clock, opens in (("12:05", 0), ("12:09", 60_000), ("12:25", 60_000), ("12:40", 60_000)):
        text = job_stats("lake-MDT0000", {"77": {"open": opens}}, snapshot=clock)
        ingest("job_stats", logs(f"counters-{clock}", text), at=at(clock).isoformat())
    clocks = [f"12:{minute:02}" for minute in range(4, 42)]
    for number, (start, end) in enumerate(pairwise(clocks), start=1):
        deliver(poll(number, start, end, {"1@gni": 10, "3@gni": 15_000}), "mds1-exports")
    attribute()
    refresh()

    statistics = JobStatistics.objects.get(job__batch_id="77")
    assert statistics.metadata_operations == 60_000
    assert (statistics.quality, statistics.covered_share) == ("poor", 1)


@pytest.mark.parametrize(
    ("start", "grade"),
    [
        pytest.param(None, "poor", id="not on the job's node"),
        pytest.param("12:00", "good", id="on the job's node as well"),
        pytest.param("12:15", "poor", id="on the job's node for a few minutes"),
    ],
)
def test_nodes_of_several_jobs_send_for_jobs_on_shared_nodes_only(
    graded, logs, ingest, start, grade
):
    neighbours = [Run(each, nodes="n3", user="mallory", end="12:20") for each in ("78", "79")]
    if start:
        neighbours.append(Run("80", nodes="n1", user="mallory", start=start, end="12:20"))
    ingest("sacct", logs("neighbours", sacct(*neighbours)), cluster="anvil")

    _, after = graded({"1@gni": 3_000, "3@gni": 57_000})

    assert after.quality == grade


def test_a_poll_that_includes_the_job_before_on_the_node_is_no_contradiction(
    deliver, logs, ingest, attribute, refresh
):
    runs = (
        Run("76", nodes="n1", start="11:30", end="12:00:20"),
        Run("77", nodes="n1", start="12:00:30", end="12:20"),
    )
    ingest("sacct", logs("s", sacct(*runs)), cluster="anvil")
    for clock, opens in (("12:00:25", 0), ("12:10", 60_000), ("12:20", 60_000)):
        text = job_stats("lake-MDT0000", {"77": {"open": opens}}, snapshot=clock)
        ingest("job_stats", logs(f"counters-{clock}", text), at=at(clock).isoformat())
    clocks = [f"12:{minute:02}" for minute in range(21)]
    for number, (start, end) in enumerate(pairwise(clocks), start=1):
        deliver(poll(number, start, end, {"1@gni": 60_000 if number == 1 else 1}), "mds1-exports")
    attribute()
    refresh()

    assert JobStatistics.objects.get(job__batch_id="77").quality == "good"
