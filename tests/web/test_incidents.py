"""Busy or harmful: told from traces that were loaded, against what is usual."""

from datetime import timedelta

import pytest

from ioportal.analysis.impact import FEWEST_WINDOWS
from tests.logs import Run, at, rpc, sacct
from tests.web.reading import csv_of, json_of, words_of

CALM_WINDOWS = FEWEST_WINDOWS + 80  # before 12:10, of a job that is alone
USUAL_US = (80, 100)  # of service, and from arrival to end
SLOW_US = (80, 1_100)


@pytest.fixture
def page(db, as_staff):
    """Fetch the page, or a twin."""
    return lambda query="": as_staff.get(f"/incidents/range/{query}")


@pytest.fixture
def _storm(site, logs, ingest):
    """From 12:10 to 12:11 alice's job sends ten times as much as bob's, and both wait."""
    runs = sacct(
        Run("77", nodes="n1", user="alice", submit="08:00", start="09:00"),
        Run("78", nodes="n2", user="bob", submit="08:00", start="09:00"),
    )
    ingest("sacct", logs("jobs", runs), cluster="anvil")
    calm = [
        rpc(at("12:10") - timedelta(seconds=10 * n), "2@gni", us=USUAL_US)
        for n in range(CALM_WINDOWS, 0, -1)
    ]
    storm = [
        rpc(at("12:10") + timedelta(milliseconds=100 * n), f"{1 if n % 11 else 2}@gni", us=SLOW_US)
        for n in range(600)
    ]
    ingest("rpctrace", logs("trace", "\n".join(calm + storm)), server="mds1")


@pytest.mark.usefixtures("_storm")
def test_who_fills_the_server_is_told_from_who_waits(page):
    query = "?start=2017-07-05T12:10Z&end=2017-07-05T12:12Z"
    rows = {row["principal"]: row for row in csv_of(page(f"{query}&format=csv"))}
    words = words_of(page(query))

    # bob's 55 RPCs took 1,000 us more than usual each, and alice sent 545 of 600.
    assert float(rows["77 alice"]["impact_s"]) == pytest.approx(0.055 * 545 / 600, rel=0.1)
    assert float(rows["77 alice"]["suffered_s"]) == pytest.approx(0.545, rel=0.01)
    assert float(rows["78 bob"]["suffered_s"]) == pytest.approx(0.055, rel=0.01)
    assert "77 alice kept the servers busiest, with 90.8 % of their work" in words


@pytest.mark.usefixtures("_storm")
def test_the_time_in_which_a_server_was_slow_is_found(page):
    twin = json_of(page("?start=2017-07-05T12:09Z&end=2017-07-05T12:12Z&format=json"))

    [slow] = twin["slow"]
    assert slow["server"] == "mds1"
    assert (slow["start"], slow["end"]) == (
        "2017-07-05T12:10:00+00:00",
        "2017-07-05T12:11:00+00:00",
    )
    assert slow["times_as_long"] == pytest.approx(11)


@pytest.mark.usefixtures("_storm")
def test_without_enough_calm_nobody_is_blamed(page):
    words = words_of(page())

    assert "What is usual is not known" in words
    assert "made others wait longest" not in words
    assert "77 alice" in words


def test_without_a_trace_it_says_how_to_take_one(page, site):
    assert "lctl set_param debug=+rpctrace" in words_of(page())


@pytest.mark.usefixtures("_storm")
def test_more_than_a_day_is_refused(page):
    query = "?start=2017-07-01T00:00Z&end=2017-07-05T12:12Z"

    assert "longer than" in words_of(page(query))
    assert page(f"{query}&format=json").status_code == 400


@pytest.mark.usefixtures("_storm")
def test_the_number_of_queries_is_known(page, django_assert_num_queries):
    page()  # what is usual is reckoned once

    with django_assert_num_queries(14):
        page()
