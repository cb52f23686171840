"""Impact analysis of a storm: a queue of single requests, with and without the storm's."""

from datetime import timedelta

import pytest

from ioportal.analysis.impact import MIN_BASELINE_WINDOWS
from tests import loading
from tests.logs import Run, at, rpc, sacct
from tests.web.reading import csv_of, json_of, words_of

QUERY = "?start=2017-07-05T12:09Z&end=2017-07-05T12:12Z"
EACH_S = 0.05  # for which a request occupies the server
USUAL_S, SERVICE_US = 0.0001, 80


def queue(*senders):
    """Return arrival, NID and time at the server of each request, in seconds after 12:10.

    Each sender is a tuple (NID, requests a second, seconds).
    """
    arrivals = sorted(
        (n / rate, nid) for nid, rate, seconds in senders for n in range(rate * seconds)
    )
    free, served = 0.0, []
    for arrival, nid in arrivals:
        free = max(free, arrival) + EACH_S
        served.append((arrival, nid, free - EACH_S - arrival + USUAL_S))
    return served


ALICE, BOB = ("1@gni", 37, 20), ("2@gni", 3, 60)
WITH, WITHOUT = queue(ALICE, BOB), queue(BOB)
BOB_WAITED_S, SPARED_S = (
    sum(took - USUAL_S for _, nid, took in of if nid == BOB[0]) - (others or 0)
    for of, others in (
        (WITH, 0),
        (WITH, sum(took - USUAL_S for _, _, took in WITHOUT)),
    )
)


@pytest.fixture(scope="module", autouse=True)
def _storm(module_site, module_logs):
    runs = sacct(
        Run("77", nodes="n1", user="alice", submit="08:00", start="09:00"),
        Run("78", nodes="n2", user="bob", submit="08:00", start="09:00"),
    )
    loading.ingest("sacct", module_logs("jobs", runs), cluster="anvil")
    calm = [
        rpc(at("12:10") - timedelta(seconds=10 * n), "2@gni", us=(SERVICE_US, 100))
        for n in range(MIN_BASELINE_WINDOWS + 80, 0, -1)
    ]
    ends = sorted((arrival + took, nid, took) for arrival, nid, took in WITH)
    storm = [
        rpc(at("12:10") + timedelta(seconds=end), nid, us=(SERVICE_US, round(took * 1e6)))
        for end, nid, took in ends
    ]
    loading.ingest("rpctrace", module_logs("trace", "\n".join(calm + storm)), server="mds1")


@pytest.fixture
def page(db, as_staff):
    """Fetch the page, or an export."""
    return lambda query="": as_staff.get(f"/incidents/impact/{QUERY}{query}")


def test_impact_is_what_others_would_have_been_spared(page):
    rows = {row["principal"]: row for row in csv_of(page("&format=csv"))}

    assert float(rows["77 alice"]["impact_s"]) == pytest.approx(SPARED_S, rel=0.1)
    assert float(rows["78 bob"]["impact_s"]) == 0
    assert float(rows["78 bob"]["suffered_s"]) == pytest.approx(BOB_WAITED_S, rel=0.01)


def test_a_storm_and_its_own_share_of_the_waiting_are_named(page):
    groups = {
        (group["kind"], group["name"]): group for group in json_of(page("&format=json"))["groups"]
    }

    alice = groups["user", "alice"]
    assert alice["impact_s"] == pytest.approx(SPARED_S, rel=0.1)
    assert alice["own_share"] > 0.8
    assert not [name for _, name in groups if "bob" in name]
    assert "User alice had the largest impact:" in words_of(page())
