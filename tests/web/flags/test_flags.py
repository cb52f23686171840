"""The list of flags and the page of one flag: contents, visibility, and triage."""

import json
import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ioportal.flags import triage
from ioportal.flags.models import Flag
from ioportal.jobs.models import Job
from ioportal.reporting.flag_history import flag_mark
from ioportal.site.models import Cluster, Filesystem, Nid, Server
from ioportal.telemetry import levels, retention
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import Coverage, ImpactWindow, Principal
from tests.logs import Run, at, job_stats, sacct
from tests.web.reading import csv_of, json_of, text_of, words_of

NAME = "<b>relax</b>\u202e"
SHOWN_NAME = "<b>relax</b>\\u202e"
RULE = "metadata-operations"


@pytest.fixture
def flag_of(site, logs, ingest, evaluate):
    """Flag jobs of alice, each with 2,400,000 metadata operations from 12:00 to 12:20."""

    def make(*jobs):
        runs = [Run(job, end="12:20", name=NAME) for job in jobs]
        ingest("sacct", logs(f"jobs-{jobs[0]}", sacct(*runs)), cluster="anvil")
        for minute in range(21):
            entries = {job: {"open": 120_000 * minute} for job in jobs if minute}
            text = job_stats("lake-MDT0000", {f"9{jobs[0]}": {"open": 1}, **entries})
            ingest("job_stats", logs("read", text), at=at(f"12:{minute:02d}").isoformat())
        return evaluate()[RULE, jobs[0]]

    return make


@pytest.fixture
def heavy_flag(flag_of):
    """The flag of alice's job 77."""
    return flag_of("77")


@pytest.fixture
def new_flag(new_job):
    """Create a flag of a job, without its data."""

    def make(job=None, **facts):
        job = job or new_job()
        return Flag.objects.create(
            **{
                "rule": RULE,
                "rule_version": 1,
                "subject_kind": "job",
                "subject": str(job.pk),
                "job": job,
                "owner": job.owner,
                "cluster": job.cluster,
                "state": Flag.State.OPEN,
                "severity": Flag.Severity.WARNING,
                "since": at("12:00"),
                "until": at("13:00"),
                "value": 3e6,
                "numbers": {"metadata_operations": 3e6},
                "thresholds": {"metadata_operations": 2e6},
                "scope": "rule defaults",
                "advice": "Keep software off Lustre.",
                **facts,
            }
        )

    return make


def post(client, path, *flags, **fields):
    """Submit the triage form; return the next page."""
    return client.post(path, {"flag": [flag.pk for flag in flags], **fields}, follow=True)


def listed(client, query=""):
    """Return the keys of the flags of a list, in order."""
    return [row["id"] for row in json_of(client.get(f"/flags/?format=json{query}"))["rows"]]


def test_timelines_mark_where_a_flag_reached_its_threshold(as_staff, heavy_flag):
    of_a_run = Flag.objects.get(pk=heavy_flag.pk)
    of_a_run.pk, of_a_run.rule = None, "low-cpu-efficiency"
    of_a_run.save()
    page = text_of(as_staff.get(f"/jobs/{heavy_flag.job.pk}/"))

    words = {drawn["text"]: drawn["x"] for drawn in figure(page, "metadata")["annotations"]}
    # At 120,000 a minute the read at 12:17 reaches 2 million; the job ends at 12:20.
    assert words["Excessive metadata operations"] == "2017-07-05T12:17:00.000"
    assert words["Low CPU efficiency with heavy I/O (whole run)"] == "2017-07-05T12:20:00.000"
    page = text_of(as_staff.get(f"/flags/{heavy_flag.pk}/"))
    [mark] = figure(page, "evidence")["annotations"]
    assert (mark["text"], mark["x"]) == ("threshold reached", "2017-07-05T12:17:00.000")


