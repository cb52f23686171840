import json
import re
from datetime import timedelta
from html import unescape
from urllib.parse import urlencode

import numpy as np
import pytest
from django.core.cache import cache
from django.utils import timezone

from ioportal.core.formatting import UNKNOWN
from ioportal.jobs.models import JobStatistics, Population
from tests.logs import at
from tests.web.conftest import NOON
from tests.web.populations.conftest import OPENS
from tests.web.reading import csv_of, json_of, text_of, words_of


def figures_of(page):
    """Return the figures that a page draws, by metric."""
    figures = re.findall(
        r'<script id="figure-(\w+)" type="application/json">(.*?)</script>', text_of(page)
    )
    return {name: json.loads(figure) for name, figure in figures}


def bars_of(page, metric):
    """Return the count and the link of each bar of the first population."""
    first, *_, pointed_at = figures_of(page)[metric]["data"]
    return list(zip(first["y"], pointed_at["customdata"], strict=True))


def found_at(client, address):
    return len(json_of(client.get(f"{address}&format=json"))["rows"])


def test_the_table_has_the_established_layout(as_staff, week):
    table = text_of(as_staff.get("/populations/")).partition("<table>")[2].partition("</table>")[0]
    rows = [
        [
            unescape(re.sub(r"<[^>]+>", "", cell)).strip()
            for cell in re.findall(r"<t[hd].*?</t[hd]>", row)
        ]
        for row in re.findall(r"<tr>.*?</tr>", re.sub(r"\s+", " ", table))
    ]

    assert rows[0] == [
        "", "Num. Nodes", "Duration (s)", "Read (GB)", "Written (GB)", "GB Read/nodes",
        "GB Written/nodes", "open()", "close()",
    ]  # fmt: skip
    assert [row[0] for row in rows[1:]] == [
        "Known", "Unknown", "Min", "Max", "Average", "Std. Dev.", "p50", "p90", "p99",
    ]  # fmt: skip
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["Known"] == ["8", "8", "8", "0", "8", "0", "8", "0"]
    assert by_name["Unknown"] == ["1", "1", "1", "9", "1", "9", "1", "9"]
    assert by_name["Min"] == ["1", "1,932.50", "0.00", UNKNOWN, "0.00037", UNKNOWN, "0", UNKNOWN]
    assert by_name["Max"][6] == "1,260,185"
    assert by_name["Average"][6] == f"{np.mean(OPENS):,.2f}"
    assert by_name["Std. Dev."][6] == f"{np.std(OPENS, ddof=1):,.2f}"


def test_exports_have_exact_values_in_metric_units(as_staff, week):
    rows = csv_of(as_staff.get("/populations/?format=csv"))
    [opens] = [row for row in rows if row["metric"] == "opens"]

    assert [row["metric"] for row in rows] == [
        "node_count", "duration_s", "read_bytes", "write_bytes", "read_bytes_per_node",
        "write_bytes_per_node", "opens", "closes",
    ]  # fmt: skip
    assert (opens["population"], opens["unit"]) == ("All jobs", "operations")
    assert (opens["n"], opens["unknown"], opens["max"]) == ("8", "1", "1260185")
    assert float(opens["std"]) == pytest.approx(np.std(OPENS, ddof=1))
    assert float(opens["p90"]) == pytest.approx(np.percentile(OPENS, 90))
    assert json_of(as_staff.get("/populations/?format=json"))["std"] == (
        "of a sample: divided by n - 1"
    )


def test_other_metrics_have_a_page(as_staff, week):
    page = text_of(as_staff.get("/populations/?user=alice"))
    further = as_staff.get("/populations/other-metrics/?user=alice")
    metrics = {
        row["metric"] for row in csv_of(as_staff.get("/populations/other-metrics/?format=csv"))
    }

    assert 'href="/populations/other-metrics/?user=alice"' in page
    assert "Peak metadata rate" in words_of(further)
    assert {"metadata_operations_per_node", "cpu_efficiency", "mean_service_us"} <= metrics
    assert "opens" not in metrics


def test_all_numeric_types_are_read_exactly(as_staff, new_job):
    new_job({"node_count": 18_688, "duration_s": 0.1, "opens": 2**53 + 1})
    rows = json_of(as_staff.get("/populations/?format=json"))["rows"]
    least = {row["metric"]: row["min"] for row in rows}

    assert (least["node_count"], least["duration_s"], least["opens"]) == (18_688, 0.1, 2**53 + 1)


