"""Server pages: services, charts and top clients, for staff."""

import json

import pytest

from ioportal.site.models import Filesystem, Nid, Node, Server, Target
from ioportal.telemetry.models import Coverage, HostWindow
from tests.collectors.lustre.counters import FIXTURES
from tests.logs import Run, Timed, at, job_stats, sacct
from tests.web.reading import text_of, words_of

READS = FIXTURES / "lustre_service_stats"


@pytest.fixture
def reads(module_site, ingest):
    for name, minute in (("get_param_2.12_a", 0), ("get_param_2.12_b", 1), ("get_param_2.15", 2)):
        path = READS / f"{name}.txt"
        ingest("mds_stats", path, server="mds1", at=f"2019-06-20T12:0{minute}:00Z")


def rows(answer):
    assert answer.status_code == 200
    return json.loads(text_of(answer))["rows"]


def test_services_are_listed_with_rates_and_means(as_staff, reads):
    answer = as_staff.get("/servers/mds1/", {"end": "2019-06-20T12:01:00Z", "format": "json"})

    by_name = {row["service"]: row for row in rows(answer)}
    assert by_name["mdt"] == {
        "service": "mdt",
        "requests": 6000,
        "requests_per_second": 100.0,
        "mean_wait_us": 1000.0,  # of 6,000 requests, 6 s together
        "mean_handling_us": 50.0,  # of the 600 that this version times
        "mean_queue_depth": 6.0,
        "mean_active": 20.0,
    }
    assert by_name["mdt_rdpg"]["mean_wait_us"] == 20.0
    assert by_name["mdt_rdpg"]["requests"] == 1800


def test_charts_are_narrowed_to_one_service(as_staff, reads):
    query = {"service": "mdt", "format": "json"}

    wait = rows(as_staff.get("/servers/mds1/charts/wait/", query))
    kinds = rows(as_staff.get("/servers/mds1/charts/requests/", query))

    assert [row["wait"] for row in wait] == [1000.0, 20.0]
    assert kinds[0]["ldlm_ibits_enqueue"] == 80.0
    assert kinds[0]["mds_reint_open"] == 10.0
    assert "req_waittime" not in kinds[0]


def test_calls_of_nfs_servers_have_rates_and_no_waiting_times(as_staff, module_site, ingest):
    server = Server.objects.create(
        name="nfs1", filesystem=Filesystem.objects.create(name="apps"), kind=Server.Kind.NFS
    )
    empty = words_of(as_staff.get("/servers/nfs1/"))
    for name, hour in (("kernel_6.1", 12), ("kernel_6.1_later", 13)):
        path = FIXTURES / "nfsd" / f"{name}.txt"
        ingest("nfsd", path, server=server.name, at=f"2026-03-01T{hour}:00:00Z")

    [service] = rows(as_staff.get("/servers/nfs1/", {"format": "json"}))
    [kinds] = rows(as_staff.get("/servers/nfs1/charts/requests/", {"format": "json"}))

    assert "manage.py ingest nfsd --server nfs1" in empty
    assert (service["service"], service["mean_wait_us"]) == ("nfsd", None)
    assert (kinds["nfs4_lookup"], kinds["nfs3_getattr"]) == (0.2, 0.1)  # 720 and 360 in an hour


def test_counter_resets_are_marked(as_staff, reads):
    page = text_of(as_staff.get("/servers/mds1/"))

    assert "counter reset" in page
    assert "Mean wait" in page
    assert "Queue wait and handling time" in page


def test_the_list_has_the_latest_data_of_each_server(as_staff, reads):
    listed = {row["server"]: row for row in rows(as_staff.get("/servers/", {"format": "json"}))}

    assert listed["mds1"]["services_read_until"] == "2019-06-20T12:02:00+00:00"
    assert listed["mds2"]["services_read_until"] is None
    assert "oss1" in text_of(as_staff.get("/servers/"))


def test_mean_times_of_operations_are_listed_by_kind(as_staff, module_site, ingest, logs):
    for minute, factor in enumerate((0, 1, 3)):
        counters = {"open": Timed(10 * factor, 500 * factor), "mkdir": 2 * factor}
        text = job_stats("lake-MDT0000", {"77": counters}, snapshot=f"12:0{minute}")
        ingest("job_stats", logs(f"{minute}", text), at=at(f"12:0{minute}").isoformat())

    page = words_of(as_staff.get("/servers/mds1/"))

    assert "Kind Operations Mean time in the handler open 30 50 µs mkdir 6 \N{EN DASH}" in page


def test_hosts_outside_jobs_are_listed_from_exports(as_staff, module_site):
    target = Target.objects.get(name="lake-MDT0000")
    nid, _ = Nid.objects.get_or_create(text="1@gni", node=Node.objects.get(name="n1"))
    common = {
        "start": at("12:00"), "end": at("12:01"), "segment_id": 0, "target_id": target.pk,
        "basis": 1,
    }  # fmt: skip
    HostWindow.objects.create(
        **common, nid_id=nid.pk, kind=3, metadata_operations=300, metadata_us=15_000
    )
    HostWindow.objects.create(**common, nid_id=0, kind=1, metadata_operations=700)
    Coverage.objects.create(
        source="exports", source_id=target.pk, start=at("12:00"), end=at("12:01"), segment_id=0
    )

    page = words_of(as_staff.get("/servers/mds1/"))
    assert "No service statistics in this range" in page
    assert "manage.py ingest req_history" in page

    assert "Host Metadata operations ops Share of all clients % Mean time n1 300 30.0 50 µs" in page
    assert "exports of the MDTs, observed 0:01:00 of 1 d 0:00:00;" in page


def test_a_server_without_data_shows_the_command_to_load_it(as_staff, module_site):
    assert "manage.py ingest mds_stats --server mds2" in text_of(as_staff.get("/servers/mds2/"))


def test_the_page_uses_a_fixed_number_of_queries(as_staff, reads, django_assert_num_queries):
    with django_assert_num_queries(45):
        as_staff.get("/servers/mds1/")


def test_clients_are_listed_with_the_jobs_of_their_nodes(as_staff, module_site, ingest, logs):
    ingest("sacct", logs("j", sacct(Run("77", nodes="n1"))), cluster="anvil")
    history = FIXTURES / "lustre_req_history" / "get_param_2.12.txt"
    ingest("req_history", history, server="mds1")

    page = text_of(as_staff.get("/servers/mds1/"))
    [first, _] = rows(as_staff.get("/servers/mds1/clients/", {"format": "json"}))

    assert "Top clients" in page
    assert ">77</a>" in page
    assert (first["nid"], first["node"], first["jobs"], first["requests"]) == (
        "1@gni",
        "n1",
        "77",
        20,
    )
