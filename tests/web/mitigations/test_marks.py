"""Marks of mitigations on the charts of jobs, populations and servers."""

import json
import re

import pytest

from tests.web.conftest import NOON
from tests.web.mitigations.rows import DAY, HOSTILE, log
from tests.web.reading import json_of, text_of


def labels(page):
    """Return the labels of each chart of a page."""
    figures = re.findall(r'<script id="figure-[^"]*" type="application/json">(.*?)</script>', page)
    return [
        [label["text"] for label in json.loads(figure)["layout"]["annotations"]]
        for figure in figures
    ]


def test_a_job_has_marks_of_the_mitigations_that_concern_it(as_staff, heavy_job):
    log(title="Mine", scope="user=alice&nodes_max=2")
    log(title="All", completed_at=NOON + DAY / 48)
    log(title="Not mine", scope="user=alice&nodes_min=3")
    log(title="Later", started_at=NOON + 2 * DAY)
    for drawn in labels(text_of(as_staff.get(f"/jobs/{heavy_job.pk}/"))):
        titles = [text for text in drawn if text.startswith(("Mine", "All", "Not", "Later"))]
        assert titles == ["Mine", "All", "All: complete"]


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
    assert "&lt;/script>&lt;b>x&lt;/b>\\u202e" in labels(page)[0]


@pytest.mark.usefixtures("heavy_job")
def test_trends_have_marks_unless_filters_exclude_each_other(as_staff):
    log(title="Mine", scope="user=alice")
    log(title="Long " * 20, scope="user=bob")
    log(title="Pilots", scope="name=pilot")

    def titles(query):
        about = json_of(as_staff.get(f"/trends/opens/?format=json{query}"))
        return [mark["what"] for mark in about["mitigations"]]

    assert titles("&user=alice") == ["Mine", "Pilots"]
    assert titles("&user=alice&name=relax") == ["Mine"]
    assert [title[:6] for title in titles("")] == ["Mine", "Long L", "Pilots"]
    assert max(map(len, titles(""))) <= 61


@pytest.mark.usefixtures("heavy_job")
def test_servers_have_marks_of_mitigations_of_all_jobs(as_staff):
    log(title="All")
    log(title="Mine", scope="user=alice")
    query = "?start=2017-07-05T12:00Z&end=2017-07-05T13:00Z"
    overview = labels(text_of(as_staff.get(f"/overview/{query}")))

    assert all("All" in drawn and "Mine" not in drawn for drawn in overview)
    assert len(overview) >= 2
