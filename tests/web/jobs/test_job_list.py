import re
from datetime import timedelta
from itertools import chain

import pytest
from django.http import QueryDict

from ioportal.jobs.models import Launch
from ioportal.metrics import METADATA_OPERATIONS
from ioportal.web.jobs import columns
from ioportal.web.jobs.job_list import JobList
from tests.logs import at
from tests.web.reading import csv_of, json_of, text_of, words_of


def ids(answer):
    return [row["job"] for row in json_of(answer)["rows"]]


@pytest.fixture
def seven(new_job, cluster):
    """Seven jobs, each named after its distinctive property."""
    new_job({}, batch_id="plain")
    new_job({}, batch_id="mine", owner="bob", project="BIO3", queue="debug")
    new_job({}, batch_id="big", node_count=300, name="Atlas pilot")
    new_job({"quality": "poor"}, batch_id="poor", state="failed")
    new_job(None, batch_id="fresh", state="running", ended_at=None)
    new_job({}, batch_id="early", started_at=at("01:00"))
    new_job({}, batch_id="task", array_index="4")
    launched = new_job({}, batch_id="launched")
    Launch.objects.create(cluster=cluster, name="9205593", job=launched)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("user=bob", {"mine"}, id="by user"),
        pytest.param("user=bob,nobody", {"mine"}, id="by any of several users"),
        pytest.param("project=BIO3", {"mine"}, id="by project"),
        pytest.param("queue=debug", {"mine"}, id="by queue"),
        pytest.param("name=atlas", {"big"}, id="by part of the name, in any case"),
        pytest.param("nodes_min=300", {"big"}, id="by size, from"),
        pytest.param("nodes_max=300&name=pilot", {"big"}, id="by size, up to and with"),
        pytest.param("state=failed&state=running", {"poor", "fresh"}, id="by any of two states"),
        pytest.param("quality=poor", {"poor"}, id="by quality"),
        pytest.param("quality=none", {"fresh"}, id="without figures"),
        pytest.param("end=2017-07-05T01:30:00Z", {"early"}, id="by time, before"),
        pytest.param("start=2017-07-05T13:30:00Z", {"fresh"}, id="by time, running"),
        pytest.param("start=2017-07-05T02:00:00Z&end=2017-07-05T12:00:00Z", set(), id="half-open"),
        pytest.param("cluster=anvil&q=plain", {"plain"}, id="by cluster and id"),
        pytest.param("q=plain big", {"plain", "big"}, id="by any of several ids"),
        pytest.param("q=task[4]", {"task[4]"}, id="by the task of an array"),
        pytest.param("q=task[5]", set(), id="by another task"),
        pytest.param("q=9205593", {"launched"}, id="by a launch inside it"),
    ],
)
def test_filters_select_jobs(as_staff, seven, query, expected):
    assert set(ids(as_staff.get(f"/jobs/?format=json&{query}"))) == expected


def test_a_job_without_duration_matches_its_time(as_staff, new_job):
    new_job(batch_id="instant", ended_at=at("12:00"))

    assert ids(as_staff.get("/jobs/?format=json&start=2017-07-05T11:00Z&end=2017-07-05T13:00Z"))
    assert not ids(as_staff.get("/jobs/?format=json&start=2017-07-05T12:30Z"))


@pytest.mark.parametrize(
    "query",
    ["start=yesterday", "nodes_min=many", "cluster=elsewhere", "state=odd", "quality=odd", "q=%00"],
)
def test_an_invalid_filter_shows_no_jobs_and_an_error(as_staff, seven, query):
    page = as_staff.get(f"/jobs/?{query}")
    twin = as_staff.get(f"/jobs/?{query}&format=csv")

    assert "Invalid filter" in words_of(page)
    assert text_of(page).count('role="alert"') == 3, (
        "in the list, at the filter, for failed requests"
    )
    assert twin.status_code == 400
    assert query.partition("=")[0] in twin.json()["errors"]


