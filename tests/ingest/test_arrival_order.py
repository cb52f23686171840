"""Attribution does not depend on the order in which jobs and operations arrive."""

from itertools import permutations

import pytest

from tests.logs import Run, job_stats, pbs, rpc, sacct, squeue

pytestmark = pytest.mark.usefixtures("everything_reconciles")

UNREGISTERED = "10.9.9.9@tcp"  # its node is unknown, so it contradicts no job id


def test_pending_windows_are_attributed_when_the_job_record_arrives(load, attribution):
    load(
        "rpctrace",
        "t",
        rpc("12:10", "1@gni") + "\n" + rpc("12:11", "1@gni", job="77"),
        server="mds1",
    )
    assert attribution() == {("host", "1@gni"): 1, ("pending", "77"): 1}

    load("sacct", "j", sacct(Run("77", nodes="n1")), cluster="anvil")

    assert attribution() == {("job", "anvil 77"): 2}


def test_windows_are_attributed_when_the_job_record_is_stored_already(load, attribution):
    load("sacct", "j", sacct(Run("77", nodes="n1")), cluster="anvil")

    load(
        "rpctrace",
        "t",
        rpc("12:10", "1@gni") + "\n" + rpc("12:11", "1@gni", job="77"),
        server="mds1",
    )

    assert attribution() == {("job", "anvil 77"): 2}


def test_rpcs_after_the_end_of_a_job_are_reattributed_when_the_end_is_reported(load, attribution):
    trace = "\n".join([rpc("12:10", "1@gni"), rpc("13:10", "1@gni")])
    load("sacct", "before", sacct(Run("77", nodes="n1").running()), cluster="anvil")
    load("rpctrace", "t", trace, server="mds1")
    assert attribution() == {("job", "anvil 77"): 2}

    load("sacct", "after", sacct(Run("77", nodes="n1", end="13:00")), cluster="anvil")

    assert attribution() == {("job", "anvil 77"): 1, ("host", "1@gni"): 1}


def test_accounting_takes_precedence_over_the_queue(load, attribution):
    run = Run("77", nodes="n1", end="13:00")
    ended, runs = sacct(run), squeue(run.running())
    trace = "\n".join([rpc("12:10", "1@gni"), rpc("13:10", "1@gni")])
    load("rpctrace", "t", trace, server="mds1")

    load("squeue", "q", runs, cluster="anvil")
    assert attribution() == {("job", "anvil 77"): 2}

    load("sacct", "j", ended, cluster="anvil")
    load("squeue", "q2", runs + "\n", cluster="anvil")  # a late listing has no effect
    assert attribution() == {("job", "anvil 77"): 1, ("host", "1@gni"): 1}


def test_an_older_record_does_not_replace_a_newer_record(load, attribution):
    load("sacct", "after", sacct(Run("77", nodes="n1", end="13:00")), cluster="anvil")
    load("rpctrace", "t", rpc("13:10", "1@gni"), server="mds1")

    load("sacct", "before", sacct(Run("77", nodes="n1").running()), cluster="anvil")

    assert attribution() == {("host", "1@gni"): 1}


def test_rpcs_of_released_nodes_are_reattributed(load, attribution):
    trace = "\n".join([rpc("12:10", "1@gni"), rpc("12:10", "2@gni"), rpc("12:10", "3@gni")])
    load(
        "sacct", "before", sacct(Run("77", nodes="n[1-2]", node_count=2).running()), cluster="anvil"
    )
    load("rpctrace", "t", trace, server="mds1")
    assert attribution() == {("job", "anvil 77"): 2, ("host", "3@gni"): 1}

    load("sacct", "after", sacct(Run("77", nodes="n[2-3]", node_count=2)), cluster="anvil")

    assert attribution() == {("job", "anvil 77"): 2, ("host", "1@gni"): 1}


def test_rpcs_of_a_node_shared_by_two_jobs_are_ambiguous(load, attribution):
    load("rpctrace", "t", rpc("12:10", "1@gni"), server="mds1")
    load("sacct", "first", sacct(Run("77", nodes="n1")), cluster="anvil")
    assert attribution() == {("job", "anvil 77"): 1}

    load("sacct", "second", sacct(Run("78", nodes="n1")), cluster="anvil")

    assert attribution() == {("ambiguous", "1@gni"): 1}


def test_rpcs_with_a_job_id_are_unaffected_by_other_jobs_on_the_node(load, attribution):
    trace = "\n".join(
        [rpc("12:10", "1@gni", job="77"), rpc("12:10", "1@gni", job="78"), rpc("12:10", "1@gni")]
    )
    load("rpctrace", "t", trace, server="mds1")
    load("sacct", "before", sacct(Run("77").running(), Run("78").running()), cluster="anvil")
    expected = {("job", "anvil 77"): 1, ("job", "anvil 78"): 1, ("ambiguous", "1@gni"): 1}
    assert attribution() == expected

    load("sacct", "after", sacct(Run("77", end="13:30")), cluster="anvil")

    assert attribution() == expected


