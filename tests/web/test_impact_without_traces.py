"""Pages of a site with job_stats and service statistics alone: who slows down others."""

import pytest
from django.db.models import F

from ioportal.jobs.models import Job
from ioportal.site.models import UserAccount
from ioportal.telemetry.models import ImpactWindow
from tests import loading, untraced
from tests.logs import at
from tests.web.reading import json_of, text_of, words_of

RANGE = "?start=2017-07-05T12:00Z&end=2017-07-05T12:10Z"


@pytest.fixture(scope="module")
def _stream(module_site, module_logs):
    """Ingest all reads of an untraced server and run all stages."""
    untraced.ingest(module_logs)
    loading.evaluate()


@pytest.fixture
def impacts(as_staff, _stream):
    """Return the rows of a page's impact table: names, kind, impact and source."""

    def fetch(address):
        return words_of(as_staff.get(address)).partition("Source Share of work while slow % ")[2]

    return fetch


def test_the_server_page_lists_users(impacts):
    UserAccount.objects.create(name="alice", email="alice@example.org")
    UserAccount.objects.create(name="dave", email="dave@example.org")

    table = impacts("/servers/mds1/").split()

    assert table[:3] == ["alice", "user", "alice@example.org"]
    assert table[6:9] == ["dave", "user", "dave@example.org"]
    assert table[4] == table[10] == "estimated"


def test_the_home_page_lists_who_slows_down_others_now(impacts):
    for address in ("/", "/now/"):
        assert impacts(address).startswith("dave user")


@pytest.mark.usefixtures("_stream")
def test_the_home_page_names_the_slow_server_its_cause_and_the_contact(as_staff):
    UserAccount.objects.create(name="dave", full_name="Dave Doe", email="dave@example.org")

    for address in ("/", "/now/"):
        page = words_of(as_staff.get(address))
        assert "as long as usual" in page.partition("mds1 ")[2]
        assert "of the work is from dave" in page
        assert "Contact: Dave Doe, dave@example.org" in page


@pytest.mark.usefixtures("_stream")
def test_the_home_page_says_how_slow_a_server_is_in_the_latest_windows(as_staff):
    latest = ImpactWindow.objects.filter(start__gte=at("12:08:30"))
    latest.update(others_us=4 * F("others_usual_us"))

    page = words_of(as_staff.get("/now/"))

    assert "Requests take 4.00 " in page
    assert "mean of five minutes: " in page
    assert "mean of five minutes: 4.00 " not in page

    latest.delete()
    page = words_of(as_staff.get("/now/"))

    assert "Requests take" not in page.partition("mds1 ")[2].partition("mds2 ")[0]
    assert "Until 2017-07-05 12:08:30 , requests took" in page
    assert "of the work was from dave" in page


@pytest.mark.usefixtures("_stream")
def test_a_refresh_of_the_home_page_has_all_that_changes(as_staff):
    whole, refreshed = (words_of(as_staff.get(address)) for address in ("/", "/now/"))

    for title in ("Worst cases", "Slowing others now", "Data freshness", "Needs attention"):
        assert title in whole
        assert title in refreshed


@pytest.mark.usefixtures("_stream")
def test_the_home_page_says_when_a_server_became_fast_again(as_staff):
    ImpactWindow.objects.filter(start__gte=at("12:07:50")).delete()  # as if it had been fast

    page = words_of(as_staff.get("/now/"))

    assert "Requests take about as long as usual again. Until 2017-07-05 12:07:50" in page
    assert "of the work was from dave" in page


def test_the_overview_lists_who_slowed_down_others_in_its_range(impacts):
    assert impacts(f"/overview/{RANGE}").startswith("alice user")


def test_pages_of_users_projects_and_jobs_show_their_impact(impacts):
    storm = Job.objects.get(batch_id=untraced.STORM)

    assert impacts("/users/alice/").startswith("alice user")
    assert "storm of alice application" in impacts("/users/alice/")
    assert impacts("/projects/PHY12/").startswith("PHY12 project")
    assert impacts(f"/jobs/{storm.pk}/").count("estimated") == 4
    assert impacts("/users/bob/") == ""


@pytest.mark.usefixtures("_stream")
def test_the_impact_analysis_is_estimated(as_staff):
    page = words_of(as_staff.get(f"/incidents/impact/{RANGE}"))
    export = json_of(as_staff.get(f"/incidents/impact/{RANGE}&format=json"))

    assert "Impact is estimated" in page
    assert "alice had the largest impact" in page
    assert export["impact"] == "estimated"
    assert len(export["slow_intervals"]) == 2
    assert export["latency"][0]["opcode"] == "all kinds"


@pytest.mark.usefixtures("_stream")
def test_slow_intervals_may_be_saved(as_staff):
    assert words_of(as_staff.get("/incidents/")).count("mds1") == 2


@pytest.mark.usefixtures("_stream")
def test_request_times_are_divided_by_cause(as_staff):
    page = text_of(as_staff.get(f"/incidents/impact/{RANGE}"))
    export = json_of(as_staff.get(f"/incidents/impact/mds1/times/{RANGE}&format=json"))
    slow = [row for row in export["rows"] if row["alice"]]

    assert "Request times of mds1, by cause" in page
    assert {"usual", "alice", "dave", "no single cause"} <= set(export["rows"][0])
    assert slow
    for row in slow:
        assert row["usual"] == 1
        assert row["alice"] > row["no single cause"] >= 0
