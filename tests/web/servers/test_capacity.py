"""Capacity pages of simulated servers with known knees, from traces and from statistics alone."""

import json
from datetime import timedelta

import pytest

from ioportal.core.formatting import significant
from ioportal.load.capacity import known
from ioportal.site.models import Server, ServerVersion, Target
from ioportal.telemetry.models import IoTotal
from simulator.capacity import LoadedServer, Scenario, knee_per_s
from tests.web.reading import text_of, words_of
from tests.web.servers.loaded_servers import BEGIN, ingest_reads, store_traces
from tests.web.servers.test_servers import rows

pytestmark = pytest.mark.long

STORMY = Scenario(seed=3, capacity_per_s=60_000, days=7, peak=0.6, storms=12, convoys=8)
CALM = Scenario(seed=4, capacity_per_s=30_000, days=2, peak=0.25, convoys=6)
COUNTED = Scenario(seed=7, capacity_per_s=20_000, days=1, peak=0.5, storms=8, convoys=2, restarts=1)


@pytest.fixture(scope="module")
def servers(module_site, tmp_path_factory):
    """Load mds2 (stormy, traced), pond-mds (calm, traced) and mds1 (statistics alone)."""
    by_name = {server.name: server for server in Server.objects.all()}
    store_traces(by_name["mds2"], LoadedServer(STORMY))
    store_traces(by_name["pond-mds"], LoadedServer(CALM))
    counted = LoadedServer(COUNTED)
    ingest_reads(by_name["mds1"], counted, tmp_path_factory.mktemp("reads"))
    IoTotal.objects.create(
        start=BEGIN,
        end=BEGIN + timedelta(days=1),
        filesystem_id=by_name["mds1"].filesystem_id,
        target_id=Target.objects.get(name="lake-MDT0000").pk,
        basis=1,
        metadata_operations=counted.requests.sum() // 2,  # two requests each
    )
    return by_name


@pytest.fixture
def capacity(as_staff, servers):
    """Return the JSON export of a server's capacity page."""

    def read(server, **query):
        answer = as_staff.get(f"/servers/{server}/capacity/", {"format": "json", **query})
        assert answer.status_code == 200
        return json.loads(text_of(answer))

    return read


def test_traces_show_the_true_knee(capacity):
    found = capacity("mds2")

    assert found["method"] == "traces"
    assert found["knee_low"] <= knee_per_s(60_000) <= found["knee_high"]
    assert found["knee"] == pytest.approx(knee_per_s(60_000), rel=0.06)
    assert found["excluded"]["lock waiting"] > 100
    assert found["resampled"] == "days"
    assert 0.8 * knee_per_s(60_000) < found["highest_safe_load"] <= found["knee_low"]
    assert found["windows_above_knee"] > 9
    assert 3 <= found["days_above_knee"] <= found["days"] == 7


def test_statistics_alone_show_the_true_knee(capacity):
    found = capacity("mds1")

    assert found["method"] == "statistics"
    assert found["knee_low"] <= knee_per_s(20_000) <= found["knee_high"]
    assert found["knee"] == pytest.approx(knee_per_s(20_000), rel=0.08)
    assert found["excluded"]["restart"] > 0
    assert found["resampled"] == "hours"


def test_limits_are_parts_of_the_registered_capacity_else_of_the_knee(capacity, servers):
    server = servers["mds1"]

    assert known(server) == (server.capacity_per_s, "registered")
    server.capacity_per_s = None
    assert known(server).per_s == pytest.approx(capacity("mds1")["knee"])


def test_a_knee_that_was_not_reached_is_not_extrapolated(as_staff, capacity):
    found = capacity("pond-mds")
    page = words_of(as_staff.get("/servers/pond-mds/capacity/"))

    assert found["reached"] is False
    assert found["knee"] is None
    assert found["unconfirmed_knee"] is None
    assert 0.3 * knee_per_s(30_000) < found["highest_safe_load"] < knee_per_s(30_000)
    assert found["verdict"].startswith("Highest steady load seen with normal latency: ")
    assert "95 % of 48 hours with data have less" in page
    assert "Capacity in rules 5,000 requests/s (assumed; register capacity_per_s)" in page
    assert found["capacity_in_rules_per_s"] == 5_000
    assert found["verdict"] in page
    assert f"{found['safe_windows']:,} windows on 2 days up to it" in page
    assert "Knee not found" in page
    low = significant(float(f"{found['headroom_low']:.3g}"))
    assert f"RPCs/s (95 % interval from {low})" in page.partition("Headroom in busy hours")[2]


def test_only_data_since_the_latest_upgrade_counts(as_staff, capacity, servers):
    since = BEGIN + timedelta(days=6, hours=22)
    ServerVersion.objects.create(server=servers["mds2"], version="2.16.1", since=since)

    page = words_of(as_staff.get("/servers/mds2/capacity/"))

    assert capacity("mds2")["verdict"].startswith("Too few windows")
    assert "Only data since the upgrade to 2.16.1 is used" in page


def test_charts_have_exports(as_staff, servers):
    curve = rows(as_staff.get("/servers/mds2/capacity/charts/curve/", {"format": "json"}))
    load = rows(as_staff.get("/servers/mds2/capacity/charts/load/", {"format": "json"}))

    assert [row["load"] for row in curve] == sorted(row["load"] for row in curve)
    assert curve[0]["median"] < 1.5 < curve[-1]["fitted"]
    assert len(load) == 7 * 24


def test_a_server_without_data_shows_the_command_to_load_it(as_staff, servers):
    Server.objects.create(name="mds9", filesystem=servers["mds1"].filesystem, kind="mds")

    page = text_of(as_staff.get("/servers/mds9/capacity/"))

    assert "manage.py ingest mds_stats --server mds9" in page
    assert as_staff.get("/servers/oss1/capacity/").status_code == 404


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ("mds9", "No RPC traces or service statistics (mds_stats) of mds9"),
        ("mds2", "Too few windows"),
    ],
)
def test_exports_without_a_capacity_have_the_reason(as_staff, servers, server, reason):
    Server.objects.create(name="mds9", filesystem=servers["mds1"].filesystem, kind="mds")
    query = {
        "start": f"{BEGIN:%Y-%m-%dT%H:%M}",
        "end": f"{BEGIN + timedelta(hours=2):%Y-%m-%dT%H:%M}",
    }

    for chart in ("", "charts/curve/", "charts/load/"):
        address = f"/servers/{server}/capacity/{chart}"
        answer = json.loads(text_of(as_staff.get(address, {**query, "format": "json"})))
        lines = text_of(as_staff.get(address, {**query, "format": "csv"})).splitlines()

        assert reason in answer["verdict"]
        assert reason in " ".join(answer["rows"][0].values())
        assert reason in lines[1]


def test_only_staff_see_capacities(as_alice, servers):
    assert as_alice.get("/servers/mds2/capacity/").status_code == 403
    assert as_alice.get("/servers/mds2/capacity/charts/curve/?format=csv").status_code == 403


def test_the_page_uses_a_fixed_number_of_queries(as_staff, servers, django_assert_num_queries):
    with django_assert_num_queries(30):
        as_staff.get("/servers/mds1/capacity/")
