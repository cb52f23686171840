"""Impact analysis of a storm: a queue of single requests, with and without the storm's."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from ioportal.jobs.analysis.anonymity import coarse
from ioportal.jobs.models import CacheEntry, Job
from ioportal.load import incidents
from ioportal.load.models import Incident
from ioportal.site.models import Server
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import Coverage, Principal
from tests import by_hand, served
from tests.logs import at
from tests.web.reading import csv_of, json_of, words_of

QUERY = "?start=2017-07-05T12:09Z&end=2017-07-05T12:12Z"
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module", autouse=True)
def _storm(module_site, module_logs):
    served.load(module_logs)


@pytest.fixture
def page(db, as_staff):
    """Fetch the page, or an export."""
    return lambda query="": as_staff.get(f"/incidents/impact/{QUERY}{query}")


def test_impact_is_what_others_would_have_been_spared(page):
    rows = {row["principal"]: row for row in csv_of(page("&format=csv"))}

    assert float(rows["77 alice"]["impact_s"]) == pytest.approx(served.SPARED_S, rel=0.1)
    assert float(rows["78 bob"]["impact_s"]) == 0
    assert float(rows["78 bob"]["suffered_s"]) == pytest.approx(served.BOB_WAITED_S, rel=0.01)


def test_impact_is_known_where_only_the_start_of_the_range_has_no_baseline(as_staff):
    early = "/incidents/impact/?start=2017-07-05T10:00Z&end=2017-07-05T12:12Z"

    export = json_of(as_staff.get(f"{early}&format=json"))
    rows = {row["principal"]: row for row in export["rows"]}
    words = words_of(as_staff.get(early))

    assert (export["impact"], export["baseline_share"]) == ("measured", 0)
    assert rows["77 alice"]["impact_s"] == pytest.approx(served.SPARED_S, rel=0.1)
    assert {row["suffered_s"] for row in rows.values()} == {None}
    assert {group["own_share"] for group in export["groups"]} == {None}
    assert "Waits above usual and slow intervals are unknown." in words
    assert "impact is unknown" not in words


def test_a_storm_and_its_own_share_of_the_waiting_are_named(page):
    groups = {
        (group["kind"], group["name"]): group for group in json_of(page("&format=json"))["groups"]
    }

    alice = groups["user", "alice"]
    assert alice["impact_s"] == pytest.approx(served.SPARED_S, rel=0.1)
    assert alice["own_share"] > 0.8
    assert not [name for _, name in groups if "bob" in name]
    assert "User alice had the largest impact:" in words_of(page())


@pytest.fixture
def queues(db, as_staff):
    """Fetch a page of the queue of a storm, or an export: by the time of the storm."""

    def fetch(storm, client=as_staff, **more):
        start = at(storm)
        group = {"kind": "user", "key": "alice"}
        span = {"start": start.isoformat(), "end": (start + 2 * MINUTE).isoformat()}
        return client.get("/incidents/impact/mds1/queue/", {**group, **span, **more})

    return fetch


@pytest.mark.parametrize("storm", [served.ALONE, served.CROWDED])
def test_impact_can_be_computed_by_hand_from_the_export_of_a_queue(queues, storm):
    about = json_of(queues(storm, format="json"))

    assert about["impact_is"] == "without"
    expected = about["impact_s"] + about["outside_s"]
    rows = [
        {name: float(value) for name, value in row.items() if name != "start"}
        for row in csv_of(queues(storm, format="csv"))
    ]
    assert by_hand.extra_wait_s(rows) == pytest.approx(expected, rel=by_hand.TOLERANCE)
    for name in ("impact_s", "outside_s"):
        assert sum(row[name] for row in about["rows"]) == pytest.approx(about[name])
    assert about["users_share"] * expected == pytest.approx(about["impact_s"])
    assert by_hand.scale(rows) == pytest.approx(about["scale"], rel=by_hand.TOLERANCE)


def test_a_queue_is_found_in_a_range_that_begins_before_the_first_trace(queues):
    found, of_hour = (
        json_of(queues(served.ALONE, format="json", **span))["impact_s"]
        for span in ({"start": "2017-07-05T09:00Z"}, {"start": "2017-07-05T12:00Z"})
    )

    assert found == of_hour > 0


def test_the_page_of_a_queue_has_a_picture_with_and_without_the_group(queues):
    page = words_of(queues(served.ALONE))

    assert "Without alice, the requests of other users would have waited" in page
    assert "Wait of a request, with and without alice" in page
    assert "all senders s without alice s" in page


def test_users_see_the_queues_of_their_own_groups_as_far_as_others_stay_unknown(
    queues, as_alice, as_bob
):
    crowded, alone = (
        json_of(queues(storm, as_alice, format="json")) for storm in (served.CROWDED, served.ALONE)
    )
    of_staff = json_of(queues(served.CROWDED, format="json"))

    assert crowded["impact_s"] == coarse(of_staff["impact_s"])
    assert [row["wait_s"] for row in crowded["rows"]] == pytest.approx(
        [row["wait_s"] for row in of_staff["rows"]], rel=0.05
    )
    of_staff_alone = json_of(queues(served.ALONE, format="json"))
    for name in ("impact_s", "outside_s", "share"):  # as its flag shows them
        assert alone[name] == coarse(of_staff_alone[name])
    hidden = ("waited_s", "users_waited_s", "waiting_users")
    assert {alone[name] for name in hidden} == {None}
    assert (crowded["waiting_users"], of_staff_alone["waiting_users"]) == (4, 1)
    shown = {name for row in alone["rows"] for name, value in row.items() if value is not None}
    assert shown == {"start", "group_work_s", "group_requests", "capacity_s"}
    assert queues(served.CROWDED, as_bob).status_code == 404
    assert queues(served.CROWDED, as_bob, key="u1").status_code == 404
    for group in ({"kind": "project", "key": "PHY12"}, {"kind": "campaign", "key": "PHY12:relax"}):
        assert queues(served.CROWDED, as_bob, **group).status_code == 200
        assert queues(served.CROWDED, as_alice, **group).status_code == 404


def test_users_see_one_group_of_a_queue(queues, as_alice, as_staff):
    """The figures of two groups differ by what the others of one of them waited."""
    of_staff = json_of(queues(served.CROWDED, format="json"))["groups"]
    job = Job.objects.get(owner="alice")
    group = {"kind": "principal", "key": f"{int(Principal.JOB)}:{job.pk}"}

    seen = [
        json_of(queues(served.CROWDED, as_alice, format="json", **more))
        for more in ({}, group, {"kind": "application", "key": "alice:relax"})
    ]

    assert len(of_staff) > 3
    assert [[row["name"] for row in page["groups"]] for page in seen] == [["alice"]] * 3
    assert {page["name"] for page in seen} == {"alice"}


def test_a_part_of_others_that_is_a_single_user_is_hidden(queues, client):
    """Alice does over twice the work of u1: her waiting is a separate sum, not harm by u1."""
    client.force_login(User.objects.create(username="u1"))

    about = json_of(queues(served.CROWDED, client, key="u1", format="json"))

    rows = about["rows"]
    assert {row["rest_work_s"] for row in rows} == {row["wait_s"] for row in rows} == {None}
    assert any(row["group_work_s"] for row in rows)
    assert about["waiting_users"] is None  # of nine jobs
    assert about["waited_s"]  # of all, alice's included


@pytest.mark.parametrize(
    "query",
    [
        {"key": "nobody"},
        {"kind": "principal", "key": "x"},
        {"kind": "principal", "key": f"1:{10**30}"},
        {"at": "noon"},
        {"at": "2017-07-05T11:00Z"},
        {"start": "2017-07-01", "end": "2017-07-06"},
    ],
)
def test_what_is_no_queue_is_not_found(queues, query):
    assert queues(served.ALONE, **query).status_code == 404


def test_nothing_is_computed_for_groups_of_others_nor_twice_for_almost_the_same_time(
    queues, as_alice, as_charlie
):
    def computed(client, **query):
        queues(served.CROWDED, client, **query)
        return CacheEntry.objects.filter(cache_key__contains="queue").count()

    assert computed(as_charlie, key="alice") == computed(as_charlie, key="any") == 0
    start = at(served.CROWDED)
    for time in (timedelta(seconds=10), timedelta(seconds=10, microseconds=1)):
        assert computed(as_alice, at=(start + time).isoformat()) == 1


@pytest.mark.parametrize(
    ("traced", "impact", "is_evaluated", "notice"),
    [
        pytest.param([("12:00", "13:00")], "measured", True, [], id="complete"),
        pytest.param(
            [("12:00", "12:20:10"), ("12:20:30", "13:00")],
            "estimated",
            True,
            ["The trace of this queue has long gaps"],
            id="with a gap",
        ),
        pytest.param(
            [("12:00", "12:20:46")],
            "measured",
            False,
            ["The trace ends before this queue"],
            id="at the end of the trace",
        ),
    ],
)
def test_a_queue_of_which_requests_are_unknown_is_marked(
    queues, as_staff, traced, impact, is_evaluated, notice
):
    server = Server.objects.get(name="mds1")
    of_server = Coverage.objects.filter(source="rpctrace", source_id=server.pk)
    segment = of_server.first().segment_id
    of_server.delete()
    for start, end in traced:
        span = {"start": at(start), "end": at(end), "segment_id": segment}
        Coverage.objects.create(source="rpctrace", source_id=server.pk, **span)

    about = json_of(queues(served.CROWDED, format="json"))

    assert (about["impact"], about["is_evaluated"]) == (impact, is_evaluated)
    words = words_of(queues(served.CROWDED))
    found = re.findall(
        "The trace of this queue has long gaps|The trace ends before this queue", words
    )
    assert found == notice
    span = "start=2017-07-05T12:19Z&end=2017-07-05T12:22Z"
    assert json_of(as_staff.get(f"/incidents/impact/?{span}&format=json"))["impact"] == impact


def test_a_queue_is_the_same_in_ranges_with_later_queues(as_staff):
    of_range = [
        json_of(as_staff.get(f"/incidents/impact/?start=2017-07-05T12:09Z&end={end}&format=json"))
        for end in ("2017-07-05T12:12Z", "2017-07-05T12:25Z")
    ]

    short, long = (export["queues"] for export in of_range)
    assert short
    assert all(queue in long for queue in short)
    assert len(long) > len(short)


def test_an_incident_lists_its_queues_to_the_users_who_caused_them(as_alice, as_charlie, as_staff):
    start = at(served.CROWDED)
    storm = Incident.objects.create(
        server=Server.objects.get(name="mds1"), start=start, end=start + 2 * MINUTE
    )

    def listed():
        return [
            json_of(client.get(f"/incidents/{storm.pk}/?format=json"))["queues"]
            for client in (as_staff, as_alice, as_charlie)
        ]

    exact, mine = (
        json_of(client.get(f"/incidents/{storm.pk}/?format=json"))["rows"][0]
        for client in (as_staff, as_alice)
    )
    assert (mine["impact_s"], mine["share"]) == (coarse(exact["impact_s"]), coarse(exact["share"]))
    of_staff, of_alice, of_charlie = before = listed()
    assert [row["name"] for row in (*of_staff, *of_alice)] == ["77 alice", "alice"]
    assert of_alice[0]["impact_s"] == coarse(of_staff[0]["impact_s"])
    assert of_charlie == []

    incidents.store_figures([Interval(start, start + MINUTE)])
    assert "alice" not in str(Incident.objects.get().figures)
    assert listed() == before


def test_a_server_shows_the_capacity_of_its_queues_next_to_the_registered_one(as_staff):
    def server(query):
        address = f"/servers/mds1/{query}"
        return words_of(as_staff.get(address)), json_of(as_staff.get(f"{address}&format=json"))

    page, export = server(QUERY)
    Server.objects.update(capacity_per_s=None)
    calm_page, calm = server("?start=2017-07-05T10:00Z&end=2017-07-05T12:00Z")

    low, high = (export[f"capacity_{end}_per_s"] for end in ("low", "high"))
    assert low <= export["capacity_per_s"] <= high
    assert export["capacity_per_s"] == pytest.approx(1 / served.EACH_S, rel=0.01)
    assert export["capacity_seconds"] > 30
    assert "In queues 20.0 requests/s 95 % interval 19.7 to 20.3" in page
    assert "Registered 5,000 requests/s" in page
    assert "Registered not registered" in calm_page
    assert "unknown: too few traced seconds with a queue" in calm_page
    assert (calm["capacity_per_s"], calm["registered_capacity_per_s"]) == (None, None)
