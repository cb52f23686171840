"""Marks of mitigations on the charts of jobs, populations and servers."""

import json
import re

import pytest

from tests.web.conftest import NOON
from tests.web.mitigations.rows import DAY, HOSTILE, log
from tests.web.reading import json_of, text_of


def layouts(page):
    """Return the layout of each chart of a page."""
    figures = re.findall(r'<script id="figure-[^"]*" type="application/json">(.*?)</script>', page)
    return [json.loads(figure)["layout"] for figure in figures]


def keys(page):
    """Return the texts in the key of each chart of a page."""
    return [[mark["text"] for mark in layout["meta"]["key"]] for layout in layouts(page)]


def test_a_job_has_marks_of_the_mitigations_that_concern_it(as_staff, heavy_job):
    log(title="Mine", scope="user=alice&nodes_max=2")
    log(title="All", completed_at=NOON + DAY / 48)
    log(title="Not mine", scope="user=alice&nodes_min=3")
    log(title="Later", started_at=NOON + 2 * DAY)
    page = text_of(as_staff.get(f"/jobs/{heavy_job.pk}/"))
    for layout, key in zip(layouts(page), keys(page), strict=True):
        assert key == ["Mine", "All", "All: complete"]
        numbers = [label for label in layout["annotations"] if label.get("name") == "number"]
        assert [label["text"] for label in numbers] == ["1", "2", "3"]
    assert page.count('<b class="mitigation">3</b>') == len(layouts(page))


def test_scopes_are_matched_in_one_query(as_staff, heavy_job, django_assert_max_num_queries):
    address = f"/jobs/{heavy_job.pk}/"
    with django_assert_max_num_queries(1_000) as none:
        as_staff.get(address)
    for user in ("alice", "bob", "charlie"):
        log(scope=f"user={user}")
    with django_assert_max_num_queries(len(none) + 1):
        as_staff.get(address)


def test_users_have_marks_of_public_mitigations_only(as_alice, heavy_job):
    log(title="Secret")
    log(title=HOSTILE, is_public=True)
    page = text_of(as_alice.get(f"/jobs/{heavy_job.pk}/"))

    assert "Secret" not in page
    assert keys(page)[0] == [HOSTILE]
    assert HOSTILE not in page


@pytest.mark.usefixtures("heavy_job")
def test_users_have_marks_of_mitigations_of_jobs_that_they_may_see(as_alice):
    log(title="Mine", scope="name=relax", is_public=True)
    log(title="Not mine", scope="name=pilot", is_public=True)
    log(title="PanDA", scope="unit=panda", is_public=True)
    about = json_of(as_alice.get("/trends/opens/?format=json"))

    assert [mark["what"] for mark in about["mitigations"]] == ["Mine"]


@pytest.mark.usefixtures("heavy_job")
def test_trends_have_marks_unless_filters_exclude_each_other(as_staff):
    log(title="Mine", scope="user=alice")
    log(title="Other", scope="user=bob")
    log(title="Pilots", scope="name=pilot")

    def titles(query):
        about = json_of(as_staff.get(f"/trends/opens/?format=json{query}"))
        return [mark["what"] for mark in about["mitigations"]]

    assert titles("&user=alice") == ["Mine", "Pilots"]
    assert titles("&user=alice&name=relax") == ["Mine"]
    assert titles("") == ["Mine", "Other", "Pilots"]


@pytest.mark.usefixtures("heavy_job")
def test_servers_have_marks_of_mitigations_of_all_jobs(as_staff):
    log(title="All")
    log(title="Mine", scope="user=alice")
    query = "?start=2017-07-05T12:00Z&end=2017-07-05T13:00Z"
    overview = keys(text_of(as_staff.get(f"/overview/{query}")))

    assert all("All" in drawn and "Mine" not in drawn for drawn in overview)
    assert len(overview) >= 2
