"""The comparison page, over jobs whose opens fell four times and whose run time is constant."""

import json
import re
from datetime import timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest
from django.core.cache import cache
from django.utils import timezone

from ioportal.jobs.models import DirtyStatistics, Job, JobStatistics, Population
from ioportal.load.models import Incident
from ioportal.site.models import Filesystem, Server, ServerVersion
from ioportal.web.comparisons.charts import PARTS
from tests.web.comparisons.campaigns import AFTER, BEFORE, CHANGED, DAYS
from tests.web.conftest import NOON
from tests.web.reading import csv_of, json_of, text_of, words_of


def during(start, end, **filters):
    return urlencode({**filters, "start": start.isoformat(), "end": end.isoformat()})


def before(**filters):
    return during(CHANGED - timedelta(days=DAYS), CHANGED, **filters)


def after(**filters):
    return during(CHANGED, CHANGED + timedelta(days=DAYS), **filters)


def compare(*arms, **options):
    return f"/compare/?{urlencode({'arm': arms, **options}, doseq=True)}"


BOTH = (before(user="alice"), after(user="alice"))


def row_of(rows, metric, arm):
    [row] = [row for row in rows if (row["metric"], row["arm"]) == (metric, arm)]
    return row


def test_the_conclusion_names_what_changed_and_what_did_not(as_staff, campaign):
    campaign()
    words = words_of(as_staff.get(compare(*BOTH, covariate="none")))

    assert "Opens fell 4.00\N{MULTIPLICATION SIGN} (" in words
    assert "Unchanged within ± 3 %: duration, nodes" in words
    assert "48 jobs on 8 days of 1 user" in words


def test_load_that_moved_to_an_nfs_server_is_shown_to_staff(
    as_staff, alice, campaign, ingest, logs
):
    campaign()
    apps = Filesystem.objects.create(name="apps")
    Server.objects.create(name="nfs1", filesystem=apps, kind=Server.Kind.NFS)
    for day, hours, calls in ((-2, 0, 0), (-2, 1, 360), (2, 0, 720), (2, 1, 2_160)):
        text = f"rpc {calls} 0 0 0 0\nproc3 22 0 {calls}{' 0' * 20}\n"
        at = CHANGED + timedelta(days=day, hours=hours)
        ingest("nfsd", logs(f"{at:%d%H}", text), server="nfs1", at=at.isoformat())

    about = json_of(as_staff.get(compare(*BOTH, format="json")))
    words = words_of(as_staff.get(compare(*BOTH)))

    # An hour before the change, and one after it: 360 and 1,440 calls; none in between count.
    assert about["load"] == [
        {"place": "nfs1", "kind": "NFS server", "operations_per_second": [0.1, 0.4]}
    ]
    assert "nfs1 NFS server 0.10 0.40 4.00" in words
    assert "NFS server nfs1: metadata operations rose 4\N{MULTIPLICATION SIGN} (0.10 to" in words
    as_staff.force_login(alice)
    assert json_of(as_staff.get(compare(*BOTH, format="json")))["load"] == []


def test_figures_are_those_of_numpy(as_staff, campaign):
    campaign()
    rows = json_of(as_staff.get(compare(*BOTH, covariate="none", format="json")))["rows"]

    for arm, values in (("Before", BEFORE), ("After", AFTER)):
        row = row_of(rows, "opens", arm)
        assert (row["jobs"], row["days"]) == (48, 8)
        assert row["median"] == pytest.approx(np.median(values))
        assert row["mean"] == pytest.approx(values.mean())
        assert row["p90"] == pytest.approx(np.percentile(values, 90))
    effect = row_of(rows, "opens", "After")
    assert effect["estimate"] == pytest.approx(np.median(AFTER) / np.median(BEFORE))
    assert effect["low"] < 0.25 < effect["high"]
    assert effect["adjusted_p"] < 0.001
    assert effect["cliffs_delta"] == -1
    assert effect["verdict"] == "changed"