@pytest.fixture
def three(new_job):
    """Jobs with much, little and unknown metadata load, and one without figures."""
    for name, amount in {"much": 9, "unknown": None, "little": 2}.items():
        new_job({"metadata_operations": amount}, batch_id=name)
    new_job(None, batch_id="fresh")


@pytest.mark.parametrize(
    ("sort", "first"),
    [("-metadata_operations", ["much", "little"]), ("metadata_operations", ["little", "much"])],
)
def test_unknown_values_come_last_in_both_directions(as_staff, three, sort, first):
    listed = ids(as_staff.get(f"/jobs/?format=json&sort={sort}"))

    assert listed[:2] == first
    assert set(listed[2:]) == {"unknown", "fresh"}


@pytest.mark.parametrize("sort", ["-opens", "opens"])
def test_pages_continue_from_known_to_unknown_values(as_staff, new_job, sort):
    for number in range(60):
        new_job({"opens": number // 7}, batch_id=f"known{number}")
    for number in range(60):
        new_job({} if number % 2 else None, batch_id=f"unknown{number}")
    everything = ids(as_staff.get(f"/jobs/?format=json&sort={sort}"))
    pages = [
        text_of(as_staff.get(f"/jobs/?sort={sort}&page={page}", follow=True)) for page in (1, 2, 3)
    ]

    shown = [re.findall(r">((?:un)?known[0-9]+)</a>", page) for page in pages]
    assert [len(page) for page in shown] == [50, 50, 20]
    assert list(chain.from_iterable(shown)) == everything
    assert all(name.startswith("known") for name in everything[:60])
    assert len(set(everything)) == 120


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in (*columns.DEFAULT, "count_mkdir")
        if columns.is_statistic(columns.BY_NAME[name])
    ],
)
@pytest.mark.parametrize("direction", ["", "-"])
def test_sorting_by_statistics_uses_an_index(sam, three, queries, name, direction):
    known, _ = JobList(sam, QueryDict(f"sort={direction}{name}")).ordered
    # With few rows, the planner needs encouragement to use an index.
    for setting in ("enable_seqscan", "enable_sort", "enable_hashjoin", "enable_mergejoin"):
        queries("SELECT set_config(%s, 'off', true)", setting)
    plan = known.values_list("pk")[:50].explain()

    assert f"using statistics_{name}" in plan
    assert "Sort" not in plan


def test_every_column_sorts_both_ways(as_staff, three):
    for column in columns.COLUMNS:
        for sort in (column.name, f"-{column.name}"):
            answer = as_staff.get(f"/jobs/?format=json&columns={column.name}&sort={sort}")

            assert len(json_of(answer)["rows"]) == 4, sort


def test_every_kind_of_metadata_operation_is_a_column():
    kinds = {name.removeprefix("count_") for name in columns.BY_NAME if name.startswith("count_")}

    assert kinds == set(METADATA_OPERATIONS) - {"open", "close"}  # metrics with their own columns


def test_a_column_heading_sorts_and_then_reverses(as_staff, three):
    fresh = text_of(as_staff.get("/jobs/"))
    sorted_down = text_of(as_staff.get("/jobs/?sort=-metadata_operations"))

    assert '<a href="?sort=-metadata_operations"' in fresh
    assert '<a href="?sort=metadata_operations"' in sorted_down
    assert 'aria-sort="descending"' in sorted_down


def test_page_links_preserve_filters(as_staff, new_job):
    for _ in range(51):
        new_job()
    first = text_of(as_staff.get("/jobs/?user=alice"))
    second = words_of(as_staff.get("/jobs/?user=alice&page=2"))

    assert 'href="?user=alice&amp;page=2" rel="next"' in first
    assert "51\u201351 of 51" in second


@pytest.mark.parametrize("page", ["99", "-1", "x"])
def test_an_invalid_page_number_shows_an_existing_page(as_staff, three, page):
    assert "4 jobs" in words_of(as_staff.get(f"/jobs/?page={page}"))