def test_a_threshold_reached_after_the_job_is_marked_at_its_end(as_staff, heavy_flag):
    Job.objects.filter(pk=heavy_flag.job.pk).update(ended_at=at("12:16:10"))
    of_a_run = Flag.objects.get(pk=heavy_flag.pk)
    of_a_run.pk, of_a_run.rule, of_a_run.since = None, "low-cpu-efficiency", at("12:18")
    of_a_run.save()

    drawn = figure(text_of(as_staff.get(f"/jobs/{heavy_flag.job.pk}/")), "metadata")
    words = {mark["text"]: mark["x"] for mark in drawn["annotations"]}
    assert words["2 flags, counted by 12:18:00"] == "2017-07-05T12:16:10.000"
    assert drawn["xaxis"]["range"][1] == "2017-07-05T12:16:30.000"
    [mark] = figure(text_of(as_staff.get(f"/flags/{heavy_flag.pk}/")), "evidence")["annotations"]
    assert mark["text"] == "threshold reached, counted by 12:17:00"
    assert mark["x"] == "2017-07-05T12:16:10.000"
    rows = json_of(as_staff.get(f"/flags/{heavy_flag.pk}/history/?format=json"))["rows"]
    reached = next(row for row in rows if (row["amount"] or 0) >= row["threshold"])
    assert reached["end"] == "2017-07-05T12:17:00+00:00"


def test_a_mark_names_the_day_of_a_read_on_another_day():
    mark = flag_mark(at("24:00:01"), "reached", ended_at=at("23:50"))

    assert (mark.at, mark.text) == (at("23:50"), "reached, counted by 2017-07-06 00:00:01")


def figure(page, name):
    """Return the layout of a chart in a page."""
    script = re.search(rf'<script id="figure-{name}" type="application/json">(.*?)</script>', page)
    return json.loads(script[1])["layout"]


def test_the_list_shows_rule_subject_and_value(as_staff, heavy_flag):
    words = words_of(as_staff.get("/flags/"))

    assert "Excessive metadata operations" in words
    assert f"job 77 {SHOWN_NAME} · alice · anvil" in words
    assert "2,400,000 operations threshold 2,000,000 operations (1.20" in words


def test_the_page_shows_values_with_thresholds(as_staff, heavy_flag):
    words = words_of(as_staff.get(f"/flags/{heavy_flag.pk}/"))

    assert "Metadata operations of the job 2,400,000 operations 2,000,000 operations" in words
    assert "thresholds: rule defaults" in words
    assert "Keep software and its small files off Lustre" in words
    assert "No resolved flags of this rule." in words


def test_numbers_of_the_same_title_are_listed_once(as_staff, new_flag):
    flag = new_flag(
        rule="startup-storm",
        numbers={"startup_operations": 2e5, "node_count": 20, "startup_nodes": 20},
        thresholds={"startup_operations": 1.5e5, "startup_nodes": 16},
    )
    words = words_of(as_staff.get(f"/flags/{flag.pk}/"))

    assert words.count("Nodes 20 nodes") == 1
    assert "Nodes 20 nodes 16 nodes" in words


def test_the_history_crosses_the_threshold_at_the_finding(as_staff, heavy_flag):
    rows = csv_of(as_staff.get(f"/flags/{heavy_flag.pk}/history/?format=csv"))
    over = [row for row in rows if float(row["amount"] or 0) >= float(row["threshold"])]

    assert {row["threshold"] for row in rows} == {"2000000.0"}
    assert over[0]["end"] == "2017-07-05T12:17:00+00:00"
    assert max(float(row["amount"] or 0) for row in rows) == heavy_flag.value
    assert "figure-evidence" in text_of(as_staff.get(f"/flags/{heavy_flag.pk}/"))


def test_the_history_of_a_rate_is_by_ten_minutes(as_staff, heavy_flag):
    peak = Flag.objects.get(rule="metadata-rate", job=heavy_flag.job)
    rows = csv_of(as_staff.get(f"/flags/{peak.pk}/history/?format=csv"))

    assert max(float(row["amount"] or 0) for row in rows) == peak.value


