"""Whatever arrives last: operations end up where they would have, had it come first."""

from itertools import permutations

import pytest

from tests.logs import Run, alps, finishing, job_stats, pbs, rpc, sacct, squeue, starting


@pytest.fixture(autouse=True)
def _everything_reconciles(site, reconcile):
    yield
    assert reconcile()


@pytest.fixture
def load(logs, ingest):
    """Ingest a text under a name, as the options say."""

    def run(form, name, text, **options):
        return ingest(form, logs(name, text), **options)

    return run


def test_windows_wait_for_the_record_of_their_job(load, charged):
    load(
        "rpctrace",
        "t",
        rpc("12:10", "1@gni") + "\n" + rpc("12:10", "9@gni", job="77"),
        server="mds1",
    )
    assert charged() == {("host", "1@gni"): 1, ("pending", "77"): 1}

    load("sacct", "j", sacct(Run("77", nodes="n1")), cluster="anvil")

    assert charged() == {("job", "anvil 77"): 2}


def test_a_job_record_waits_for_its_windows(load, charged):
    load("sacct", "j", sacct(Run("77", nodes="n1")), cluster="anvil")

    load(
        "rpctrace",
        "t",
        rpc("12:10", "1@gni") + "\n" + rpc("12:10", "9@gni", job="77"),
        server="mds1",
    )

    assert charged() == {("job", "anvil 77"): 2}


def test_what_a_running_job_holds_is_given_back_when_it_turns_out_to_have_ended(load, charged):
    trace = "\n".join([rpc("12:10", "1@gni"), rpc("13:10", "1@gni")])
    load("sacct", "before", sacct(Run("77", nodes="n1").running()), cluster="anvil")
    load("rpctrace", "t", trace, server="mds1")
    assert charged() == {("job", "anvil 77"): 2}

    load("sacct", "after", sacct(Run("77", nodes="n1", end="13:00")), cluster="anvil")

    assert charged() == {("job", "anvil 77"): 1, ("host", "1@gni"): 1}


def test_a_job_in_the_queue_is_charged_while_it_runs_and_accounting_has_the_last_word(
    load, charged
):
    run = Run("77", nodes="n1", end="13:00")
    ended, runs = sacct(run), squeue(run.running())
    trace = "\n".join([rpc("12:10", "1@gni"), rpc("13:10", "1@gni")])
    load("rpctrace", "t", trace, server="mds1")

    load("squeue", "q", runs, cluster="anvil")
    assert charged() == {("job", "anvil 77"): 2}

    load("sacct", "j", ended, cluster="anvil")
    load("squeue", "q2", runs + "\n", cluster="anvil")  # what came late changes nothing
    assert charged() == {("job", "anvil 77"): 1, ("host", "1@gni"): 1}


def test_an_older_record_does_not_undo_a_newer_one(load, charged):
    load("sacct", "after", sacct(Run("77", nodes="n1", end="13:00")), cluster="anvil")
    load("rpctrace", "t", rpc("13:10", "1@gni"), server="mds1")

    load("sacct", "before", sacct(Run("77", nodes="n1").running()), cluster="anvil")

    assert charged() == {("host", "1@gni"): 1}


def test_nodes_that_a_job_no_longer_has_are_given_back(load, charged):
    trace = "\n".join([rpc("12:10", "1@gni"), rpc("12:10", "2@gni"), rpc("12:10", "3@gni")])
    load(
        "sacct", "before", sacct(Run("77", nodes="n[1-2]", node_count=2).running()), cluster="anvil"
    )
    load("rpctrace", "t", trace, server="mds1")
    assert charged() == {("job", "anvil 77"): 2, ("host", "3@gni"): 1}

    load("sacct", "after", sacct(Run("77", nodes="n[2-3]", node_count=2)), cluster="anvil")

    assert charged() == {("job", "anvil 77"): 2, ("host", "1@gni"): 1}


def test_of_two_jobs_on_a_node_neither_is_charged(load, charged):
    load("rpctrace", "t", rpc("12:10", "1@gni"), server="mds1")
    load("sacct", "one", sacct(Run("77", nodes="n1")), cluster="anvil")
    assert charged() == {("job", "anvil 77"): 1}

    load("sacct", "other", sacct(Run("78", nodes="n1")), cluster="anvil")

    assert charged() == {("ambiguous", "1@gni"): 1}