def test_facets_count_and_link_filtered_jobs(as_staff, seven):
    page = text_of(as_staff.get("/jobs/?name=relax"))

    assert '<a href="?name=relax&amp;state=failed"' in page
    assert "completed 5" in words_of(as_staff.get("/jobs/?name=relax"))
    assert "pending 1" in words_of(as_staff.get("/jobs/?name=relax"))


def test_a_selected_facet_links_to_its_removal(as_staff, seven):
    page = text_of(as_staff.get("/jobs/?state=failed&name=relax"))

    assert '<a href="?name=relax" aria-current="true">' in page


def test_the_url_selects_columns(as_staff, three):
    for query in ("columns=opens&columns=user", "columns=opens,user"):
        header = json_of(as_staff.get(f"/jobs/?format=json&{query}"))["rows"][0].keys()

        assert list(header) == ["id", "simulated", "job", "user", "opens"]


def test_filters_preserve_selected_columns(as_staff, three):
    page = text_of(as_staff.get("/jobs/?columns=opens,user&user=alice&sort=-opens"))
    filters, _, rest = page.partition('id="filters"')[2].partition("</form>")

    assert '<input type="hidden" name="columns" value="opens,user">' in filters
    assert '<input type="hidden" name="sort" value="-opens">' in filters
    assert '<input type="hidden" name="user" value="alice">' in rest


def test_unknown_columns_and_orders_are_reported_and_ignored(as_staff, three):
    page = words_of(as_staff.get("/jobs/?columns=opens,evil&sort=-odd"))
    twin = as_staff.get("/jobs/?columns=opens,evil&sort=-odd&format=csv")

    assert "Unknown column 'evil'. Ignored." in page
    assert "Unknown column 'odd'. Ignored." in page
    assert "4 jobs" in page
    assert twin.status_code == 400
    assert twin.json()["errors"] == {
        "columns": ["Unknown column 'evil'."],
        "sort": ["Unknown column 'odd'."],
    }


@pytest.mark.parametrize(
    ("query", "short"),
    [
        pytest.param("user=&name=&page=1", "", id="empty parameters"),
        pytest.param("sort=-started", "", id="the default order"),
        pytest.param("&".join(f"columns={n}" for n in columns.DEFAULT), "", id="default columns"),
        pytest.param(
            f"columns={','.join(columns.DEFAULT)}&user=x", "?user=x", id="default columns only"
        ),
        pytest.param("user=x&state=&page=2", "?user=x&page=2", id="page number"),
    ],
)
def test_urls_omit_default_parameters(as_staff, three, query, short):
    answer = as_staff.get(f"/jobs/?{query}")

    assert answer["Location"] == f"/jobs/{short}"
    assert as_staff.get(answer["Location"]).status_code == 200


def test_links_omit_default_parameters(as_staff, three):
    page = text_of(as_staff.get("/jobs/?sort=-opens"))

    assert '<a href="?"' in page  # by the heading of the default column
    assert "columns=" not in page.replace('name="columns"', "")


@pytest.mark.parametrize(
    "query",
    ["nodes_min=-5", "nodes_max=1.5", "nodes_min=9&nodes_max=3", "start=2017-07-06&end=2017-07-05"],
)
def test_an_empty_range_is_rejected(as_staff, seven, query):
    page = as_staff.get(f"/jobs/?{query}")

    assert "Invalid filter" in words_of(page)
    assert text_of(page).count('class="error"') == 1
    assert as_staff.get(f"/jobs/?{query}&format=json").status_code == 400


def test_every_time_bar_has_neighbours_and_an_absolute_link(as_staff, seven):
    bounded, after, unbounded = (
        text_of(as_staff.get(f"/jobs/?{query}"))
        for query in ("last=24h", "start=2017-07-05T00:00:00Z", "last=all")
    )
    for page in (bounded, after):
        assert 'aria-label="Earlier"' in page
        assert re.search(r'data-copy-link="\?start=2017[^"]*&amp;end=', page)
    assert 'aria-label="Earlier"' not in unbounded
    assert "zoom out" in unbounded
    assert re.search(r'data-copy-link="\?end=20', unbounded)