OUTLIER = {
    "rule": "outlier",
    "numbers": {"z_score": 6.0, "metadata_operations_per_node": 1e6, "usual_operations": 100},
    "thresholds": {"z_score": 3.0},
}


def test_an_outlier_has_a_histogram_of_similar_jobs(as_staff, new_job, new_flag):
    for operations in (50, 60, 900):
        new_job({"metadata_operations_per_node": operations})
    flag = new_flag(new_job({"metadata_operations_per_node": 1e6}), **OUTLIER)

    rows = csv_of(as_staff.get(f"/flags/{flag.pk}/similar-jobs/?format=csv"))

    bins = [row for row in rows if int(row["count"])]
    assert [row["count"] for row in bins] == ["2", "1"]
    assert int(rows[-1]["from"]) <= 1e6 < int(rows[-1]["below"])
    words = words_of(as_staff.get(f"/flags/{flag.pk}/"))
    assert "3 similar jobs with today's figures" in words
    assert "figure-similar-jobs" in text_of(as_staff.get(f"/flags/{flag.pk}/"))


def test_owners_do_not_see_the_histogram_of_similar_jobs(as_alice, new_job, new_flag):
    flag = new_flag(new_job({"metadata_operations_per_node": 1e6}), **OUTLIER)

    assert "figure-similar-jobs" not in text_of(as_alice.get(f"/flags/{flag.pk}/"))
    assert as_alice.get(f"/flags/{flag.pk}/similar-jobs/").status_code == 404


def test_a_history_past_retention_is_not_drawn(as_staff, heavy_flag):
    retention.record_dropped(levels.IO_WINDOWS, Interval(at("00:00"), at("12:10")))

    words = words_of(as_staff.get(f"/flags/{heavy_flag.pk}/"))

    assert "No chart: the data of this time is past its retention." in words
    assert as_staff.get(f"/flags/{heavy_flag.pk}/history/").status_code == 404


def test_flags_are_ordered_by_severity_and_latest_data(as_staff, new_flag):
    notice = new_flag(severity=1)
    older = new_flag(severity=3, until=at("12:30"))
    newer = new_flag(severity=3)
    warning = new_flag(severity=2)

    assert listed(as_staff) == [newer.pk, older.pk, warning.pk, notice.pk]


def test_resolutions_are_shown_on_similar_flags(as_staff, new_flag):
    past = new_flag(owner="bob")
    words = words_of(
        post(as_staff, "/flags/", past, action="resolve", reason="moved conda to CVMFS\n<i>all</i>")
    )
    answer = as_staff.get(f"/flags/{new_flag().pk}/")

    assert "1 flag resolved." in words
    assert "No flags to triage" in words
    assert "by sam: moved conda to CVMFS <i>all</i>" in words_of(answer)
    assert "<i>all" not in text_of(answer)


def test_similar_flags_resolved_by_staff_come_first_then_same_owner_and_name(
    as_staff, new_job, new_flag
):
    def past(hours, **facts):
        resolved = {"state": "resolved", "resolution": "so", "resolved_at": at("20:00")}
        resolved["resolved_by"] = facts.pop("resolved_by", "")
        return new_flag(new_job(**facts), until=at("13:00") + timedelta(hours=hours), **resolved).pk

    by_staff = past(0, owner="dora", name="third", resolved_by="sam")
    stranger = past(3, owner="dora", name="other")
    same_name = past(1, owner="bob", name="relax")
    same_owner = past(2, owner="alice", name="other")

    text = text_of(as_staff.get(f"/flags/{new_flag().pk}/"))
    places = [text.index(f"/flags/{pk}/") for pk in (by_staff, same_owner, same_name, stranger)]
    assert places == sorted(places)