def test_zero_nodes_are_unknown(as_staff, new_job):
    new_job({"node_count": None})
    [nodes, *_] = json_of(as_staff.get("/populations/?format=json"))["rows"]

    assert (nodes["n"], nodes["unknown"], nodes["min"]) == (0, 1, None)


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_a_bar_links_to_its_number_of_jobs(as_staff, week, scale):
    page = as_staff.get(f"/populations/?user=alice&scale={scale}")

    for metric in ("opens", "read_bytes"):
        bars = bars_of(page, metric)
        assert sum(count for count, _ in bars) == 8
        for count, jobs in bars:
            if count:
                assert found_at(as_staff, jobs) == count, jobs


def test_a_bar_preserves_bounds_of_filters(as_staff, week):
    page = as_staff.get("/populations/?opens_from=2100&opens_below=2500")
    [(count, jobs)] = bars_of(page, "opens")

    assert (count, found_at(as_staff, jobs)) == (1, 1)


def test_the_table_of_a_histogram_links_to_the_same_jobs(as_staff, week):
    page = text_of(as_staff.get("/populations/?user=alice"))

    assert '<a href="/jobs/?user=alice&amp;opens_from=1600&amp;opens_below=2500">2</a>' in page


def test_histograms_have_exports(as_staff, week):
    rows = csv_of(as_staff.get("/populations/histograms/opens/?format=csv"))
    about = json_of(as_staff.get("/populations/histograms/opens/?format=json&scale=linear"))

    assert rows[0] == {"from": "0", "below": "1", "count": "1", "share": "0.125"}
    assert sum(int(row["count"]) for row in rows) == 8
    assert (about["unit"], about["scale"]) == ("operations", "linear")
    assert (about["known"], about["unknown"]) == ([8], [1])
    assert as_staff.get("/populations/histograms/node_count/").status_code == 404


def test_bars_can_be_shares(as_staff, week):
    counts = figures_of(as_staff.get("/populations/"))["opens"]["data"][0]["y"]
    shares = figures_of(as_staff.get("/populations/?bars=shares"))["opens"]["data"][0]["y"]

    assert shares == [100 * count / 8 for count in counts]


@pytest.mark.parametrize(
    "compare",
    [
        pytest.param("user=bob", id="by filters"),
        pytest.param("/jobs/?user=bob&sort=-opens", id="by the URL of a job list"),
        pytest.param("https://io.example.org/populations/?user=bob", id="by any URL"),
        pytest.param("bobs-jobs", id="by name"),
        pytest.param("/populations/bobs-jobs/?scale=linear", id="by the URL of a saved population"),
    ],
)
def test_a_population_is_compared_with_another(as_staff, sam, week, new_job, compare):
    Population.objects.create(name="Bob's", slug="bobs-jobs", query="user=bob", owner=sam)
    new_job({"opens": 2_100}, owner="bob")
    query = urlencode({"user": "alice", "compare": compare})

    rows = json_of(as_staff.get(f"/populations/histograms/opens/?format=json&{query}"))["rows"]
    [common] = [row for row in rows if row["from"] == 1_600]
    assert (common["count"], common["compared_count"], common["compared_share"]) == (2, 1, 1)
    first, second, _ = figures_of(as_staff.get(f"/populations/?{query}"))["opens"]["data"]
    assert first["x"] == second["x"]
    assert first["name"] == "1: user: alice"
    assert second["name"] in {"2: Bob&#x27;s", "2: Bob's", "2: user: bob"}


def test_legends_name_what_differs(as_staff, week):
    first, second = (f"user=alice&start=2017-07-0{day}T00:00:00Z" for day in (3, 5))

    page = as_staff.get(f"/populations/?{first}&{urlencode({'compare': second})}")
    one, two, _ = figures_of(page)["opens"]["data"]

    assert (one["name"], two["name"]) == (
        "1: ran after: 2017-07-03 00:00",
        "2: ran after: 2017-07-05 00:00",
    )