def test_totals_come_before_the_typical_job(as_staff, campaign):
    jobs = sorted(campaign(), key=lambda job: job.started_at)
    earlier = [job.pk for job in jobs if job.started_at < CHANGED]
    statistics = JobStatistics.objects
    statistics.update(read_bytes=1_850_000_000, computed_at=timezone.now())
    statistics.filter(job__in=earlier).update(read_bytes=1_000_000_000)
    statistics.filter(job__in=earlier[::6]).update(read_bytes=8_059_000_000)
    cache.clear()

    words = words_of(as_staff.get(compare(*BOTH)))
    about = json_of(as_staff.get(compare(*BOTH, format="json")))

    total, _, typical = words.partition("Typical job (median, intervals of 95 %)")
    assert "Total: jobs unchanged (48 to 48), bytes read fell 15.0 % (104 GB to 88.8 GB)" in total
    assert "cases with flags on these jobs unchanged (0 to 0)" in total
    assert "rose 1.85" not in total
    assert "rose 1.85\N{MULTIPLICATION SIGN}" in typical
    assert about["totals"]["read_bytes"] == {
        "values": [104_472_000_000, 88_800_000_000],
        "known_jobs": [48, 48],
        "per_day": None,
    }
    assert list(about["conclusions_of_totals"]) == ["After"]


def test_totals_of_periods_of_unequal_length_are_compared_per_day(as_staff, campaign):
    campaign()
    JobStatistics.objects.update(read_bytes=1_000_000_000, computed_at=timezone.now())
    twice = during(CHANGED, CHANGED + timedelta(days=2 * DAYS), user="alice")
    cache.clear()

    words = words_of(as_staff.get(compare(BOTH[0], twice)))
    totals = json_of(as_staff.get(compare(BOTH[0], twice, format="json")))["totals"]

    assert "Total: jobs per day fell 2.00\N{MULTIPLICATION SIGN} (6.00 to 3.00), bytes" in words
    assert "bytes read per day fell 2.00\N{MULTIPLICATION SIGN} (6.00 GB to 3.00 GB)" in words
    assert "per day: the periods differ in length (8 days, 16 days)" in words
    assert totals["jobs"]["values"] == [48, 48]
    assert totals["jobs"]["per_day"] == [6, 3]


def test_pending_jobs_are_no_unobserved_jobs_and_make_totals_provisional(as_staff, campaign):
    later = [job.pk for job in campaign() if job.started_at > CHANGED]
    JobStatistics.objects.filter(job__in=later[::2]).delete()
    missing = "Metadata operations: unknown for 50 % of the jobs of After. Counters were not"

    assert missing in words_of(as_staff.get(compare(*BOTH)))
    DirtyStatistics.objects.mark(later[::2])
    words = words_of(as_staff.get(compare(*BOTH)))

    assert "Counters were not observed" not in words
    assert "Statistics of 50.0 % of the jobs of After are pending: all figures" in words
    assert "Provisional total: jobs unchanged (48 to 48)" in words