def test_printed_pages_show_the_filters(as_staff, seven):
    words = words_of(as_staff.get("/jobs/?state=failed&state=running&nodes_min=2"))

    assert "Filtered by nodes at least: 2; state: failed, running" in words


def test_empty_facets_are_hidden(as_staff, new_job):
    new_job(queue="")
    page = text_of(as_staff.get("/jobs/"))

    assert "<legend>User</legend>" in page
    assert "<legend>Queue</legend>" not in page


def test_exports_have_exact_values(as_staff, new_job):
    job = new_job(
        {"read_bytes": 20_360_000_000, "opens": 1_260_185, "open_close_ratio": 4.22}, name="vasp"
    )
    query = "columns=name,started,read_bytes,opens,open_close_ratio"
    page = text_of(as_staff.get(f"/jobs/?{query}"))
    [as_json] = json_of(as_staff.get(f"/jobs/?{query}&format=json"))["rows"]
    [as_csv] = csv_of(as_staff.get(f"/jobs/?{query}&format=csv"))

    assert as_json == {
        "id": job.pk,
        "simulated": False,
        "job": job.batch_id,
        "name": "vasp",
        "started": "2017-07-05T12:00:00+00:00",
        "read_bytes": 20_360_000_000,
        "opens": 1_260_185,
        "open_close_ratio": 4.22,
    }
    assert as_csv == {name: str(value) for name, value in as_json.items()}
    assert 'title="20,360,000,000 bytes = 19.0 GiB">20.4 GB</data>' in page
    assert 'value="1260185" title="1,260,185 operations">1,260,185</data>' in page
    assert 'title="2017-07-05 12:00:00 UTC">2017-07-05 12:00</time>' in page


def test_csv_exports_escape_formulas(as_staff, new_job):
    new_job(name="=HYPERLINK(1)", batch_id="1")
    [row] = csv_of(as_staff.get("/jobs/?format=csv"))
    [same] = json_of(as_staff.get("/jobs/?format=json"))["rows"]

    assert row["name"] == "'=HYPERLINK(1)"
    assert same["name"] == "=HYPERLINK(1)"


def test_a_hostile_name_is_escaped(as_staff, new_job):
    new_job(name="<script>alert(1)</script>\x1b[31m\u202e")
    page = text_of(as_staff.get("/jobs/"))

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m\\u202e" in page


def test_simulated_jobs_are_marked(as_staff, new_job, cluster):
    new_job()
    real = words_of(as_staff.get("/jobs/"))
    cluster.simulated = True
    cluster.save()

    assert "Simulated data" not in real
    assert "Simulated data: all jobs of anvil." in words_of(as_staff.get("/jobs/"))
    [row] = json_of(as_staff.get("/jobs/?format=json"))["rows"]
    assert row["simulated"] is True


@pytest.mark.parametrize(
    ("person", "query", "words"),
    [
        pytest.param("sam", "", "manage.py ingest sacct", id="staff"),
        pytest.param("alice", "", "No jobs yet", id="users"),
        pytest.param("alice", "?user=x", "No jobs match", id="filtered"),
    ],
)
def test_an_empty_list_shows_the_next_step(client, request, person, query, words):
    client.force_login(request.getfixturevalue(person))

    assert words in words_of(client.get(f"/jobs/{query}"))


def test_the_number_of_queries_does_not_grow_with_the_list(
    as_staff, new_job, django_assert_num_queries
):
    new_job({})
    with django_assert_num_queries(8):
        as_staff.get("/jobs/")
    for hours in range(30):
        new_job({}, started_at=at("12:00") + timedelta(hours=hours))
    with django_assert_num_queries(8):
        as_staff.get("/jobs/")


def test_the_csv_export_needs_one_query_after_the_log_in(
    as_staff, seven, django_assert_num_queries
):
    with django_assert_num_queries(3):
        text_of(as_staff.get("/jobs/?format=csv"))