@pytest.mark.parametrize(
    "query",
    [
        "compare=nothing",
        "compare=%00",
        "compare=//[",
        "compare=a%20b",
        "compare=start%3Dx",
        "compare=others",
        "scale=odd",
        "bars=odd",
    ],
)
def test_an_invalid_comparison_is_reported_and_ignored(as_staff, week, query):
    page = words_of(as_staff.get(f"/populations/?{query}"))
    twin = as_staff.get(f"/populations/?{query}&format=csv")

    assert "Ignored." in page
    assert "9 jobs" in page
    assert twin.status_code == 400
    assert list(twin.json()["errors"]) == [query.partition("=")[0]]


def test_an_invalid_filter_counts_nothing(as_staff, week):
    page = as_staff.get("/populations/?nodes_min=many")

    assert "Invalid filter" in words_of(page)
    assert as_staff.get("/populations/?nodes_min=many&format=json").status_code == 400
    assert as_staff.get("/populations/other-metrics/?nodes_min=many").status_code == 200


@pytest.mark.parametrize(
    "query", ["opens_from=5&opens_below=5", "opens_from=-1", "read_bytes_below=1.5"]
)
def test_empty_bounds_are_rejected(as_staff, week, query):
    assert as_staff.get(f"/jobs/?{query}&format=json").status_code == 400


def test_users_see_figures_of_visible_jobs_only(as_alice, week, crowd):
    assert json_of(as_alice.get("/populations/?format=json"))["populations"][0]["jobs"] == 9
    assert "of BIO3" not in words_of(as_alice.get("/populations/?project=BIO3"))
    assert "No jobs match" in words_of(as_alice.get("/populations/?project=BIO3"))


def test_other_users_appear_in_large_groups_only(as_alice, week, crowd):
    query = urlencode({"compare": "others", "user": "alice", "queue": "batch"})
    twin = json_of(as_alice.get(f"/populations/?format=json&{query}"))
    [_, opens] = [row for row in twin["rows"] if row["metric"] == "opens"]

    assert twin["populations"][1]["filters"] == "queue=batch"
    assert (opens["n"], opens["p50"]) == (40, 10_000)  # 10,019.5, in two digits
    assert {opens[name] for name in ("min", "max", "mean", "std", "p90", "p99")} == {None}
    assert "hidden for other users" in text_of(as_alice.get(f"/populations/?{query}"))


def test_bars_of_other_users_are_large_and_have_no_links(as_alice, week, crowd):
    rows = json_of(as_alice.get("/populations/histograms/read_bytes/?compare=others&format=json"))[
        "rows"
    ]
    page = text_of(as_alice.get("/populations/?compare=others"))

    assert {row["from"]: row["compared_count"] for row in rows if row["compared_count"]} == {
        5 * 10**9: 20  # 22 of 39: the nine smallest and largest and the bounds are hidden
    }
    assert max(row["below"] for row in rows) < 10**12
    assert "user1" not in page


def test_fewer_than_ten_jobs_of_other_users_are_hidden(as_alice, week, new_job):
    for _ in range(9):
        new_job({"opens": 777_777}, owner="bob", project="BIO3")
    page = words_of(as_alice.get("/populations/?compare=others"))
    about = json_of(as_alice.get("/populations/?compare=others&format=json"))

    assert "This selection has no such group" in page
    assert "777" not in page
    assert about["populations"][1]["jobs"] is None
    assert {row["n"] for row in about["rows"] if row["population"] != "Your jobs"} <= {None}


@pytest.mark.parametrize(
    ("path", "column"),
    [("/populations/", "n"), ("/populations/histograms/read_bytes/", "compared_count")],
)
def test_a_metric_known_for_one_other_user_is_hidden(as_alice, week, new_job, path, column):
    """All of bob's jobs have bytes read, and none of the others' that are as many."""
    for number in range(66):
        owner = ("bob", "carl", "dora")[number % 3]
        read_bytes = 777 * 10**9 if owner == "bob" else None
        new_job({"read_bytes": read_bytes, "opens": 10}, owner=owner, project="BIO3")
    export = json_of(as_alice.get(f"{path}?compare=others&format=json"))
    others = [row for row in export["rows"] if row.get("population") != "Your jobs"]

    assert {row[column] for row in others if row.get("metric", "read_bytes") == "read_bytes"} == {
        None
    }
    assert "780000000000" not in str(export)
    assert {row["n"] for row in others if row.get("metric") == "opens"} <= {70}