def test_windows_are_attributed_to_consecutive_jobs_by_time(load, attribution):
    trace = "\n".join(
        [rpc("12:59:58", "1@gni"), rpc("13:00:02", "1@gni"), rpc("13:00:12", "1@gni")]
    )
    load("rpctrace", "t", trace, server="mds1")

    load(
        "sacct",
        "j",
        sacct(Run("77", end="13:00:00"), Run("78", start="13:00:00", end="14:00:00")),
        cluster="anvil",
    )

    # Windows are ten seconds wide, so a window ends at 13:00:00.
    assert attribution() == {("job", "anvil 77"): 1, ("job", "anvil 78"): 2}


def test_a_window_with_records_before_and_after_a_jobs_end_is_ambiguous(load, attribution):
    trace = "\n".join([rpc("12:59:51", "1@gni"), rpc("12:59:59", "1@gni")])
    load("rpctrace", "t", trace, server="mds1")

    load("sacct", "j", sacct(Run("77", end="12:59:55")), cluster="anvil")

    assert attribution() == {("ambiguous", "1@gni"): 2}


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        pytest.param("11:59:59.999999", "host", id="just before the job"),
        pytest.param("12:00:00", "job", id="at its start"),
        pytest.param("12:59:59.999999", "job", id="in its last microsecond"),
        pytest.param("13:00:00", "host", id="at its end"),
    ],
)
@pytest.mark.parametrize("job_first", [True, False])
def test_a_run_includes_its_start_and_excludes_its_end(
    load, attribution, moment, expected, job_first
):
    loads = [
        lambda: load("sacct", "j", sacct(Run("77")), cluster="anvil"),
        lambda: load("rpctrace", "t", rpc(moment, "1@gni"), server="mds1"),
    ]
    for load_file in loads if job_first else reversed(loads):
        load_file()

    assert [kind for kind, _ in attribution()] == [expected]


def test_process_names_are_attributed_to_the_only_job_on_their_node(load, attribution, queries):
    load("sacct", "j", sacct(Run("77", nodes="n1")), cluster="anvil")

    load(
        "rpctrace",
        "t",
        rpc("12:10", "1@gni", job="cp.0") + "\n" + rpc("12:10", "2@gni", job="cp.0"),
        server="mds1",
    )

    assert attribution() == {("job", "anvil 77"): 1, ("process", "cp.0"): 1}
    assert queries("SELECT DISTINCT method FROM telemetry_attributedrpc WHERE job_id <> 0") == [
        (3,)
    ]


def test_a_process_on_a_shared_node_is_not_attributed_to_a_job(load, attribution):
    load("sacct", "j", sacct(Run("77"), Run("78")), cluster="anvil")

    load("rpctrace", "t", rpc("12:10", "1@gni", job="cp.0"), server="mds1")

    assert attribution() == {("process", "cp.0"): 1}


def test_rpcs_of_a_job_id_used_by_two_clusters_are_ambiguous(load, attribution, opens):
    load("rpctrace", "t", rpc("12:10", UNREGISTERED, job="77"), server="mds1")
    for clock, amount in (("12:00", 0), ("12:20", 5)):
        read = job_stats("lake-MDT0000", {"77": {"open": amount}}, snapshot=clock)
        load("job_stats", clock, read, at=f"2017-07-05T{clock}:00Z")
    assert attribution() == {("pending", "77"): 1}
    assert opens() == {("pending", "77"): 5}

    load("sacct", "anvil", sacct(Run("77")), cluster="anvil")
    assert attribution() == {("job", "anvil 77"): 1}
    assert opens() == {("job", "anvil 77"): 5}

    load("pbs", "birch", pbs(("E", Run("77", nodes="b1"))), cluster="birch")
    assert attribution() == {("ambiguous", "77"): 1}
    assert opens() == {("ambiguous", "77"): 5}


def test_a_job_id_on_a_filesystem_of_one_cluster_is_unambiguous(load, attribution):
    load("sacct", "anvil", sacct(Run("77")), cluster="anvil")
    load("pbs", "birch", pbs(("E", Run("77", nodes="b1"))), cluster="birch")

    load("rpctrace", "t", rpc("12:10", UNREGISTERED, job="77"), server="pond-mds")

    assert attribution() == {("job", "birch 77"): 1}


def test_a_reused_job_id_refers_to_the_job_at_that_time(load, attribution):
    early = Run("77", submit="08:00", start="09:00", end="10:00", nodes="n1", user="alice")
    late = Run("77", submit="20:00", start="21:00", end="22:00", nodes="n2", user="bob")
    trace = "\n".join(rpc(clock, UNREGISTERED, job="77") for clock in ("09:30", "15:00", "21:30"))
    load("rpctrace", "t", trace, server="mds1")

    load("sacct", "j", sacct(early, late), cluster="anvil")

    assert attribution() == {("job", "anvil 77"): 2, ("pending", "77"): 1}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_quickly_reused_job_id_is_not_counted_twice(load, attribution, order):
    # The second job starts while write-back may still carry the id of the first job.
    first = Run("77", submit="08:00", start="11:00", end="12:00", nodes="n1")
    second = Run("77", submit="11:30", start="12:05", end="13:00", nodes="n2")
    loads = [
        lambda: load("rpctrace", "t", rpc("12:10", UNREGISTERED, job="77"), server="mds1"),
        lambda: load("sacct", "first", sacct(first), cluster="anvil"),
        lambda: load("sacct", "second", sacct(second), cluster="anvil"),
    ]

    for number in order:
        loads[number]()

    assert attribution() == {("job", "anvil 77"): 1}


