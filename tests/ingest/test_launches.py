"""Application launches determine the nodes and the ids of their jobs in any order of arrival."""

from itertools import permutations

import pytest

from tests.logs import Run, alps, finishing, job_stats, pbs, rpc, starting

pytestmark = pytest.mark.usefixtures("everything_reconciles")

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
def test_a_launch_determines_the_nodes_of_its_job_in_any_order_of_arrival(
    register, load, attribution, order
):
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

    assert attribution() == {("job", "cedar 815"): 2, ("host", "4@gni9"): 1}


@pytest.mark.parametrize("order", list(permutations(range(4)))[::3])
def test_launch_ids_are_attributed_to_their_job(register, load, attribution, opens, order):
    register(CRAY)
    trace = "\n".join(rpc("12:10", "2@gni9", job=job) for job in ("9205593", "9205594"))
    reads = [
        ("12:00", job_stats("sea-MDT0000", {"9205593": {"open": 0}, "9205594": {"open": 0}})),
        ("12:50", job_stats("sea-MDT0000", {"9205593": {"open": 3}, "9205594": {"open": 4}})),
    ]
    # Two launches, one after the other, on the same nodes.
    first = alps(starting(9205593, "815", "12:01", "2-3", 2), finishing(9205593, "815", "12:20"))
    second = alps(starting(9205594, "815", "12:21", "2-3", 2), finishing(9205594, "815", "12:59"))

    def telemetry():
        load("rpctrace", "t", trace, server="sea-mds")
        for clock, text in reads:
            load("job_stats", clock, text, at=f"2017-07-05T{clock}:00Z")

    loads = [
        lambda: load("pbs", "j", pbs(("E", Run("815", nodes="batch1"))), cluster="cedar"),
        lambda: load("alps", "first", first, cluster="cedar"),
        lambda: load("alps", "second", second, cluster="cedar"),
        telemetry,
    ]
    for number in order:
        loads[number]()

    assert attribution() == {("job", "cedar 815"): 2}
    assert opens() == {("job", "cedar 815"): 7}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_launch_moves_to_the_job_that_reuses_its_batch_id(register, load, queries, order):
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

    allocations = queries(
        "SELECT j.submitted_at::time::text, n.name FROM jobs_allocation a "
        "JOIN jobs_job j ON j.id = a.job_id JOIN site_node n ON n.id = a.node_id ORDER BY 2"
    )
    assert allocations == [("10:00:00", "nid00002"), ("10:00:00", "nid00003")]


def test_repeated_launches_on_the_same_nodes_store_each_node_once(register, load, queries):
    register(CRAY.replace("nid[00001-00099]", "nid[00001-04999]"))
    launches = [starting(9_205_000 + n, "815", "12:01", "1-4999", 4_999) for n in range(11)]
    load("pbs", "j", pbs(("S", Run("815", nodes="batch1", node_count=4_999))), cluster="cedar")

    load("alps", "l", alps(*launches), cluster="cedar")

    assert queries("SELECT count(*) FROM jobs_allocation") == [(4_999,)]
