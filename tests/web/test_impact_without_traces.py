"""Pages of a site with job_stats and service statistics alone: who slows down others."""

import re
from datetime import timedelta

import pytest
from django.db.models import F, Max, Sum
from django.utils import timezone

from ioportal.findings import latest_data, server_states
from ioportal.findings.flags.episodes import episodes_of
from ioportal.findings.models import EvaluatedServer, Flag
from ioportal.jobs.models import Job
from ioportal.site.models import Server, UserAccount
from ioportal.telemetry.models import DirtyImpact, ImpactWindow, JobGroup, Principal
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
def set_clock(monkeypatch):
    """Set the current time."""
    return lambda now: monkeypatch.setattr(timezone, "now", lambda: now)


def mark_impact(start, end):
    """Mark an interval of the server for evaluation."""
    server = Server.objects.get(name="mds1")
    DirtyImpact.objects.create(server_id=server.pk, start=at(start), end=at(end))


@pytest.fixture
def impacts(as_staff, _stream):
    """Return the rows of a page's impact table: name, kind, impact, share, source and contact."""

    def fetch(address):
        words = words_of(as_staff.get(address))
        return words.partition("while slow % Source ")[2].removeprefix("Contact ")

    return fetch


def test_the_server_page_lists_users(impacts):
    UserAccount.objects.create(name="alice", email="alice@example.org")
    UserAccount.objects.create(name="dave", email="dave@example.org")

    table = impacts("/servers/mds1/").split()

    alice, dave = table[:6], table[6:12]
    assert (*alice[:2], *alice[4:]) == ("alice", "user", "estimated", "alice@example.org")
    assert (*dave[:2], *dave[4:]) == ("dave", "user", "estimated", "dave@example.org")


def test_the_home_page_lists_who_slows_down_others_now(impacts):
    for address in ("/", "/now/"):
        assert impacts(address).startswith("dave user")


@pytest.mark.usefixtures("_stream")
def test_the_home_page_names_the_slow_server_its_cause_and_the_contact(as_staff):
    UserAccount.objects.create(name="dave", full_name="Dave Doe", email="dave@example.org")

    for address in ("/", "/now/"):
        page = words_of(as_staff.get(address))
        assert "times as long as usual" in page.partition("mds1 ")[2]
        assert "latest 5 min of data, because of dave" in page
        assert "Contact: Dave Doe, dave@example.org" in page


def test_no_bystander_is_named_for_load_that_no_job_explains(as_staff, impacts):
    windows = ImpactWindow.objects.filter(kind=JobGroup.Kind.USER, start__gte=at("12:06"))
    unexplained = {"kind": Principal.UNATTRIBUTED, "principal_id": 0}
    for row in windows.values():
        others = {name: 100 * row[name] for name in ("impact_us", "others_us")}
        ImpactWindow.objects.create(**row | others | unexplained)

    assert "because of load that no job explains." in words_of(as_staff.get("/now/"))
    for address in ("/now/", "/servers/mds1/", f"/overview/{RANGE}"):
        assert impacts(address).startswith("load that no job explains unattributed")

    ImpactWindow.objects.filter(**unexplained).update(impact_us=1)
    page = words_of(as_staff.get("/now/"))
    assert "in the latest 5 min of data, without a single cause." in page
    assert "because of" not in page


@pytest.mark.usefixtures("_stream")
def test_the_home_page_says_how_slow_a_server_is_in_the_latest_windows(as_staff, set_clock):
    set_clock(at("12:09:40"))
    latest = ImpactWindow.objects.filter(start__gte=at("12:08:30"))
    latest.update(others_us=4 * F("others_usual_us"))

    page = words_of(as_staff.get("/now/"))

    assert "Requests take 4.00 \N{MULTIPLICATION SIGN} as long as usual (latest 30 s)." in page
    assert "2017-07-05 12:06:00 to 12:09:00 UTC: " in page
    assert " 4.00 times" not in page