@pytest.fixture
def answers(as_alice, new_job):
    """Request all figures for ranges that slide over a hidden job."""
    own = new_job({"opens": 1_203_000, "read_bytes": 1_203_000}, started_at=NOON)
    paths = [
        f"/jobs/{own.pk}/similar-jobs/?format=json",
        f"/jobs/{own.pk}/similar-jobs/?format=csv",
    ]
    for minutes in range(0, 60, 7):
        start = NOON + timedelta(minutes=minutes, days=-2)
        query = urlencode({"start": start.isoformat(), "compare": "others", "format": "json"})
        paths += [f"/populations/?{query}", f"/populations/histograms/opens/?{query}&scale=linear"]
    for scale in ("linear", "log"):
        paths.append(f"/populations/histograms/read_bytes/?compare=others&format=csv&scale={scale}")

    def run():
        JobStatistics.objects.update(computed_at=timezone.now())  # so that nothing is cached
        return [text_of(as_alice.get(path)) for path in paths]

    return run


@pytest.mark.long
def test_sliding_ranges_reveal_two_digits_at_most(answers, new_job):
    """Responses are equal for all values with the same rounded digits."""
    for number in range(41):
        value = 1_170_000 + 1_500 * number
        new_job(
            {"opens": value, "read_bytes": value},
            owner=("bob", "dave", "erin")[number % 3],
            project="BIO3",
            started_at=NOON + timedelta(minutes=number, days=-2),
            ended_at=NOON + timedelta(minutes=number + 1, days=-2),
        )
    victim = JobStatistics.objects.filter(job__project="BIO3").order_by("opens")[20]
    responses = []
    for value in (1_150_001, 1_203_001, 1_249_999):
        JobStatistics.objects.filter(pk=victim.pk).update(opens=value, read_bytes=value)
        responses.append(answers())

    assert "1200000" in responses[0][0]
    assert responses[0] == responses[1] == responses[2]


@pytest.mark.parametrize(
    ("person", "words"),
    [("sam", "manage.py ingest sacct"), ("alice", "No jobs yet")],
)
def test_an_empty_page_shows_the_next_step(client, request, person, words):
    client.force_login(request.getfixturevalue(person))
    page = words_of(client.get("/populations/"))

    assert words in page
    assert "No saved populations. Filter the jobs" in page


def test_jobs_without_statistics_show_no_empty_charts(as_staff, new_job):
    new_job()
    page = as_staff.get("/populations/")

    assert "Unknown for all of these jobs" in words_of(page)
    assert figures_of(page) == {}


def test_simulated_jobs_are_marked(as_staff, week, cluster):
    real = words_of(as_staff.get("/populations/?user=alice"))
    cluster.simulated = True
    cluster.save()

    assert "Simulated data" not in real
    assert "Simulated data" in words_of(as_staff.get("/populations/"))
    assert json_of(as_staff.get("/populations/?format=json"))["populations"][0]["simulated"]


def test_figures_are_cached_until_statistics_change(
    as_staff, new_job, week, django_assert_num_queries
):
    cold = figures_of(as_staff.get("/populations/?scale=linear"))
    # Session, user, saved populations, latest statistics, cache, pending ones, clusters of the
    # filter.
    with django_assert_num_queries(8):
        assert figures_of(as_staff.get("/populations/?scale=linear")) == cold
    with django_assert_num_queries(8):
        as_staff.get("/populations/?scale=log&bars=shares")
    JobStatistics.objects.filter(opens=7).update(opens=10**9, computed_at=at("13:00"))

    assert "1,000,000,000" in text_of(as_staff.get("/populations/"))


def test_the_number_of_queries_does_not_grow_with_the_jobs(
    as_staff, week, crowd, django_assert_num_queries
):
    cache.clear()
    with django_assert_num_queries(15):
        as_staff.get("/populations/")


def test_the_cache_separates_users(client, sam, charlie, week):
    for person, jobs in ((sam, 9), (charlie, 0), (sam, 9)):
        client.force_login(person)

        twin = json_of(client.get("/populations/?format=json"))
        assert twin["populations"][0]["jobs"] == jobs


def test_job_list_and_population_link_to_each_other(as_staff, week):
    jobs = text_of(as_staff.get("/jobs/?user=alice&sort=-opens"))
    population = text_of(as_staff.get("/populations/?user=alice&scale=linear"))

    assert 'href="/populations/?user=alice"' in jobs
    assert 'href="/jobs/?user=alice">Job list</a>' in population
