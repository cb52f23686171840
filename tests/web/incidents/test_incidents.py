"""Impact analysis from loaded traces, and saved incidents."""

from datetime import UTC, datetime, timedelta

import pytest

from ioportal.jobs.analysis.anonymity import coarse
from ioportal.load import retention_run
from ioportal.load.analysis.waiting import MIN_BASELINE_WINDOWS
from ioportal.load.models import Incident
from ioportal.site.models import Server
from ioportal.telemetry import levels, retention
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import AttributedRpc
from tests import loading
from tests.logs import Run, at, rpc, sacct
from tests.web.reading import json_of, text_of, words_of

CALM_WINDOWS = MIN_BASELINE_WINDOWS + 80  # before 12:10, of a single job
USUAL_US = (80, 100)  # of service, and from arrival to end
SLOW_US = (80, 1_100)


@pytest.fixture
def page(db, as_staff):
    """Fetch the page, or an export."""
    return lambda query="": as_staff.get(f"/incidents/impact/{query}")


@pytest.fixture(scope="module")
def _storm(module_site, module_logs):
    """Alice's job sends ten times as many RPCs as bob's from 12:10 to 12:11, and both wait."""
    runs = sacct(
        Run("77", nodes="n1", user="alice", submit="08:00", start="09:00"),
        Run("78", nodes="n2", user="bob", submit="08:00", start="09:00"),
    )
    loading.ingest("sacct", module_logs("jobs", runs), cluster="anvil")
    calm = [
        rpc(at("12:10") - timedelta(seconds=10 * n), "2@gni", us=USUAL_US)
        for n in range(CALM_WINDOWS, 0, -1)
    ]
    storm = [
        rpc(at("12:10") + timedelta(milliseconds=100 * n), f"{1 if n % 11 else 2}@gni", us=SLOW_US)
        for n in range(600)
    ]
    loading.ingest("rpctrace", module_logs("trace", "\n".join(calm + storm)), server="mds1")


@pytest.mark.usefixtures("_storm")
def test_a_calm_range_names_no_contact(page):
    words = words_of(page("?start=2017-07-05T12:09Z&end=2017-07-05T12:10Z"))

    assert "No server was slow in this range." in words
    assert "Contact:" not in words


@pytest.mark.usefixtures("_storm")
def test_slow_intervals_are_listed(page):
    export = json_of(page("?start=2017-07-05T12:09Z&end=2017-07-05T12:12Z&format=json"))

    [slow] = export["slow_intervals"]
    assert slow["server"] == "mds1"
    assert (slow["start"], slow["end"]) == (
        "2017-07-05T12:10:00+00:00",
        "2017-07-05T12:11:00+00:00",
    )
    assert slow["worst_ratio"] == pytest.approx(11)
    # One slow minute shows no capacity.
    assert (export["impact"], {row["impact_s"] for row in export["rows"]}) == ("unknown", {None})
    assert "No capacity: " in words_of(page("?start=2017-07-05T12:09Z&end=2017-07-05T12:12Z"))


@pytest.mark.usefixtures("_storm")
def test_without_a_baseline_impact_is_unknown(page):
    words = words_of(page())

    assert "No baseline" in words
    assert "largest impact" not in words
    assert "77 alice" in words
    export = json_of(page("?format=json"))
    assert (export["impact"], export["wait_above_usual_s"]) == ("unknown", None)
    assert {row["impact_s"] for row in export["rows"]} == {None}


@pytest.mark.usefixtures("_storm")
def test_ranges_over_a_day_are_refused(page):
    query = "?start=2017-07-01T00:00Z&end=2017-07-05T12:12Z"

    assert "longer than" in words_of(page(query))
    assert page(f"{query}&format=json").status_code == 400


@pytest.mark.usefixtures("_storm")
def test_the_number_of_queries_is_known(page, settings, django_assert_num_queries):
    page()  # computes the baseline

    with django_assert_num_queries(82):  # 12 of them store the range and the analysis
        page()
    settings.STATISTICS_INTERVAL = timedelta(minutes=1)
    with django_assert_num_queries(28):
        page()


@pytest.mark.usefixtures("_storm")
def test_analyses_are_reused_for_a_while(page, settings):
    settings.STATISTICS_INTERVAL = timedelta(minutes=1)
    query = "?start=2017-07-05T12:09Z&end=2017-07-05T12:12Z&format=json"
    export = json_of(page(query))
    AttributedRpc.objects.all().delete()

    assert json_of(page(query)) == export
    settings.STATISTICS_INTERVAL = timedelta(0)
    assert json_of(page(query)) != export


@pytest.fixture
def saved(db):
    """Save the storm as an incident, and return its address."""

    def save(start="12:10", end="12:12"):
        mds = Server.objects.get(name="mds1")
        title = "alice unpacks <b>again</b>"
        facts = {"start": at(start), "end": at(end), "notes": "alice knows", "saved_by": "sam"}
        return f"/incidents/{Incident.objects.create(title=title, server=mds, **facts).pk}/"

    return save


