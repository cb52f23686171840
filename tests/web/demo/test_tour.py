"""The tour of the demo: its links, and its dismissal."""

import pytest
from django.core.cache import cache
from django.urls import reverse
from django.utils import timezone

from ioportal.demo import tour
from ioportal.findings.models import Case
from ioportal.site.models import UserAccount
from tests.web.demo.tour import date_the_story, pilots
from tests.web.reading import text_of, words_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def demo(settings, tmp_path, monkeypatch):
    settings.DEMO = True
    date_the_story(tmp_path, monkeypatch)


def urls():
    cache.clear()
    return {stop.title: stop.url for stop in tour.stops()}


def test_links_whose_data_is_missing_are_still_loading(demo, as_staff):
    page = words_of(as_staff.get("/"))

    assert page.count("still loading") == 6
    assert text_of(as_staff.get("/")).count("The storm now</a>") == 1


def test_links_lead_to_the_jobs_of_the_story(demo, cluster, as_staff):
    [crisis] = pilots(cluster, "2017-07-06T10:00", 1, 1_100_000)
    pilots(cluster, "2016-10-25T00:10", 1_174, 10)
    before_last = urls()
    pilots(cluster, "2016-10-31T23:00", 1, 10)
    pilots(cluster, "2017-08-10T10:00", 2, 1_500)
    pilots(cluster, "2017-08-20T10:00", 3, 700)
    links = urls()
    compared = words_of(as_staff.get(links["Before and after the search-path fix"]))

    assert before_last["The week of 1,175 jobs"] == ""
    assert links["The job that does 2 million operations"] == reverse("job", args=[crisis.pk])
    assert "1,175 jobs" in words_of(as_staff.get(links["The week of 1,175 jobs"]))
    assert "2 jobs" in compared
    assert "3 jobs" in compared


def test_the_case_of_the_tour_is_unresolved_and_the_worst(demo, new_case, new_job):
    for jobs in (3, 2, 1):
        owner = f"user{jobs}"
        for number in range(jobs):
            case = new_case(new_job(batch_id=f"{jobs}-{number}", owner=owner, name="relax"))
        if jobs == 3:
            case.state, case.resolution, case.resolved_at = "resolved", "Fixed.", timezone.now()
            case.save()

    last = urls()["Who was flagged, and why"]

    assert last == reverse("case", args=[Case.objects.get(owner="user2").pk])


def test_the_card_is_dismissed_for_good(demo, as_staff):
    assert "Tour" in words_of(as_staff.get("/"))

    page = as_staff.post("/tour/", follow=True)

    assert page.redirect_chain == [("/", 302)]
    assert "The storm now" not in words_of(page)
    assert "The storm now" in words_of(as_staff.get("/tour/"))


def test_other_users_have_no_tour(demo, as_alice):
    assert as_alice.get("/tour/").status_code == 404


def test_other_portals_have_no_tour(as_staff):
    assert as_staff.get("/tour/").status_code == 404
    assert "The storm now" not in words_of(as_staff.get("/"))


def test_people_of_the_demo_have_addresses(call):
    call("register", "ioportal/demo/people.toml")

    assert UserAccount.objects.get(name="wuxian").email == "wuxian@example.org"
    assert UserAccount.objects.filter(email="").count() == 0
