"""RPC reports: the listing of two golden launches to the digit, and reports of other principals."""

import re

import numpy as np
import pytest
from django.core.management import CommandError

from ioportal.site.models import Filesystem
from simulator import site
from simulator.formats import rpctrace, site_toml
from simulator.plan import Plan
from simulator.randomness import stream
from simulator.servers import golden, server_log
from tests.logs import Run, alps, at, pbs, rpc, sacct, starting

LISTING = """\
Application 9205593 (simulated)
      39012 RPCs from 300 of 300 nodes
        ~69291.96 per sec
          37851 LDLM_ENQUEUE RPCs    ~67229.83 per sec
                pmin 13us pavg 42us pmax 4983us
          611 LDLM_CANCEL RPCs    ~1085.24 per sec
                pmin 10us pavg 16us pmax 32us
          277 MDS_CLOSE RPCs    ~492.00 per sec
                pmin 15us pavg 20us pmax 38us
          154 MDS_READPAGE RPCs    ~273.53 per sec
                pmin 170us pavg 292us pmax 671us
          86 MDS_GETXATTR RPCs    ~152.75 per sec
                pmin 15us pavg 21us pmax 65us
          30 MDS_GETATTR RPCs    ~53.29 per sec
                pmin 16us pavg 20us pmax 27us
          3 MDS_REINT RPCs    ~5.33 per sec
                pmin 103us pavg 136us pmax 196us
          Overall times
                pmin 10us pavg 42us pmax 4983us

Application 9205355 (simulated)
      8698 RPCs from 62 of 62 nodes
        ~15449.13 per sec
          8445 LDLM_ENQUEUE RPCs    ~14999.76 per sec
                pmin 16us pavg 41us pmax 780us
          92 MDS_CLOSE RPCs    ~163.41 per sec
                pmin 15us pavg 23us pmax 52us
          55 MDS_READPAGE RPCs    ~97.69 per sec
                pmin 189us pavg 291us pmax 534us
          52 LDLM_CANCEL RPCs    ~92.36 per sec
                pmin 12us pavg 16us pmax 25us
          41 MDS_GETXATTR RPCs    ~72.82 per sec
                pmin 16us pavg 20us pmax 27us
          13 MDS_GETATTR RPCs    ~23.09 per sec
                pmin 16us pavg 21us pmax 38us
          Overall times
                pmin 12us pavg 42us pmax 780us"""

NODES = {9_205_593: np.arange(1_000, 1_300), 9_205_355: np.arange(5_000, 5_062)}
BATCH = {9_205_593: "3459401", 9_205_355: "3459377"}
FIRST_END = at("18:41:07.211385")


@pytest.fixture
def trace(logs):
    """The half second of the listing."""
    chance = stream(7, "golden trace")
    other_nodes = np.concatenate(
        [np.arange(9_000, 9_100), [site.client(nid) for nid in site.HOST_OF_NID]]
    )
    first_us = round(FIRST_END.timestamp() * 1_000_000)
    served = golden.requests(NODES, other_nodes, first_us, chance)
    records = server_log.records(served, 7, chance, handling_share=0)
    path = logs("golden.log", b"")
    with path.open("wb") as file:
        rpctrace.write(rpctrace.lines(records, server_log.names(7)), file)
    return path


@pytest.fixture
def titan(register, logs, ingest, trace):
    """The machine, two launches with their jobs, and the trace."""
    register(site_toml.text(Plan()))
    launches, jobs = [], []
    for apid, nodes in NODES.items():
        node_range = f"{nodes[0]}-{nodes[-1]}"
        launches.append(starting(apid, BATCH[apid], "18:30", node_range, len(nodes)))
        run = Run(BATCH[apid], start="18:29", end="20:00", nodes="", node_count=len(nodes))
        jobs.append(("E", run))
    ingest("rpctrace", trace, server=site.MDS)
    ingest("pbs", logs("20170705", pbs(*jobs)), cluster=site.CLUSTER)
    ingest("alps", logs("messages", alps(*launches)), cluster=site.CLUSTER)


@pytest.mark.usefixtures("titan")
def test_reports_match_the_listing_and_the_trace(trace, call, reports, reconcile):
    assert call("rpc_report", "--launch", "9205593", "9205355") == LISTING

    as_jobs = call("rpc_report", "--job", BATCH[9_205_593], BATCH[9_205_355])
    assert re.sub("Job [0-9]+", "", as_jobs) == re.sub("Application [0-9]+", "", LISTING)
    [report] = reports("--launch", "9205593")
    assert report["covered_s"] == pytest.approx(0.563009)
    assert (report["nodes_seen"], report["nodes_held"]) == (300, 300)
    assert report["rows"][0]["opcode"] == "LDLM_ENQUEUE"
    assert f"{report['overall']['per_second']:.2f}" == "69291.96"
    assert report["overall"]["service"]["min_us"] == 10
    assert reconcile()

    handled = trace.read_text().count("Handled RPC")

    [total] = reports()
    [hosts] = reports("--kind", "host")
    [policy] = reports("--host", "titan-policy1")
    [by_nid] = reports("--host", site.POLICY_NID)

    assert total["overall"]["count"] == handled == 39_012 + 8_698 + hosts["overall"]["count"]
    assert policy["overall"]["count"] == by_nid["overall"]["count"] > 0
    assert trace.read_text().count(site.POLICY_NID) == policy["overall"]["count"]


def test_jobs_with_the_same_id_are_reported_per_cluster(site, logs, ingest, call):
    ingest("rpctrace", logs("t", rpc("12:10", "1@gni"), rpc("12:12", "1@gni")), server="mds1")
    ingest("sacct", logs("s", sacct(Run("77"))), cluster="anvil")
    ingest("pbs", logs("p", pbs(("E", Run("77", nodes="b1")))), cluster="birch")

    both = call("rpc_report", "--job", "77")
    selected = call("rpc_report", "--job", "77", "--cluster", "birch")

    assert both.count("Job 77") == 2
    assert selected.count("Job 77") == 1


def test_rpcs_of_a_simulated_filesystem_are_marked(site, logs, ingest, call):
    ingest("rpctrace", logs("t", rpc("12:10"), rpc("12:12")), server="mds1")
    real = call("rpc_report")
    Filesystem.objects.filter(name="lake").update(simulated=True)

    assert real.startswith("All RPCs\n")
    assert call("rpc_report").startswith("All RPCs (simulated)\n")


def test_untimed_rpcs_are_counted(site, logs, ingest, call):
    ingest("rpctrace", logs("t", rpc("12:10", us=None), rpc("12:10:01", us=None)), server="mds1")

    report = call("rpc_report")

    assert "2 RPCs from 1 nodes" in report
    assert "not timed" in report


def test_traces_of_object_servers_are_excluded(site, logs, ingest, call):
    ingest("rpctrace", logs("t", rpc("12:10"), rpc("12:11")), server="oss1")

    with pytest.raises(CommandError, match="No RPC trace covers the range"):
        call("rpc_report")