def test_shifts_and_incidents_inside_an_arm_are_warned_of(as_staff, campaign):
    jobs = campaign()
    for number, job in enumerate(jobs):  # three a day for 32 days
        job.started_at = CHANGED + timedelta(days=number // 3 - 16)
        job.ended_at = job.started_at + timedelta(hours=1)
    Job.objects.bulk_update(jobs, ["started_at", "ended_at"])
    fs = Filesystem.objects.create(name="lake")
    mds = Server.objects.create(name="mds9", filesystem=fs, kind=Server.Kind.MDS)
    Incident.objects.create(
        server=mds, start=CHANGED - timedelta(hours=6), end=CHANGED, title="x", saved_by="sam"
    )
    JobStatistics.objects.filter(job__started_at__lt=CHANGED).update(duration_s=12_000.0)
    cache.clear()
    whole = during(CHANGED - timedelta(days=20), CHANGED + timedelta(days=20), user="alice")
    warnings = json_of(as_staff.get(compare(whole, BOTH[1], format="json")))["warnings"]

    [shift] = [text for text in warnings if " shifted within " in text]
    assert shift.startswith("Duration shifted within ")
    assert " on 13 Jul 2017 (daily medians: " in shift
    [text] = [text for text in warnings if text.startswith("Saved incidents within ")]
    assert ": 13 Jul 2017 06:00. The page of an incident compares it" in text


def test_a_job_belongs_to_the_arm_in_which_it_started(as_staff, campaign):
    jobs = campaign()
    earlier = [job for job in jobs if job.started_at < CHANGED]
    last = max(earlier, key=lambda job: job.started_at)
    Job.objects.filter(pk=last.pk).update(ended_at=CHANGED + timedelta(hours=5))
    about = json_of(as_staff.get(compare(*BOTH, format="json")))

    assert [arm["jobs"] for arm in about["arms"]] == [48, 48]
    assert not [text for text in about["warnings"] if "not independent" in text]


def test_others_in_the_same_time_are_the_default_control(as_staff, campaign):
    campaign()
    campaign("bob", (BEFORE, BEFORE // 2))
    page = as_staff.get(compare(*BOTH))
    rows = csv_of(as_staff.get(compare(*BOTH, format="csv")))

    assert "Control: all other jobs" in words_of(page)
    assert "At whose expense? The control in the period of After: " in words_of(page)
    assert "Not paired by day" not in words_of(page)
    # Opens of the others fell twice, so alice's fell twice beyond that.
    assert float(row_of(rows, "opens", "After")["controlled_estimate"]) == pytest.approx(0.5, 0.02)
    assert "Control: all other jobs" not in words_of(as_staff.get(compare(*BOTH, control="none")))


def test_a_control_with_few_common_days_is_not_paired(as_staff, campaign):
    campaign()
    campaign("bob", (BEFORE, BEFORE // 2))
    Job.objects.filter(owner="alice", started_at__lt=NOON + timedelta(days=3)).delete()
    Job.objects.filter(owner="bob", started_at__range=(NOON + timedelta(days=5), CHANGED)).delete()
    page = words_of(as_staff.get(compare(*BOTH)))

    assert "Not paired by day: duration, nodes, metadata operations, opens" in page
    assert "or fewer than half of the days, have values of both an arm and its control." in page


def test_a_control_can_be_any_population(as_staff, campaign):
    campaign()
    campaign("bob", (BEFORE, BEFORE))
    campaign("carol", (BEFORE, AFTER))
    rows = csv_of(as_staff.get(compare(*BOTH, control="user=carol", format="csv")))

    assert float(row_of(rows, "opens", "After")["controlled_estimate"]) == pytest.approx(1)


def test_too_few_days_are_refused_with_the_reason(as_staff, campaign):
    campaign()
    short = during(CHANGED, CHANGED + timedelta(days=3), user="alice")
    page = words_of(as_staff.get(compare(BOTH[0], short)))
    row = row_of(csv_of(as_staff.get(compare(BOTH[0], short, format="csv"))), "opens", "After")

    assert "No conclusion about After: too few days." in page
    assert "fell" not in page.partition("Typical job")[2].partition("Metrics")[0]
    assert (row["verdict"], row["refusal"], row["low"]) == ("refused", "too few days", "")


def test_an_arm_without_jobs_is_named(as_staff, campaign):
    campaign()
    page = words_of(as_staff.get(compare(before(user="alice"), before(user="nobody"))))

    assert "No jobs in user: nobody" in page


def test_arms_that_share_many_jobs_have_no_conclusion(as_staff, campaign):
    campaign()
    week = during(CHANGED - timedelta(days=DAYS - 1), CHANGED, user="alice")
    page = words_of(as_staff.get(compare(BOTH[0], week)))

    assert "No conclusion about" in page
    assert "the same jobs in both arms" in page
    assert "Equal within" not in page


def test_different_jobs_are_higher_or_lower(as_staff, campaign):
    campaign()
    campaign("bob")
    page = words_of(as_staff.get(compare(before(user="alice"), after(user="bob"))))

    assert "Opens: 4.00\N{MULTIPLICATION SIGN} lower (" in page
    assert not re.search(r" (rose|fell) \d", page)


def test_jobs_without_statistics_have_no_conclusion(as_staff, campaign):
    campaign()
    JobStatistics.objects.all().delete()

    assert "No metric of these jobs is known." in words_of(as_staff.get(compare(*BOTH)))


def test_warnings_name_other_explanations(as_staff, campaign):
    campaign()
    lake = Filesystem.objects.create(name="lake")
    server = Server.objects.create(name="mds1", filesystem=lake, kind=Server.Kind.MDS)
    for version, at in (("2.12", NOON - timedelta(days=90)), ("2.15", CHANGED)):
        ServerVersion.objects.create(server=server, version=version, since=at)
    JobStatistics.objects.filter(job__started_at__gte=CHANGED + timedelta(days=6)).update(
        metadata_operations=None
    )
    overlapping = during(CHANGED - timedelta(days=2), CHANGED + timedelta(days=8), user="alice")
    words = words_of(as_staff.get(compare(before(user="alice"), overlapping)))

    assert "12 jobs in both 5 Jul 2017 12:00" in words
    assert (
        "Server upgrade on 13 Jul 2017 12:00: lake: MDS 2.15 (counts other requests as opens)."
        in words
    )
    assert "Metadata operations: unknown for 20 % of the jobs of" in words


@pytest.mark.parametrize(
    ("person", "others", "large", "is_shown"),
    [
        ("sam", ["bob"], ["bob"], True),
        ("alice", ["bob", "dave", "erin"], ["bob", "dave"], True),
        ("alice", ["bob", "dave", "erin"], ["bob"], False),  # he has almost all node-hours
        ("alice", ["bob", "dave"], ["bob", "dave"], False),
    ],
)
def test_an_unequal_load_of_the_site_is_a_warning(
    client, request, campaign, person, others, large, is_shown
):
    campaign()
    for owner in others:
        campaign(owner, (BEFORE, BEFORE))
    Job.objects.filter(owner__in=large, started_at__gte=CHANGED).update(node_count=500)
    client.force_login(request.getfixturevalue(person))

    assert ("Unequal load of the site" in words_of(client.get(compare(*BOTH)))) == is_shown


def test_few_jobs_of_others_do_not_show_the_load_of_the_site(as_alice, campaign):
    campaign()
    for owner in ("bob", "dave", "erin"):
        jobs = campaign(owner, (BEFORE, BEFORE))
        Job.objects.filter(pk__in=[job.pk for job in jobs[3:48] + jobs[51:]]).delete()
    Job.objects.filter(owner="bob", started_at__gte=CHANGED).update(node_count=5_000)

    assert "Unequal load" not in words_of(as_alice.get(compare(*BOTH)))


def test_arms_are_named_by_their_differences(as_staff, sam, campaign):
    campaign()
    campaign("bob")
    Population.objects.create(name="Bob's", slug="bobs", query=before(user="bob"), owner=sam)

    def names(*arms):
        return [arm["name"] for arm in json_of(as_staff.get(compare(*arms, format="json")))["arms"]]

    assert names(*BOTH) == ["Before", "After"]
    assert names(before(user="alice"), "bobs") == [
        "user: alice", "Bob's",
    ]  # fmt: skip
    assert names(before(user="alice"), f"/jobs/?{before(user='bob')}") == [
        "user: alice", "user: bob",
    ]  # fmt: skip
    assert names(before(user="alice"), after(user="alice"), after(user="bob"))[1] == (
        "2: user: alice; 13 Jul to 21 Jul"
    )


def test_panda_jobs_are_compared(as_staff, new_job, put_inside):
    for number in range(12):
        job = new_job({"opens": 100 * number}, started_at=NOON + timedelta(days=number % 6))
        put_inside(
            job, number + 1, started_at=job.started_at, ended_at=job.started_at + timedelta(hours=1)
        )
    arms = (f"unit=panda&{during(NOON, NOON + timedelta(days=9))}", "unit=panda&cluster=anvil")
    about = json_of(as_staff.get(compare(*arms, format="json")))

    assert about["counted"] == "PanDA jobs"
    assert [arm["jobs"] for arm in about["arms"]] == [12, 12]
    assert "panda_duration_s" in {row["metric"] for row in about["rows"]}


def test_each_chart_has_a_figure_and_an_export(as_staff, campaign):
    campaign()
    page = text_of(as_staff.get(compare(*BOTH, metric="opens", covariate="none")))
    figures = set(re.findall(r'<script id="figure-(\w+)" type="application/json">', page))
    query = compare(*BOTH, metric="opens", covariate="none").partition("?")[2]

    def rows(name):
        return csv_of(as_staff.get(f"/compare/charts/{name}/?{query}&format=csv"))

    assert figures == set(PARTS) - {"rpcs"}  # no job was traced
    [median] = [row for row in rows("distributions") if row["percent"] == "50"]
    assert float(median["arm2"]) == pytest.approx(np.median(AFTER))
    assert [float(row["p95"]) for row in rows("boxes")] == pytest.approx(
        [np.percentile(BEFORE, 95), np.percentile(AFTER, 95)]
    )
    days = rows("days")
    assert len(days) == 2 * DAYS
    assert float(days[0]["median"]) == np.median(BEFORE[:6])
    assert sum(int(row["arm1"]) for row in rows("completed")) == 48
    assert sum(int(row["arm2"]) for row in rows("histogram")) == 48
    assert {row["kind"]: row["arm1"] for row in rows("mix")} == {"open": "0.5", "getattr": "0.5"}
    assert {row["metric"] for row in rows("ratios")} >= {"opens", "duration_s"}
    assert as_staff.get(f"/compare/charts/nothing/?{query}").status_code == 404


def test_users_see_their_jobs_and_anonymous_controls(client, alice, charlie, campaign):
    campaign()
    campaign("bob", (BEFORE, BEFORE))
    client.force_login(alice)
    page = client.get(compare(*BOTH))
    client.force_login(charlie)

    assert "Control: jobs of other users (anonymous)" in words_of(page)
    assert "bob" not in text_of(page)
    assert "No jobs in Before and in After" in words_of(client.get(compare(*BOTH)))
    assert "4000" not in text_of(client.get(compare(*BOTH, format="json")))


def test_private_populations_of_others_are_no_arms(as_alice, sam, campaign):
    Population.objects.create(name="Secret", slug="secret", query="user=alice", owner=sam)
    page = words_of(as_alice.get(compare("secret", BOTH[1])))

    assert "No population 'secret'." in page


@pytest.mark.parametrize(
    ("arms", "options", "field"),
    [
        (["nothing", BOTH[1]], {}, "arm"),
        (["\x00", BOTH[1]], {}, "arm"),
        (["//[", BOTH[1]], {}, "arm"),
        (["start=x", BOTH[1]], {}, "arm"),
        (["unit=panda&cluster=anvil", BOTH[1]], {}, "arm"),
        ([BOTH[0]] * 5, {}, "arm"),
        ([BOTH[0]] * 2, {}, "arm"),
        ([BOTH[0]], {}, "arm"),
        (BOTH, {"control": "<script>"}, "control"),
        (BOTH, {"control": "unit=panda&cluster=anvil"}, "control"),
        (BOTH, {"covariate": "stars"}, "covariate"),
        (BOTH, {"margin": "nan"}, "margin"),
        (BOTH, {"margin": "-1"}, "margin"),
        (BOTH, {"margin": "1e999"}, "margin"),
    ],
)
def test_invalid_queries_are_explained(as_staff, campaign, arms, options, field):
    campaign()
    page = as_staff.get(compare(*arms, **options))
    export = as_staff.get(compare(*arms, **options, format="csv"))
    chart = as_staff.get(compare(*arms, **options).replace("/?", "/charts/mix/?", 1))

    assert page.status_code == 200
    assert "Conclusion" not in text_of(page).partition("Arms")[0]
    assert "<script>;" not in text_of(page)
    assert (export.status_code, list(export.json()["errors"])) == (400, [field])
    assert chart.status_code == 400


def test_an_unknown_metric_is_replaced(as_staff, campaign):
    campaign()

    assert "Distribution of metadata operations" in words_of(
        as_staff.get(compare(*BOTH, metric="%00nonsense"))
    )


@pytest.mark.parametrize("person", ["sam", "alice"])
def test_without_arms_the_page_has_presets(client, request, person):
    client.force_login(request.getfixturevalue(person))
    page = words_of(client.get("/compare/"))

    assert "Last 30 days against the 30 before" in page
    assert "No upgrades are recorded." in page


def test_this_month_against_last_takes_two_clicks_from_home(client, alice, campaign):
    campaign()
    client.force_login(alice)
    home = text_of(client.get("/"))
    [form] = re.findall(r'action="(/compare/presets/months/)"', text_of(client.get("/compare/")))
    answer = client.get(form, {"base": ""}, follow=True)
    arms = [parse_qs(arm) for arm in parse_qs(urlsplit(answer.redirect_chain[-1][0]).query)["arm"]]

    assert 'href="/compare/"' in home
    assert [(arm["start"], arm["end"]) for arm in arms] == [
        (["2017-05-21T00:00:00+00:00"], ["2017-06-20T00:00:00+00:00"]),
        (["2017-06-20T00:00:00+00:00"], ["2017-07-20T00:00:00+00:00"]),
    ]
    assert "No jobs in 21 May to 19 Jun" in words_of(answer)


def test_presets_keep_the_filters_of_their_base(as_staff, campaign):
    campaign()
    campaign("bob")
    base = {"base": before(project="PHY12", nodes_min="3")}
    of_date = as_staff.get("/compare/presets/date/", {**base, "at": "2017-07-13 12:00", "days": 8})
    of_users = as_staff.get(
        "/compare/presets/values/", {**base, "by": "user", "first": "alice", "second": "a&b"}
    )

    def arms(answer):
        return [parse_qs(arm) for arm in parse_qs(urlsplit(answer.url).query)["arm"]]

    assert [(arm["start"], arm["end"]) for arm in arms(of_date)] == [
        (["2017-07-05T12:00:00+00:00"], ["2017-07-13T12:00:00+00:00"]),
        (["2017-07-13T12:00:00+00:00"], ["2017-07-21T12:00:00+00:00"]),
    ]
    assert [arm["user"] for arm in arms(of_users)] == [["alice"], ["a&b"]]
    for arm in (*arms(of_date), *arms(of_users)):
        assert (arm["project"], arm["nodes_min"]) == (["PHY12"], ["3"])


@pytest.mark.parametrize(
    ("preset", "fields"),
    [
        ("date", {"at": "soon", "days": "3"}),
        ("date", {"at": "2017-07-13", "days": "0"}),
        ("values", {"by": "name", "first": "a", "second": "b"}),
        ("values", {"base": "unit=panda&cluster=anvil", "by": "user", "first": "a", "second": "b"}),
        ("months", {"base": "nothing"}),
    ],
)
def test_invalid_presets_return_with_a_message(as_staff, cluster, preset, fields):
    page = as_staff.get(f"/compare/presets/{preset}/", fields, follow=True)

    assert page.redirect_chain[-1][0].startswith("/compare/?arm=")
    assert 'class="notice warn" role="status"' in text_of(page)


def test_arms_without_known_values_have_no_charts_to_export(as_staff, cluster):
    for name in PARTS:
        query = {"arm": ["user=nobody", "user=nobody2"], "format": "csv"}
        assert as_staff.get(f"/compare/charts/{name}/", query).status_code == 404


def test_the_link_to_copy_has_absolute_times(as_staff, campaign):
    campaign()
    page = text_of(as_staff.get(compare("user=alice&last=7d", BOTH[0], mitigation="7")))
    [link] = re.findall(r'data-copy-link="([^"]+)"', page)
    query = parse_qs(urlsplit(link.replace("&amp;", "&")).query)

    assert query["mitigation"] == ["7"]
    assert parse_qs(query["arm"][0])["start"] == ["2017-07-13T18:50:01+00:00"]
    assert query["arm"][1] == BOTH[0]


def test_results_are_cached_until_statistics_change(as_staff, campaign, django_assert_num_queries):
    campaign()
    cache.clear()
    with django_assert_num_queries(89):
        as_staff.get(compare(*BOTH))
    with django_assert_num_queries(34):
        as_staff.get(compare(*BOTH))
    JobStatistics.objects.filter(job__started_at__lt=CHANGED).update(
        opens=77_777, computed_at=timezone.now()
    )

    assert "77,777" in text_of(as_staff.get(compare(*BOTH)))


def test_pages_of_jobs_link_to_comparisons(as_staff, campaign, new_job):
    campaign()
    job = new_job({"opens": 1})
    arm = "/compare/?arm=user%3Dalice"

    for address in ("/jobs/?user=alice", "/populations/?user=alice", "/users/alice/"):
        assert f'href="{arm}"' in text_of(as_staff.get(address)), address
    assert 'href="/compare/?arm=project%3DPHY12"' in text_of(as_staff.get("/projects/PHY12/"))
    assert f'href="/compare/jobs/?job={job.pk}"' in text_of(as_staff.get(f"/jobs/{job.pk}/"))
    assert "Presets For user: alice" in words_of(as_staff.get(arm))


def test_days_without_jobs_and_reads_are_gaps(as_staff, campaign):
    campaign()
    Job.objects.filter(started_at__date=CHANGED - timedelta(days=3)).delete()

    def figure(metric):
        page = as_staff.get(compare(*BOTH, metric=metric, covariate="none")).context["page"]
        return page.part("days").figure

    band, line, *_ = figure("opens")["data"]
    shades = [
        [shape for shape in figure(metric)["layout"]["shapes"] if shape["type"] == "rect"]
        for metric in ("opens", "duration_s")
    ]

    assert (len(line["y"]), line["y"].index(None)) == (DAYS, 5)
    assert (len(band["y"]), band["y"].index(None)) == (2 * DAYS - 1, 10)
    assert list(map(len, shades)) == [1, 0]  # no MDT was read; accounting has no gaps


def test_names_of_arms_are_escaped(as_staff, campaign):
    campaign("<img src=x>")
    page = text_of(as_staff.get(compare(before(user="<img src=x>"), before(user="alice"))))
    figures = re.findall(r'type="application/json">(.*?)</script>', page)

    assert "<img src=x>" not in page
    assert all(json.loads(figure) for figure in figures)
