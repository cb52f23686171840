"""A job id is a claim: node and user id prove it or contradict it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ioportal.ingest.attribution.namesakes import ENDED_WITHIN, STARTS_WITHIN
from ioportal.jobs.models import Job, JobStatistics
from ioportal.telemetry.models import Method
from tests.conftest import SITE
from tests.logs import Run, at, job_stats, rpc, sacct

ALICE = Run("77", nodes="n1", user="alice")
MALLORY = Run("78", nodes="n2", user="mallory")
JOB_AND_USER = """
[[filesystem]]
name = "lake"
clusters = ["anvil", "birch"]
job_id_pattern = '(?P<batch_id>[0-9]+):(?P<uid>.+)'
[[user]]
name = "alice"
uid = 1001
[[user]]
name = "mallory"
uid = 1002
"""


@pytest.fixture
def jobs(site, logs, ingest):
    """Load the jobs of alice and mallory."""
    ingest("sacct", logs("s", sacct(ALICE, MALLORY)), cluster="anvil")


@pytest.fixture
def trace(logs, ingest):
    """Load RPCs as (time of day, NID, job id)."""

    def load(*records):
        lines = (rpc(moment, nid, job=job, xid=n) for n, (moment, nid, job) in enumerate(records))
        ingest("rpctrace", logs(f"t{hash(records)}", "\n".join(lines)), server="mds1")

    return load


@pytest.fixture
def methods(queries):
    """Return the RPCs by batch id of the job and method."""

    def read():
        rows = queries(
            "SELECT j.batch_id, w.method, sum(w.count) FROM telemetry_attributedrpc w"
            " JOIN jobs_job j ON j.id = w.job_id GROUP BY 1, 2"
        )
        return {(batch_id, Method(method)): int(count) for batch_id, method, count in rows}

    return read


@pytest.mark.usefixtures("jobs")
def test_an_id_of_another_nodes_job_goes_to_the_job_on_the_node(trace, methods, reconcile):
    trace(("12:10", "1@gni", "77"), ("12:10:01", "2@gni", "77"), ("12:10:02", "2@gni", "77"))

    assert methods() == {("77", Method.JOB_ID_NODE): 1, ("78", Method.CONTRADICTED_ID): 2}
    reconcile()


@pytest.mark.usefixtures("jobs")
def test_an_id_from_a_node_without_a_job_is_contradicted(trace, attribution):
    trace(("12:10", "5@gni", "77"))

    assert attribution() == {("contradicted", "77"): 1}


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(
    ("nid", "principal"),
    [
        ("1@gni", ("job", "anvil 77")),
        ("2@gni", ("contradicted", "77")),
        ("10.9.9.9@tcp", ("pending", "77")),
    ],
    ids=["own node", "another node", "unknown node"],
)
def test_a_job_that_ended_is_named_by_its_own_nodes_only(trace, attribution, nid, principal):
    trace(("13:30", nid, "77"))

    assert attribution() == {principal: 1}


@pytest.mark.usefixtures("jobs")
def test_an_unknown_node_does_not_verify_a_running_job(trace, methods):
    trace(("12:10", "10.9.9.9@tcp", "77"))

    assert methods() == {("77", Method.JOB_ID_ALONE): 1}


def test_a_forwarding_node_does_not_contradict(register, logs, ingest, trace, methods):
    register(SITE.replace('nodes = "n[1-20]"', 'nodes = "n[1-20]"\nforwarding_nodes = "n[19-20]"'))
    ingest("sacct", logs("s", sacct(ALICE)), cluster="anvil")
    trace(("12:10", "20@gni", "77"), ("12:10:01", "18@gni", "77"))

    assert methods() == {("77", Method.JOB_ID_ALONE): 1}


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(
    ("nid", "job_id", "expected"),
    [
        ("10.9.9.9@tcp", "77:1001", {("77", Method.JOB_ID_UID): 1}),
        ("10.9.9.9@tcp", "77:1002", {}),
        ("10.9.9.9@tcp", "77:0", {("77", Method.JOB_ID_ALONE): 1}),
        ("10.9.9.9@tcp", "77:4242", {}),
        ("10.9.9.9@tcp", "77:1001:1002", {}),  # typed: "77:1001"
        ("10.9.9.9@tcp", "77:\u0661\u0660\u0660\u0661", {}),
        ("1@gni", "77:1001", {("77", Method.JOB_ID_NODE): 1}),
        ("1@gni", "77:1002", {}),
        ("1@gni", "77" + 21 * "0" + ":1001002", {("77", Method.NODE_PROCESS): 1}),  # cut off
        ("2@gni", "77:1002", {("78", Method.CONTRADICTED_ID): 1}),
        ("2@gni", "77:1001", {}),
    ],
)
def test_user_ids_are_compared_with_the_owners(register, trace, methods, nid, job_id, expected):
    register(JOB_AND_USER)
    trace(("12:10", nid, job_id))

    assert methods() == expected


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(
    ("job_id", "principal"),
    [
        ("du.1002", ("process", "du.1002")),
        ("78:1002", ("contradicted", "78:1002")),
        ("du.1001", ("job", "anvil 77")),
        ("du.0", ("job", "anvil 77")),
        ("du.4242", ("job", "anvil 77")),  # (not registered)
        (f"{26 * 'd'}.1002", ("job", "anvil 77")),  # cut off
    ],
)
def test_another_users_process_is_not_the_jobs(register, trace, attribution, job_id, principal):
    register(JOB_AND_USER)
    trace(("12:10", "1@gni", job_id))

    assert attribution() == {principal: 1}


@pytest.mark.usefixtures("site")
def test_the_next_job_on_a_node_gets_ids_of_the_previous_one_later(
    logs, ingest, trace, methods, attribution
):
    runs = (ALICE, Run("78", nodes="n1", user="mallory", start="13:00", end="14:00"))
    ingest("sacct", logs("s", sacct(*runs)), cluster="anvil")
    trace(("13:09", "1@gni", "77"), ("13:11", "1@gni", "77"))

    assert methods() == {("78", Method.CONTRADICTED_ID): 1}
    assert attribution() == {("contradicted", "77"): 1, ("job", "anvil 78"): 1}


EARLIER, LATER = {"start": "12:00", "end": "12:30"}, {"start": "12:30:05", "end": "13:00"}


@pytest.mark.parametrize(
    ("run", "neighbour", "clock", "job_id", "expected"),
    [
        (LATER, "mallory", "12:28", "77", ("78", Method.CONTRADICTED_ID)),
        (LATER, "mallory", "12:29:30", "77", ("77", Method.JOB_ID_ALONE)),
        (LATER, "mallory", "12:30:20", "77", ("77", Method.JOB_ID_ALONE)),
        (LATER, "mallory", "12:31", "77", ("77", Method.JOB_ID_NODE)),
        (LATER, "mallory", "12:28", "77:1001", ("77", Method.JOB_ID_NODE)),
        (LATER, "alice", "12:28", "77", ("77", Method.JOB_ID_NODE)),
        (EARLIER, "mallory", "12:30:35", "77", ("77", Method.JOB_ID_ALONE)),
        (EARLIER, "alice", "12:30:35", "77", ("77", Method.JOB_ID_NODE)),
    ],
    ids=[
        "before", "just before", "sent before", "running", "with user id", "same owner",
        "just after", "after same owner",
    ],
)  # fmt: skip
def test_a_node_proves_no_job_while_another_owners_job_holds_it_alone(
    register, logs, ingest, methods, reconcile, run, neighbour, clock, job_id, expected
):
    register(SITE)
    if ":" in job_id:
        register(JOB_AND_USER)
    ingest("sacct", logs("a", sacct(Run("77", nodes="n1", user="alice", **run))), cluster="anvil")
    waited = rpc(clock, "1@gni", job=job_id, us=(30, 25_000_000))
    ingest("rpctrace", logs("t", waited), server="mds1")
    other = Run("78", nodes="n1", user=neighbour, **(EARLIER if run is LATER else LATER))
    ingest("sacct", logs("m", sacct(other)), cluster="anvil")

    assert methods() == {expected: 1}
    reconcile()


@pytest.mark.usefixtures("site")
def test_an_array_id_does_not_name_the_next_task_on_a_node(logs, ingest, trace, methods):
    tasks = (
        Run("90", nodes="n1"),
        Run("90", nodes="n2", submit="11:01", start="13:00:05", end="14:00"),
    )
    for number, task in enumerate((*tasks, MALLORY)):
        ingest("sacct", logs(f"s{number}", sacct(task)), cluster="anvil")
    trace(("12:58", "2@gni", "90"), ("13:01", "2@gni", "90"))

    assert methods() == {("78", Method.CONTRADICTED_ID): 1, ("90", Method.JOB_ID_NODE): 1}


@pytest.mark.parametrize(
    ("own_id", "clock", "job_id", "principal"),
    [
        ("77", "12:39", "", ("host", "1@gni")),
        ("77", "12:39", "x", ("host", "1@gni")),
        ("77", "12:39", "79", ("contradicted", "79")),
        ("77", "12:41", "", None),
        ("77:1001", "12:39", "du.1001", None),
        ("y", "12:39", "", None),
    ],
    ids=["no id", "a name", "id of another job", "later", "with user id", "job without ids"],
)
def test_what_another_job_left_on_a_node_does_not_count_for_a_job_that_sends_its_id(
    register, logs, ingest, trace, attribution, reconcile, own_id, clock, job_id, principal
):
    register(SITE)
    if ":" in own_id:
        register(JOB_AND_USER)
    runs = (Run("77", nodes="n1", user="alice", **LATER), Run("79", nodes="n2"))
    ingest("sacct", logs("a", sacct(*runs)), cluster="anvil")
    trace(("12:45", "1@gni", own_id), (clock, "1@gni", job_id))
    assert attribution() == {("job", "anvil 77"): 2}

    earlier = Run("78", nodes="n1", user="mallory", **EARLIER)
    ingest("sacct", logs("m", sacct(earlier)), cluster="anvil")

    own = {("job", "anvil 77"): 1 if principal else 2}
    assert attribution() == (own | {principal: 1} if principal else own)
    reconcile()


@pytest.mark.parametrize(
    ("user", "start", "job_id", "method"),
    [
        ("alice", "12:00", "77", Method.JOB_ID),
        ("mallory", "12:00", "77", Method.JOB_ID_ALONE),
        ("mallory", "12:10:05", "77", Method.JOB_ID_ALONE),
        ("mallory", "12:11", "77", Method.JOB_ID_NODE),
        ("mallory", "12:00", "77:1001", Method.JOB_ID_NODE),
        ("mallory", "12:00", "77:0", Method.JOB_ID_ALONE),
    ],
    ids=["own node", "shared", "shared for seconds", "shared later", "with user id", "as root"],
)
def test_a_shared_node_verifies_no_job(
    register, logs, ingest, trace, methods, user, start, job_id, method
):
    register(SITE)
    if ":" in job_id:
        register(JOB_AND_USER)
    runs = (ALICE, Run("78", nodes="n1", user=user, start=start))
    ingest("sacct", logs("s", sacct(*runs)), cluster="anvil")
    trace(("12:10:01", "1@gni", job_id), ("12:10:08", "1@gni", job_id))

    assert methods() == {("77", method): 2}


@pytest.mark.usefixtures("site")
def test_an_array_id_names_the_task_on_the_node(logs, ingest, trace, methods):
    tasks = [
        Run("90", nodes="n1"),
        Run("90", nodes="n2", submit="11:01"),
        Run("90", nodes="n3", submit="11:02"),
    ]
    for number, task in enumerate(tasks):
        ingest("sacct", logs(f"s{number}", sacct(task)), cluster="anvil")
    trace(("12:10", "2@gni", "90"), ("12:10:01", "10.9.9.9@tcp", "90"))

    assert methods() == {("90", Method.JOB_ID_NODE): 1}


@pytest.mark.usefixtures("site")
def test_late_accounting_settles_a_claim(logs, ingest, trace, methods, attribution, reconcile):
    trace(("12:10", "1@gni", "77"), ("12:10:01", "2@gni", "77"))
    assert attribution() == {("pending", "77"): 2}

    ingest("sacct", logs("a", sacct(ALICE)), cluster="anvil")
    assert attribution() == {("job", "anvil 77"): 1, ("contradicted", "77"): 1}
    ingest("sacct", logs("m", sacct(MALLORY)), cluster="anvil")

    assert methods() == {("77", Method.JOB_ID_NODE): 1, ("78", Method.CONTRADICTED_ID): 1}
    reconcile()


NEXT = Run("99", nodes="n9", start="12:20:10", end="13:00")


@pytest.mark.parametrize(
    ("nid", "principal"),
    [
        ("2@gni", ("job", "anvil 78")),
        ("5@gni", ("contradicted", "77")),
        ("6@gni", ("pending", "77")),
    ],
    ids=["held by a job", "shared", "held by no job"],
)
@pytest.mark.usefixtures("site")
def test_an_id_of_no_job_is_that_of_the_node_once_records_are_not_late(
    logs, ingest, trace, attribution, nid, principal
):
    holders = (MALLORY, Run("80", nodes="n5"), Run("81", nodes="n5"))
    future = Run("98", nodes="n9", start=timezone.now() + timedelta(days=1))
    records = sacct(*(run.running() for run in (*holders, future)))
    ingest("sacct", logs("m", records), cluster="anvil")
    trace(("12:10", nid, "77"))
    assert attribution() == {("pending", "77"): 1}

    ingest("sacct", logs("n", sacct(NEXT)), cluster="anvil")
    assert attribution() == {principal: 1}

    ingest("sacct", logs("a", sacct(Run("77", nodes="n2,n5,n6"))), cluster="anvil")
    assert attribution() == {("job", "anvil 77"): 1}


@pytest.mark.usefixtures("site")
def test_records_of_ended_jobs_do_not_show_that_a_running_one_has_none(
    logs, ingest, trace, attribution
):
    """Job 77 may share the node with job 78, and end tomorrow."""
    ingest("sacct", logs("m", sacct(MALLORY, NEXT)), cluster="anvil")
    trace(("12:10", "2@gni", "77"))

    assert attribution() == {("pending", "77"): 1}


@pytest.mark.usefixtures("site")
def test_a_job_without_nodes_is_not_that_of_another_jobs_node(logs, ingest, trace, attribution):
    records = sacct(MALLORY.running(), Run("77", nodes=""))
    ingest("sacct", logs("m", records), cluster="anvil")
    trace(("12:10", "2@gni", "77"), ("12:10:01", "5@gni", "77"))

    assert attribution() == {("job", "anvil 78"): 1, ("job", "anvil 77"): 1}


def read(logs, ingest, clock, entries):
    text = job_stats("lake-MDT0000", entries, snapshot=clock)
    ingest("job_stats", logs(f"j{clock}", text), at=at(clock).isoformat())


@pytest.mark.usefixtures("jobs")
def test_counters_after_the_end_of_a_job_are_not_its_own(logs, ingest, opens):
    for clock, count in (("12:50", 5), ("13:00", 7), ("13:05", 8), ("13:10", 6_000)):
        read(logs, ingest, clock, {"77": {"open": count}})

    assert opens() == {("job", "anvil 77"): 8, ("pending", "77"): 5_992}


@pytest.mark.usefixtures("jobs")
def test_counters_with_the_uid_of_another_user_are_contradicted(register, logs, ingest, opens):
    register(JOB_AND_USER)
    for clock, factor in (("12:10", 1), ("12:20", 10)):
        entries = {"77:1001": {"open": factor}, "77:1002": {"open": 1_000 * factor}}
        read(logs, ingest, clock, entries)

    assert opens() == {("job", "anvil 77"): 10, ("contradicted", "77:1002"): 10_000}


@pytest.mark.usefixtures("jobs")
def test_registering_uids_attributes_stored_counters_again(register, logs, ingest, call, opens):
    register(JOB_AND_USER[: JOB_AND_USER.index("[[user]]")])
    read(logs, ingest, "12:10", {"77:1002": {"open": 4}})
    assert opens() == {("job", "anvil 77"): 4}

    register(JOB_AND_USER)
    call("ingest", "sacct", logs("again", sacct(Run("1"))), "--cluster=anvil")

    assert opens() == {("contradicted", "77:1002"): 4}


@pytest.mark.usefixtures("jobs")
def test_contradicted_claims_lower_the_quality_of_both_jobs(logs, ingest, trace, refresh):
    for minute in range(0, 61, 10):
        clock = f"{12 + minute // 60}:{minute % 60:02}"
        read(logs, ingest, clock, {"77": {"open": minute}, "78": {"open": minute}})
    trace(
        *((f"12:10:{second:02}", "1@gni", "77") for second in range(30)),
        *((f"12:11:{second:02}", "2@gni", "77") for second in range(10)),
    )
    refresh()

    figures = {row.job.batch_id: row for row in JobStatistics.objects.select_related("job")}
    assert figures["77"].contradicted_share == 0.25
    assert figures["78"].contradicted_share == 1
    assert {row.quality for row in figures.values()} & {"good"} == set()
    assert Job.objects.filter(quality="good").count() == 0


def test_job_ids_name_jobs_within_the_same_times_in_rpcs_and_counters(db, queries):
    [(source,)] = queries("SELECT pg_get_functiondef('jobs_claimed'::regproc)")

    minutes, hours = STARTS_WITHIN // timedelta(minutes=1), ENDED_WITHIN // timedelta(hours=1)
    assert f"j.started_at < of_end + interval '{minutes} minutes'" in source
    assert f"'infinity') > of_start - interval '{hours} hour'" in source