def test_a_job_keeps_what_carries_its_id_when_its_neighbour_on_a_node_changes(load, charged):
    trace = "\n".join(
        [rpc("12:10", "1@gni", job="77"), rpc("12:10", "1@gni", job="78"), rpc("12:10", "1@gni")]
    )
    load("rpctrace", "t", trace, server="mds1")
    load("sacct", "before", sacct(Run("77").running(), Run("78").running()), cluster="anvil")
    expected = {("job", "anvil 77"): 1, ("job", "anvil 78"): 1, ("ambiguous", "1@gni"): 1}
    assert charged() == expected

    load("sacct", "after", sacct(Run("77", end="13:30")), cluster="anvil")

    assert charged() == expected


def test_a_window_is_not_charged_across_the_end_of_a_job(load, charged):
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

    # Windows are ten seconds wide: both sides of 13:00:00 are windows of their own.
    assert charged() == {("job", "anvil 77"): 1, ("job", "anvil 78"): 2}


def test_a_window_with_records_before_and_after_a_jobs_end_is_ambiguous(load, charged):
    trace = "\n".join([rpc("12:59:51", "1@gni"), rpc("12:59:59", "1@gni")])
    load("rpctrace", "t", trace, server="mds1")

    load("sacct", "j", sacct(Run("77", end="12:59:55")), cluster="anvil")

    assert charged() == {("ambiguous", "1@gni"): 2}


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        pytest.param("11:59:59.999999", "host", id="just before the job"),
        pytest.param("12:00:00", "job", id="as the job begins"),
        pytest.param("12:59:59.999999", "job", id="in its last microsecond"),
        pytest.param("13:00:00", "host", id="at its end, which is outside"),
    ],
)
@pytest.mark.parametrize("job_first", [True, False])
def test_a_run_includes_its_begin_and_not_its_end(load, charged, moment, expected, job_first):
    loads = [
        lambda: load("sacct", "j", sacct(Run("77")), cluster="anvil"),
        lambda: load("rpctrace", "t", rpc(moment, "1@gni"), server="mds1"),
    ]
    for one in loads if job_first else reversed(loads):
        one()

    assert [kind for kind, _ in charged()] == [expected]


def test_process_names_are_charged_to_the_only_job_of_their_node(load, charged, queries):
    load("sacct", "j", sacct(Run("77", nodes="n1")), cluster="anvil")

    load(
        "rpctrace",
        "t",
        rpc("12:10", "1@gni", job="cp.0") + "\n" + rpc("12:10", "2@gni", job="cp.0"),
        server="mds1",
    )

    assert charged() == {("job", "anvil 77"): 1, ("process", "cp.0"): 1}
    assert queries("SELECT DISTINCT method FROM telemetry_attributedrpc WHERE job_id <> 0") == [
        (3,)
    ]


def test_a_process_on_a_node_that_jobs_share_is_charged_as_the_process(load, charged):
    load("sacct", "j", sacct(Run("77"), Run("78")), cluster="anvil")

    load("rpctrace", "t", rpc("12:10", "1@gni", job="cp.0"), server="mds1")

    assert charged() == {("process", "cp.0"): 1}


def test_two_clusters_with_the_same_job_id_leave_its_rpcs_ambiguous(load, charged, opens):
    load("rpctrace", "t", rpc("12:10", "9@gni", job="77"), server="mds1")
    for clock, amount in (("12:00", 0), ("12:20", 5)):
        read = job_stats("lake-MDT0000", {"77": {"open": amount}}, snapshot=clock)
        load("job_stats", clock, read, at=f"2017-07-05T{clock}:00Z")
    assert charged() == {("pending", "77"): 1}
    assert opens() == {("pending", "77"): 5}

    load("sacct", "anvil", sacct(Run("77")), cluster="anvil")
    assert charged() == {("job", "anvil 77"): 1}
    assert opens() == {("job", "anvil 77"): 5}

    load("pbs", "birch", pbs(("E", Run("77", nodes="b1"))), cluster="birch")
    assert charged() == {("ambiguous", "77"): 1}
    assert opens() == {("ambiguous", "77"): 5}


def test_a_filesystem_of_one_cluster_knows_whose_the_id_is(load, charged):
    load("sacct", "anvil", sacct(Run("77")), cluster="anvil")
    load("pbs", "birch", pbs(("E", Run("77", nodes="b1"))), cluster="birch")

    load("rpctrace", "t", rpc("12:10", "9@gni", job="77"), server="pond-mds")

    assert charged() == {("job", "birch 77"): 1}