def test_similar_flags_of_the_same_host_come_first(as_staff, new_flag):
    def host(key, **facts):
        return new_flag(subject_kind="host", subject=f"3:{key}", owner="", **facts).pk

    resolved = {"state": "resolved", "resolution": "so", "resolved_at": at("20:00")}
    same, other, now = host(4, until=at("12:30"), **resolved), host(5, **resolved), host(4)
    Flag.objects.update(job=None)

    text = text_of(as_staff.get(f"/flags/{now}/"))
    assert text.index(f"/flags/{same}/") < text.index(f"/flags/{other}/")


def test_several_flags_are_triaged_at_once_and_filters_stay(as_staff, sam, new_flag):
    flags = [new_flag(), new_flag()]

    answer = post(as_staff, "/flags/?user=alice", *flags, action="assign", assignee="sam")

    assert answer.redirect_chain == [("/flags/?user=alice", 302)]
    assert {flag.assignee for flag in Flag.objects.all()} == {sam}
    assert listed(as_staff, "&assignee=me") == listed(as_staff)
    assert listed(as_staff, "&assignee=none") == []


def test_a_flag_is_muted_until_the_given_time(as_staff, new_flag):
    flag = new_flag()

    post(
        as_staff,
        f"/flags/{flag.pk}/",
        flag,
        action="mute",
        until="2190-01-01T00:00",
        reason="known",
    )

    assert listed(as_staff) == []
    assert listed(as_staff, "&state=muted") == [flag.pk]
    assert "Until 2190-01-01 00:00. known" in words_of(as_staff.get(f"/flags/{flag.pk}/"))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"action": "resolve", "reason": ""}, "Describe the fix", id="no reason"),
        pytest.param({"action": "mute"}, "Enter the end of the mute period.", id="no end"),
        pytest.param(
            {"action": "mute", "until": "2017-01-01T00:00"}, "end in the future", id="ended"
        ),
        pytest.param({"action": "mute", "until": "9999-12-31T23:59"}, "less than", id="never"),
        pytest.param({"action": "assign", "assignee": "alice"}, "valid choice", id="no staff"),
        pytest.param({"action": "burn"}, "valid choice", id="no action"),
        pytest.param({"action": "comment", "reason": "a\x00b"}, "Null characters", id="no text"),
    ],
)
@pytest.mark.parametrize("path", ["/flags/", "/flags/{}/"])
def test_invalid_actions_show_errors_and_keep_the_input(path, fields, words, as_staff, new_flag):
    flag = new_flag()

    answer = post(as_staff, path.format(flag.pk), flag, **{"reason": "typed", **fields})

    assert words in words_of(answer)
    assert fields.get("reason", "typed") in text_of(answer)
    assert " autofocus" in text_of(answer)  # the form is below the flags
    assert not flag.events.exists()


def test_an_action_without_flags_is_refused(as_staff, new_flag):
    new_flag()

    assert "Select at least one flag." in words_of(post(as_staff, "/flags/", action="acknowledge"))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ["abuse", "warning", "seen"], id="worst first, of those to triage"),
        pytest.param("&state=all", ["abuse", "warning", "seen", "done"], id="all"),
        pytest.param("&state=acknowledged", ["seen"], id="in a state"),
        pytest.param("&severity=3", ["abuse"], id="of a severity"),
        pytest.param("&rule=stat-storm", ["seen"], id="of a rule"),
        pytest.param("&cluster=birch", ["abuse"], id="of a cluster"),
        pytest.param("&filesystem=lake", ["warning"], id="of a filesystem"),
        pytest.param("&user=bob,dora", ["warning"], id="of users"),
        pytest.param("&q=4711", ["seen"], id="of a job's id"),
        pytest.param("&q=elax+2", ["warning"], id="of a job's name"),
    ],
)
def test_flags_are_filtered(query, expected, as_staff, new_job, new_flag):
    birch = Cluster.objects.create(name="birch", time_zone="UTC", batch_system="pbs")
    lake = Filesystem.objects.create(name="lake")
    resolved = {"state": "resolved", "resolution": "so", "resolved_at": at("20:00")}
    flags = {
        "abuse": new_flag(new_job(cluster=birch), severity=3),
        "warning": new_flag(new_job(owner="bob", name="relax 2"), filesystem=lake),
        "seen": new_flag(
            new_job(batch_id="4711", name="other"),
            severity=1,
            rule="stat-storm",
            state="acknowledged",
        ),
        "done": new_flag(new_job(owner="emil"), severity=1, until=at("12:30"), **resolved),
    }

    assert listed(as_staff, query) == [flags[name].pk for name in expected]