@pytest.mark.usefixtures("_stream")
def test_the_figures_of_a_storm_that_is_over_do_not_change(sam):
    ends = latest_data.timed_until()
    times = {
        "mean": Sum("others_us") * 1.0 / Sum("others_usual_us"),
        "worst": Max(F("others_us") * 1.0 / F("others_usual_us")),
        "waited": Sum("impact_us") / 1e6,
    }
    expected = ImpactWindow.objects.filter(kind=JobGroup.Kind.USER, start__gte=at("12:06"))
    expected = expected.aggregate(**times)

    for minutes in (0, 1, 4):
        later = {server: end + timedelta(minutes=minutes) for server, end in ends.items()}
        [slow] = [state for state in server_states.current(sam, later) if state.cause]
        assert slow.is_over == (minutes > 0)
        episode = slow.cause.episode
        assert (episode.start, episode.end) == (at("12:06"), at("12:09"))
        assert episode.mean_times == pytest.approx(expected["mean"])
        assert episode.worst_times == pytest.approx(expected["worst"])
        assert episode.impact_s == pytest.approx(expected["waited"])


@pytest.mark.usefixtures("_stream")
@pytest.mark.parametrize("pending", [False, True])
def test_the_state_of_a_server_and_the_causes_have_the_same_figures(as_staff, pending):
    """A pause divides the storm, whose latest part is short; a part may be pending."""
    windows = ImpactWindow.objects
    windows.filter(start__gte=at("12:07:20"), start__lt=at("12:08:40")).delete()
    windows.filter(start__gte=at("12:08:40")).update(impact_us=F("impact_us") / 100)
    if pending:
        EvaluatedServer.objects.update(until=at("12:07"))

    page = words_of(as_staff.get("/now/"))

    pattern = r"Extra wait of others: ([\d.,]+) s in the latest 5 min of data, because of (\w+)"
    [(headline, cause)] = re.findall(pattern, page)
    [row] = re.findall(rf" {cause} user ([\d.,]+) ", page)
    [in_total] = re.findall(r"UTC: ([\d.,]+) s in total", page)
    assert headline == row
    assert 1 < float(row) < 1.01 * float(in_total)
    [ended] = re.findall(r"to ([\d:]+) UTC: [\d.,]+ s in total", page)
    until = at("12:07" if pending else "12:09")
    assert at(ended) <= until
    ends = [episode.end for flag in Flag.objects.current() for episode in episodes_of(flag)]
    assert max(ends) == until


@pytest.mark.usefixtures("_stream")
@pytest.mark.parametrize(
    ("slow", "seconds", "state", "words"),
    [
        (True, 120, "bad", "Requests take "),
        (True, 121, "unknown", "Unknown: requests are evaluated up to 2 minutes ago"),
        (False, 120, "good", "Requests take about as long as usual."),
        (False, 300, "unknown", "Unknown: requests are evaluated up to 5 minutes ago"),
    ],
)
def test_the_state_of_a_server_is_unknown_after_two_minutes_without_data(
    as_staff, set_clock, slow, seconds, state, words
):
    if not slow:
        ImpactWindow.objects.all().delete()
    [until] = latest_data.timed_until().values()
    set_clock(until + timedelta(seconds=seconds))

    response = as_staff.get("/now/")

    assert f'class="state {state}"' in text_of(response)
    assert words in words_of(response)
    assert ("as long as usual." in words_of(response)) == (not slow and seconds == 120)


@pytest.mark.usefixtures("_stream")
@pytest.mark.parametrize(
    ("pending", "until"),
    [
        pytest.param(("12:08:12", "12:09"), "12:08:10", id="the latest data"),
        pytest.param(("11:50", "11:52"), "11:50:00", id="for twenty minutes"),
        pytest.param(("10:50", "10:52"), "12:09:00", id="a history that was loaded"),
    ],
)
def test_the_home_page_says_up_to_when_impact_is_evaluated(as_staff, pending, until):
    EvaluatedServer.objects.all().delete()
    mark_impact(*pending)

    latest_data.record_evaluated()

    assert f"evaluated until 2017-07-05 {until}" in words_of(as_staff.get("/now/"))