@pytest.mark.usefixtures("_storm")
def test_slow_intervals_are_suggested_and_saved_with_a_click(as_staff):
    suggested = words_of(as_staff.get("/incidents/"))
    interval = {"server": "mds1", "start": "2017-07-05T12:10:00Z", "end": "2017-07-05T12:11:00Z"}
    page = as_staff.post("/incidents/save/", interval, follow=True)

    assert "2017-07-05 12:10:00" in suggested
    assert page.redirect_chain[0][0] == f"/incidents/{Incident.objects.get().pk}/"
    assert "mds1 slow, 2017-07-05 12:10" in words_of(page)
    assert "that are not saved" not in words_of(as_staff.get("/incidents/"))


@pytest.mark.usefixtures("_storm")
def test_staff_see_impact_and_latency_of_an_incident(as_staff, saved):
    export = json_of(as_staff.get(f"{saved()}?format=json"))
    [enqueue] = export["latency"]

    assert [row["principal"] for row in export["rows"]] == ["77 alice", "78 bob"]
    assert (enqueue["opcode"], enqueue["rpcs"]) == ("LDLM_ENQUEUE", 600)
    assert (enqueue["mean_us"], enqueue["usual_us"]) == (1_100, 100)
    page = as_staff.get(saved())
    assert "alice unpacks <b>again</b>" in words_of(page)
    assert "/compare/?arm=start%3D2017-06-21T12%253A10%253A00" in text_of(page)


@pytest.mark.usefixtures("_storm")
def test_fewer_than_ten_other_jobs_are_hidden(as_alice, saved):
    export = json_of(as_alice.get(f"{saved()}?format=json"))
    words = words_of(as_alice.get(saved())) + words_of(as_alice.get("/incidents/"))

    [mine] = export["rows"]
    assert mine["principal"] == "77 alice"
    assert mine["suffered_s"] == pytest.approx(0.545, rel=0.01)
    assert mine["share"] == coarse(mine["share"])  # of all work: others' are the rest
    assert export["baseline_share"] is None
    assert (export["slow_intervals"], export["latency"]) == ([], [])
    assert "bob" not in words
    assert "alice knows" not in words
    assert "unpacks" not in words + str(export)


@pytest.mark.usefixtures("_storm")
def test_ten_other_jobs_are_shown_as_a_sum(as_alice, saved, logs, ingest):
    many = range(3, 13)
    runs = (
        Run(f"{80 + n}", nodes=f"n{n}", submit="08:00", start="09:00", user=f"u{n % 3}")
        for n in many
    )
    ingest("sacct", logs("more", sacct(*runs)), cluster="anvil")
    later = [rpc(at("12:15") + timedelta(seconds=n), f"{n}@gni", us=SLOW_US) for n in (1, 2, *many)]
    ingest("rpctrace", logs("later", "\n".join(later)), server="mds1")

    export = json_of(as_alice.get(f"{saved('12:15', '12:20')}?format=json"))
    mine, others = export["rows"]
    [kind] = export["latency"]

    assert (mine["principal"], others["principal"]) == ("77 alice", "all others together")
    assert others["rpcs"] == 11
    assert others["suffered_s"] == pytest.approx(0.011, rel=0.01)
    assert (kind["rpcs"], kind["mean_us"]) == (12, 1_100)


@pytest.mark.usefixtures("_storm")
def test_only_staff_save_and_change_incidents(as_alice, saved):
    interval = {"server": "mds1", "start": "2017-07-05T12:10:00Z", "end": "2017-07-05T12:11:00Z"}

    assert as_alice.post("/incidents/save/", interval).status_code == 403
    assert as_alice.post(saved(), {"delete": "yes"}).status_code == 403
    assert Incident.objects.count() == 1


@pytest.mark.usefixtures("_storm")
def test_an_incident_survives_the_removal_of_its_windows(client, sam, alice, saved, settings):
    settings.RAW_RETENTION, settings.WINDOWS_RETENTION = timedelta(days=2), timedelta(days=30)
    address = saved()

    def contents(user):
        client.force_login(user)
        return words_of(client.get(address)), json_of(client.get(f"{address}?format=json"))

    before = contents(sam), contents(alice)
    retention_run.retain(datetime.now(UTC) + timedelta(days=31))

    assert not AttributedRpc.objects.exists()
    assert (contents(sam), contents(alice)) == before
    assert "alice" not in str(Incident.objects.get().figures)


@pytest.mark.usefixtures("_storm")
def test_partly_removed_traces_give_no_impact(as_staff, saved):
    retention.record_dropped(levels.ATTRIBUTED_RPCS, Interval(at("12:00"), at("12:11")))

    assert "No traces or service statistics" in words_of(as_staff.get(saved()))