def test_an_invalid_filter_shows_no_flags(as_staff, new_flag):
    new_flag()

    assert "Invalid filter" in words_of(as_staff.get("/flags/?state=odd"))
    assert as_staff.get("/flags/?rule=odd&format=csv").status_code == 400


@pytest.fixture
def mds(db):
    """A metadata server that was traced until 12:30."""
    lake = Filesystem.objects.create(name="lake")
    server = Server.objects.create(name="mds1", filesystem=lake, kind=Server.Kind.MDS)
    traced = {"start": at("12:00"), "end": at("12:30"), "segment_id": 1}
    Coverage.objects.create(source="rpctrace", source_id=server.pk, **traced)
    return server


def test_flags_with_current_impact_come_first(as_staff, mds, new_job, new_flag):
    worse = new_flag(severity=3)
    with_impact = new_flag(new_job(ended_at=None))
    ImpactWindow.objects.create(
        start=at("12:28"),
        server_id=mds.pk,
        kind=Principal.JOB,
        principal_id=with_impact.job_id,
        impact_us=90_000_000,
        service_us=10_000_000,
        work_us=10_000_000,
        others_us=100_000_000,
        others_usual_us=10_000_000,
    )

    assert listed(as_staff) == [with_impact.pk, worse.pk]
    assert "running" in words_of(as_staff.get("/flags/"))
    assert "Slowing others now: 0:01:30 extra wait in the last 5 min" in words_of(
        as_staff.get("/flags/")
    )
    words = words_of(as_staff.get(f"/flags/{with_impact.pk}/"))
    assert "Slowing others now: 0:01:30" in words
    assert "2017-07-05 12:28:00 2017-07-05 12:28:10 mds1 0:01:30" in words

    Job.objects.filter(pk=with_impact.job_id).update(ended_at=at("12:29"))
    assert "Slowing others now" not in words_of(as_staff.get("/flags/"))


def test_impact_of_a_host_is_limited_to_the_time_and_filesystem_of_the_flag(
    as_staff, mds, new_flag
):
    pond = Filesystem.objects.create(name="pond")
    elsewhere = Server.objects.create(name="mds9", filesystem=pond, kind=Server.Kind.MDS)
    host = Nid.objects.create(text="10.0.0.7@tcp")
    flag = new_flag(
        rule="host-outside-jobs",
        subject_kind="host",
        subject=f"3:{host.pk}",
        filesystem=mds.filesystem,
        since=at("12:20"),
        until=at("12:25"),
    )
    Flag.objects.update(job=None)
    for clock, server, us in (("12:18", mds, 5e6), ("12:21", elsewhere, 7e6), ("11:00", mds, 9e6)):
        times = dict.fromkeys(("service_us", "work_us", "others_us", "others_usual_us"), 1)
        ImpactWindow.objects.create(
            start=at(clock),
            server_id=server.pk,
            kind=3,
            principal_id=host.pk,
            impact_us=int(us),
            **times,
        )

    assert json_of(as_staff.get(f"/flags/{flag.pk}/?format=json"))["impact_s"] == 5
    assert csv_of(as_staff.get("/flags/?format=csv"))[0]["name"] == "host 10.0.0.7@tcp"