@pytest.mark.usefixtures("_stream")
def test_what_is_evaluated_again_keeps_its_figures_until_then(as_staff):
    before = words_of(as_staff.get("/now/"))
    mark_impact("11:50", "12:09")

    latest_data.record_evaluated()

    assert "evaluated until 2017-07-05 12:09:00" in before
    assert words_of(as_staff.get("/now/")) == before


@pytest.mark.usefixtures("_stream")
def test_a_refresh_of_the_home_page_has_all_that_changes(as_staff):
    whole, refreshed = (words_of(as_staff.get(address)) for address in ("/", "/now/"))

    for title in ("Worst cases", "Extra wait of others", "Data freshness", "Needs attention"):
        assert title in whole
        assert title in refreshed


@pytest.mark.usefixtures("_stream")
def test_the_home_page_says_when_a_server_became_fast_again(as_staff, set_clock):
    set_clock(at("12:09:40"))
    ImpactWindow.objects.filter(start__gte=at("12:07:50")).delete()  # as if it had been fast

    page = words_of(as_staff.get("/now/"))

    assert "Requests take about as long as usual again." in page
    assert "2017-07-05 12:06:00 to 12:07:50" in page
    assert "last 5 min, because of dave" in page


def test_the_overview_lists_who_slowed_down_others_in_its_range(impacts):
    assert impacts(f"/overview/{RANGE}").startswith("alice user")


def test_pages_of_users_projects_and_jobs_show_their_impact(impacts):
    storm = Job.objects.get(batch_id=untraced.STORM)

    assert impacts("/users/alice/").startswith("alice user")
    assert "storm of alice application" in impacts("/users/alice/")
    assert impacts("/projects/PHY12/").startswith("PHY12 project")
    assert "storm of project PHY12 campaign" in impacts("/projects/PHY12/")
    assert impacts(f"/jobs/{storm.pk}/").count("estimated") == 1  # no other job adds to it
    assert impacts("/users/bob/") == ""


@pytest.mark.usefixtures("_stream")
def test_users_see_the_impact_of_groups_whose_jobs_they_see(as_alice, as_bob):
    """Alice's job names the project, but only bob is a member: others' jobs are its impact, too."""
    storm = Job.objects.get(batch_id=untraced.STORM)

    def kinds(client, page):
        return re.findall(r"(\w+) \S+ \S+ estimated", words_of(client.get(page)))

    assert kinds(as_alice, f"/jobs/{storm.pk}/") == ["job"]
    groups = ImpactWindow.objects.exclude(kind__in=Principal.values)
    groups.update(impact_us=20 * F("impact_us"))  # as if other jobs had added to it
    assert kinds(as_alice, f"/jobs/{storm.pk}/") == ["user", "application", "job"]
    assert kinds(as_alice, "/users/alice/") == ["user", "application"]
    assert kinds(as_alice, "/projects/PHY12/") == []
    assert kinds(as_bob, f"/jobs/{storm.pk}/") == ["project", "campaign", "job"]
    assert kinds(as_bob, "/projects/PHY12/") == ["project", "campaign", "campaign"]


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
    assert '"--principal:alice"' in page  # coloured as in the other charts of a page
    assert "Request times of mds1, by cause" in text_of(as_staff.get(f"/servers/mds1/{RANGE}"))
    assert "up to 24 hours" in text_of(as_staff.get("/servers/mds1/?last=7d"))
    assert {"usual", "alice", "dave", "no single cause"} <= set(export["rows"][0])
    assert slow
    for row in slow:
        assert row["usual"] == 1
        assert row["alice"] > row["no single cause"] >= 0