def test_a_job_id_used_twice_names_the_job_of_that_time(load, charged):
    early = Run("77", submit="08:00", start="09:00", end="10:00", nodes="n1", user="alice")
    late = Run("77", submit="20:00", start="21:00", end="22:00", nodes="n2", user="bob")
    trace = "\n".join(rpc(clock, "9@gni", job="77") for clock in ("09:30", "15:00", "21:30"))
    load("rpctrace", "t", trace, server="mds1")

    load("sacct", "j", sacct(early, late), cluster="anvil")

    assert charged() == {("job", "anvil 77"): 2, ("pending", "77"): 1}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_an_id_used_again_soon_is_not_counted_twice(load, charged, order):
    # The second job begins while write-back may still carry the id of the first.
    first = Run("77", submit="08:00", start="11:00", end="12:00", nodes="n1")
    second = Run("77", submit="11:30", start="12:05", end="13:00", nodes="n2")
    loads = [
        lambda: load("rpctrace", "t", rpc("12:10", "9@gni", job="77"), server="mds1"),
        lambda: load("sacct", "one", sacct(first), cluster="anvil"),
        lambda: load("sacct", "two", sacct(second), cluster="anvil"),
    ]

    for number in order:
        loads[number]()

    assert charged() == {("job", "anvil 77"): 1}


def test_two_overlapping_jobs_of_one_id_that_arrive_together_are_ambiguous(load, opens):
    for clock, amount in (("12:00", 0), ("12:20", 5)):
        read = job_stats("lake-MDT0000", {"77": {"open": amount}}, snapshot=clock)
        load("job_stats", clock, read, at=f"2017-07-05T{clock}:00Z")

    load("sacct", "j", sacct(Run("77"), Run("77", submit="11:30", nodes="n2")), cluster="anvil")

    assert opens() == {("ambiguous", "77"): 5}


def test_a_requeued_job_is_charged_while_it_runs_again(load, charged):
    first = Run("77", start="12:00", end="12:20", nodes="b1")
    again = Run("77", start="14:00", end="15:00", nodes="b1")
    trace = rpc("14:10", "10.0.0.1@o2ib")
    load("rpctrace", "t", trace, server="mds1")
    load("pbs", "one", pbs(("S", first), ("R", first)), cluster="birch")

    load("pbs", "two", pbs(("S", again)), cluster="birch")
    assert charged() == {("job", "birch 77"): 1}

    load("pbs", "three", pbs(("E", again)), cluster="birch")
    assert charged() == {("job", "birch 77"): 1}


CRAY = """
[[cluster]]
name = "cedar"
time_zone = "America/New_York"
batch = "pbs"
exec_hosts_are_compute_nodes = false
nodes = "nid[00001-00099]"
[cluster.nid_rule]
network = "gni9"
node = "nid{number:05d}"

[[filesystem]]
name = "sea"
clusters = ["cedar"]
job_id_pattern = '(?P<launch>\\d{7,})'

[[server]]
name = "sea-mds"
filesystem = "sea"

[[target]]
name = "sea-MDT0000"
filesystem = "sea"
"""


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_launch_gives_its_job_its_nodes_whichever_comes_first(register, load, charged, order):
    register(CRAY)
    run = Run("815", nodes="batch1", node_count=2)
    launched = alps(starting(9205593, "815", "12:01", "2-3", 2), finishing(9205593, "815", "12:59"))
    trace = "\n".join(rpc("12:10", f"{nid}@gni9") for nid in (2, 3, 4))
    loads = [
        lambda: load("pbs", "j", pbs(("E", run)), cluster="cedar"),
        lambda: load("alps", "l", launched, cluster="cedar"),
        lambda: load("rpctrace", "t", trace, server="sea-mds"),
    ]

    for number in order:
        loads[number]()

    assert charged() == {("job", "cedar 815"): 2, ("host", "4@gni9"): 1}