@pytest.mark.parametrize(
    ("visitor", "status"),
    [
        pytest.param("sam", 200, id="staff"),
        pytest.param("alice", 200, id="the owner"),
        pytest.param("bob", 200, id="a member of the project"),
        pytest.param("charlie", 404, id="a stranger"),
        pytest.param(None, 302, id="anonymous"),
    ],
)
def test_a_flag_is_visible_to_those_who_see_its_job(visitor, status, request, client, new_flag):
    flag = new_flag()
    if visitor:
        client.force_login(request.getfixturevalue(visitor))

    for path in (f"/flags/{flag.pk}/", f"/flags/{flag.pk}/?format=json"):
        assert client.get(path).status_code == status
    if status == 404:
        assert listed(client, "&state=all") == []
        assert client.get(f"/flags/{flag.pk}/history/").status_code == 404
    if status == 302:
        assert client.get("/flags/")["Location"].startswith("/login/")


def test_owners_do_not_see_triage_by_staff(client, alice, sam, new_flag):
    flag = new_flag()
    triage.comment([flag.pk], sam, "secret of staff")
    triage.assign([flag.pk], sam, sam)
    triage.resolve([flag.pk], sam, "secret reason")
    new_flag(state="suppressed", suppression_reasons=["secret doubts"])
    client.force_login(alice)

    for path in (f"/flags/{flag.pk}/", "/flags/?state=all", f"/flags/{new_flag().pk}/"):
        for query in ("", "format=json"):
            text = text_of(client.get(f"{path}{'&' if '?' in path else '?'}{query}"))
            assert "secret" not in text
            assert ">sam<" not in text
            assert '"sam"' not in text
    assert listed(client, "&state=all").count(flag.pk) == 1
    assert client.get("/flags/?state=suppressed&format=json").status_code == 400


def test_flags_with_insufficient_data_stay_hidden_from_owners(client, alice, sam, new_flag):
    flag = new_flag(state="suppressed", suppression_reasons=["Its data are partial."])
    triage.resolve([flag.pk], sam, "The reads are back.")

    known = new_flag(state="acknowledged", suppression_reasons=["Its data are partial."])

    for person, expected in ((alice, []), (sam, [flag.pk])):
        client.force_login(person)
        assert listed(client, "&state=acknowledged") == (expected and [known.pk])
        assert listed(client, "&state=resolved") == expected
        assert client.get(f"/flags/{flag.pk}/").status_code == (200 if expected else 404)
        assert f"/jobs/{flag.job_id}/" not in text_of(client.get("/jobs/?flag=any"))
    assert "Only staff can see this flag." in words_of(client.get(f"/flags/{flag.pk}/"))


@pytest.mark.parametrize("action", ["resolve", "comment", "acknowledge"])
def test_owners_cannot_triage(action, as_alice, new_flag):
    flag = new_flag()

    for path in ("/flags/", f"/flags/{flag.pk}/"):
        assert post(as_alice, path, flag, action=action, reason="so").status_code == 403
    assert not flag.events.exists()
    assert "Acknowledge" not in words_of(as_alice.get(f"/flags/{flag.pk}/"))


def test_flags_of_users_with_simulated_jobs_are_simulated(as_staff, cluster, new_job, new_flag):
    flag = new_flag(rule="campaign", subject_kind="user", subject="alice", cluster=None)
    assert not json_of(as_staff.get(f"/flags/{flag.pk}/?format=json"))["simulated"]

    Cluster.objects.update(simulated=True)

    assert json_of(as_staff.get(f"/flags/{flag.pk}/?format=json"))["simulated"]
    assert "Simulated data:" in words_of(as_staff.get("/flags/"))


def test_a_flag_of_a_user_links_to_the_jobs(as_staff, new_job, new_flag):
    flag = new_flag(rule="campaign", subject_kind="user", subject="alice")
    for job, clock in (("during", "12:30"), ("after", "13:30")):
        new_job(batch_id=job, started_at=at(clock), ended_at=at(clock) + timedelta(minutes=9))
    text = text_of(as_staff.get(f"/flags/{flag.pk}/"))
    [address] = re.findall(r'href="(/jobs/\?[^"]*)">these jobs', text)
    jobs = text_of(as_staff.get(unescape(address)))

    assert ">during<" in jobs
    assert ">after<" not in jobs