def test_overlapping_jobs_with_the_same_id_are_ambiguous(load, opens):
    for clock, amount in (("12:00", 0), ("12:20", 5)):
        read = job_stats("lake-MDT0000", {"77": {"open": amount}}, snapshot=clock)
        load("job_stats", clock, read, at=f"2017-07-05T{clock}:00Z")

    load("sacct", "j", sacct(Run("77"), Run("77", submit="11:30", nodes="n2")), cluster="anvil")

    assert opens() == {("ambiguous", "77"): 5}


def test_rpcs_of_the_second_run_of_a_requeued_job_are_attributed(load, attribution):
    first = Run("77", start="12:00", end="12:20", nodes="b1")
    again = Run("77", start="14:00", end="15:00", nodes="b1")
    trace = rpc("14:10", "10.0.0.1@o2ib")
    load("rpctrace", "t", trace, server="mds1")
    load("pbs", "first", pbs(("S", first), ("R", first)), cluster="birch")

    load("pbs", "second", pbs(("S", again)), cluster="birch")
    assert attribution() == {("job", "birch 77"): 1}

    load("pbs", "third", pbs(("E", again)), cluster="birch")
    assert attribution() == {("job", "birch 77"): 1}


def test_a_late_read_splits_its_interval(load, queries):
    def read(clock, opens):
        text = job_stats("lake-MDT0000", {"77": {"open": opens}}, snapshot=clock)
        load("job_stats", clock, text, at=f"2017-07-05T{clock}:00Z")

    def windows():
        return queries(
            "SELECT to_char(start, 'HH24:MI'), to_char(\"end\", 'HH24:MI'), open "
            'FROM telemetry_iowindow ORDER BY "end"'
        )

    read("12:00", 10)
    read("12:20", 40)
    assert windows() == [("12:00", "12:00", 10), ("12:00", "12:20", 30)]

    read("12:10", 35)
    assert windows() == [("12:00", "12:00", 10), ("12:00", "12:10", 25), ("12:10", "12:20", 5)]

    read("11:50", 4)
    assert windows() == [
        ("11:50", "11:50", 4),
        ("11:50", "12:00", 6),
        ("12:00", "12:10", 25),
        ("12:10", "12:20", 5),
    ]


def test_rpcs_of_a_nid_are_attributed_after_its_registration(
    load, register, attribute, attribution
):
    load("pbs", "j", pbs(("E", Run("77", nodes="b3"))), cluster="birch")
    load("rpctrace", "t", rpc("12:10", "10.0.0.3@o2ib"), server="mds1")
    assert attribution() == {("unattributed", "10.0.0.3@o2ib"): 1}

    register(
        """
        [[cluster]]
        name = "birch"
        time_zone = "America/New_York"
        batch = "pbs"
        [[cluster.nid]]
        nid = "10.0.0.3@o2ib"
        node = "b3"
        """
    )
    attribute()

    assert attribution() == {("job", "birch 77"): 1}


def test_a_new_job_id_pattern_applies_to_stored_job_ids(
    load, register, attribute, attribution, opens
):
    load("sacct", "j", sacct(Run("77")), cluster="anvil")
    load("rpctrace", "t", rpc("12:10", UNREGISTERED, job="alice:77:n1"), server="mds1")
    for clock, amount in (("12:00", 0), ("12:20", 5)):
        read = job_stats("lake-MDT0000", {"alice:77:n1": {"open": amount}}, snapshot=clock)
        load("job_stats", clock, read, at=f"2017-07-05T{clock}:00Z")
    assert attribution() == {("host", "10.9.9.9@tcp"): 1}
    assert opens() == {("process", "alice:77:n1"): 5}

    register(
        r"""
        [[filesystem]]
        name = "lake"
        clusters = ["anvil", "birch"]
        job_id_pattern = '\w+:(?P<batch_id>\d+):.*'
        """
    )
    attribute()

    assert attribution() == {("job", "anvil 77"): 1}
    assert opens() == {("job", "anvil 77"): 5}


def test_a_trace_of_a_single_instant_is_attributed_to_the_job_starting_then(load, attribution):
    load("rpctrace", "t", rpc("12:00:00", "1@gni"), server="mds1")

    load("sacct", "j", sacct(Run("77")), cluster="anvil")

    assert attribution() == {("job", "anvil 77"): 1}