@pytest.mark.parametrize("order", list(permutations(range(4)))[::3])
def test_every_launch_of_a_job_explains_the_ids_that_its_clients_sent(
    register, load, charged, opens, order
):
    register(CRAY)
    trace = "\n".join(rpc("12:10", "50@gni9", job=job) for job in ("9205593", "9205594"))
    reads = [
        ("12:00", job_stats("sea-MDT0000", {"9205593": {"open": 0}, "9205594": {"open": 0}})),
        ("12:50", job_stats("sea-MDT0000", {"9205593": {"open": 3}, "9205594": {"open": 4}})),
    ]
    # Two launches, one after the other, on the same nodes.
    one = alps(starting(9205593, "815", "12:01", "2-3", 2), finishing(9205593, "815", "12:20"))
    two = alps(starting(9205594, "815", "12:21", "2-3", 2), finishing(9205594, "815", "12:59"))

    def telemetry():
        load("rpctrace", "t", trace, server="sea-mds")
        for clock, text in reads:
            load("job_stats", clock, text, at=f"2017-07-05T{clock}:00Z")

    loads = [
        lambda: load("pbs", "j", pbs(("E", Run("815", nodes="batch1"))), cluster="cedar"),
        lambda: load("alps", "one", one, cluster="cedar"),
        lambda: load("alps", "two", two, cluster="cedar"),
        telemetry,
    ]
    for number in order:
        loads[number]()

    assert charged() == {("job", "cedar 815"): 2}
    assert opens() == {("job", "cedar 815"): 7}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_launch_moves_to_the_job_that_uses_its_batch_id_again(register, load, queries, order):
    register(CRAY)
    old = Run("815", submit="07:00", start="08:00", end="09:00", nodes="batch1")
    new = Run("815", submit="10:00", start="12:00", end="13:00", nodes="batch1")
    loads = [
        lambda: load("pbs", "old", pbs(("E", old)), cluster="cedar"),
        lambda: load("pbs", "new", pbs(("E", new)), cluster="cedar"),
        lambda: load(
            "alps", "l", alps(starting(9205593, "815", "12:01", "2-3", 2)), cluster="cedar"
        ),
    ]
    for number in order:
        loads[number]()

    held = queries(
        "SELECT j.submitted_at::time::text, n.name FROM jobs_allocation a "
        "JOIN jobs_job j ON j.id = a.job_id JOIN site_node n ON n.id = a.node_id ORDER BY 2"
    )
    assert held == [("10:00:00", "nid00002"), ("10:00:00", "nid00003")]


def test_a_job_may_launch_its_program_on_all_its_nodes_many_times(register, load, queries):
    register(CRAY.replace("nid[00001-00099]", "nid[00001-04999]"))
    launches = [starting(9_205_000 + n, "815", "12:01", "1-4999", 4_999) for n in range(11)]
    load("pbs", "j", pbs(("S", Run("815", nodes="batch1", node_count=4_999))), cluster="cedar")

    load("alps", "l", alps(*launches), cluster="cedar")

    assert queries("SELECT count(*) FROM jobs_allocation") == [(4_999,)]


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


def test_a_nid_that_nobody_registered_is_charged_once_it_is(load, register, charge, charged):
    load("pbs", "j", pbs(("E", Run("77", nodes="b3"))), cluster="birch")
    load("rpctrace", "t", rpc("12:10", "10.0.0.3@o2ib"), server="mds1")
    assert charged() == {("unattributed", "10.0.0.3@o2ib"): 1}

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
    charge()

    assert charged() == {("job", "birch 77"): 1}


def test_a_new_pattern_reads_old_job_ids_again(load, register, charge, charged, opens):
    load("sacct", "j", sacct(Run("77")), cluster="anvil")
    load("rpctrace", "t", rpc("12:10", "9@gni", job="alice:77:n9"), server="mds1")
    for clock, amount in (("12:00", 0), ("12:20", 5)):
        read = job_stats("lake-MDT0000", {"alice:77:n9": {"open": amount}}, snapshot=clock)
        load("job_stats", clock, read, at=f"2017-07-05T{clock}:00Z")
    assert charged() == {("process", "alice:77:n9"): 1}
    assert opens() == {("process", "alice:77:n9"): 5}

    register(
        r"""
        [[filesystem]]
        name = "lake"
        clusters = ["anvil", "birch"]
        job_id_pattern = '\w+:(?P<batch_id>\d+):.*'
        """
    )
    charge()

    assert charged() == {("job", "anvil 77"): 1}
    assert opens() == {("job", "anvil 77"): 5}


def test_a_trace_that_holds_one_instant_is_charged_to_the_job_that_begins_then(load, charged):
    load("rpctrace", "t", rpc("12:00:00", "1@gni"), server="mds1")

    load("sacct", "j", sacct(Run("77")), cluster="anvil")

    assert charged() == {("job", "anvil 77"): 1}