def test_a_flag_of_a_filesystem_links_to_unregistered_nids(as_staff, mds, new_flag):
    subject = {"subject_kind": "filesystem", "subject": str(mds.filesystem_id)}
    flag = new_flag(rule="unattributed", filesystem=mds.filesystem, **subject)

    page = text_of(as_staff.get(f"/flags/{flag.pk}/"))
    assert 'href="/ingest/nids/">unregistered NIDs' in page


def test_a_suppressed_flag_shows_the_reason(as_staff, new_flag):
    flag = new_flag(state="suppressed", suppression_reasons=["Its data are partial."])

    assert "Suppressed: Its data are partial." in words_of(as_staff.get(f"/flags/{flag.pk}/"))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        pytest.param("", "Rules are evaluated automatically", id="none at all"),
        pytest.param("?user=nobody", "No matching flags", id="none of the filters"),
    ],
)
def test_an_empty_list_explains_the_next_step(query, words, as_staff):
    assert words in words_of(as_staff.get(f"/flags/{query}"))


def test_flags_are_shown_on_pages_of_their_jobs(as_staff, heavy_flag):
    title = "Excessive metadata operations"
    pages = {
        f"/jobs/{heavy_flag.job_id}/": title,
        "/jobs/": "badge severity-abuse",
        f"/jobs/?flag={RULE}": ">77<",
        "/users/alice/": title,
        "/overview/?start=2017-07-05T12:00Z&end=2017-07-05T12:20Z": "badge severity-abuse",
        "/": title,
    }

    for page, words in pages.items():
        assert words in text_of(as_staff.get(page)), page
    # in the tables of the heaviest and of the typical jobs
    assert text_of(as_staff.get("/users/alice/")).count('(open)">abuse</a>') == 2
    assert ">77<" not in text_of(as_staff.get("/jobs/?flag=campaign"))
    drawn = json_of(as_staff.get(f"/jobs/{heavy_flag.job_id}/timelines/metadata/?format=json"))
    assert drawn["rows"]


def test_owners_see_their_flags_first(as_alice, heavy_flag):
    home = text_of(as_alice.get("/"))

    assert "2,400,000 operations, threshold 2,000,000 operations" in words_of(as_alice.get("/"))
    assert home.index("badge severity-warning") < home.index("Latest jobs")
    assert '(open)">abuse</a>' in home  # in the tables of jobs


def test_the_navigation_counts_flags_to_triage(client, sam, alice, new_flag):
    new_flag()
    new_flag(state="muted", muted_until=timezone.now())

    for person, expected in ((sam, "Flags 1"), (alice, "Flags Incidents")):
        client.force_login(person)
        assert expected in words_of(client.get("/incidents/"))


def test_the_number_of_queries_does_not_grow_with_the_flags(as_staff, new_job, new_flag):
    def query_counts():
        counts = []
        for page in pages:
            cache.clear()
            with CaptureQueriesContext(connection) as queries:
                assert as_staff.get(page).status_code == 200
            counts.append(len(queries))
        return counts

    def past(owner):
        resolved = {"state": "resolved", "resolution": "so", "resolved_at": at("20:00")}
        new_flag(new_job(owner=owner), **resolved, resolved_by="sam")

    first = new_flag(new_job({"metadata_operations": 3e6}))
    past("alice")
    pages = ["/flags/", "/flags/?state=all", f"/flags/{first.pk}/", "/jobs/", "/users/alice/", "/"]
    before = query_counts()
    for owner in ("alice", "bob", "dora"):
        new_flag(new_job(owner=owner), severity=3)
        past(owner)

    assert query_counts() == before


def test_only_active_staff_are_assignees(as_staff, alice, new_flag):
    User.objects.create_user("gone", is_staff=True, is_active=False)
    new_flag()
    text = text_of(as_staff.get("/flags/"))

    assert '<option value="sam">' in text
    assert '<option value="alice">' not in text
    assert '<option value="gone">' not in text
