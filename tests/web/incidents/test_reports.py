"""Problem reports of users, next to the incidents of their time."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ioportal.load.models import Incident, Report
from ioportal.site.models import Server
from ioportal.web.incidents.forms import REPORTS_A_DAY
from tests.logs import at
from tests.web.reading import json_of, text_of, words_of

HOSTILE = "ls <script>alert(1)</script> \x1b[31mhangs"


@pytest.fixture
def report(client, module_site):
    """Send a problem report."""

    def run(person, description=HOSTILE, when="2017-07-05T12:20", filesystem="lake"):
        client.force_login(person)
        fields = {"filesystem": filesystem, "at": when, "description": description}
        return client.post("/incidents/", fields, follow=True)

    return run


@pytest.fixture
def incident(module_site):
    """On mds1, from 12:10 to 12:12."""
    mds = Server.objects.get(name="mds1")
    return Incident.objects.create(title="Slow", server=mds, start=at("12:10"), end=at("12:12"))


def test_users_see_the_incident_of_their_report(report, client, alice, incident):
    page = words_of(report(alice))

    assert "ls <script>alert(1)</script>" in page
    assert f"Incident {incident.pk}" in page
    assert "<script>alert" not in text_of(client.get("/incidents/"))
    assert Report.objects.get().reporter == alice


def test_staff_see_reports_with_the_incident_of_their_time_and_filesystem(
    report, client, alice, incident, sam
):
    report(alice, "it hangs")
    report(alice, "hours later", when="2017-07-05T16:00")
    report(alice, "elsewhere", filesystem="pond")
    client.force_login(sam)

    [listed] = json_of(client.get(f"/incidents/{incident.pk}/?format=json"))["reports"]
    without = words_of(client.get("/incidents/"))

    assert (listed["description"], listed["reporter"]) == ("it hangs", "alice")
    assert "hours later" in without
    assert "elsewhere" in without
    assert "it hangs" not in without


def test_users_do_not_see_reports_of_others(report, client, alice, charlie, incident):
    report(alice, "secret words")
    client.force_login(charlie)

    assert "secret words" not in words_of(client.get("/incidents/"))
    assert json_of(client.get(f"/incidents/{incident.pk}/?format=json"))["reports"] == []


def test_reports_are_limited_per_day(report, alice, bob):
    for _ in range(REPORTS_A_DAY):
        report(alice)

    assert "contact the help desk" in words_of(report(alice))
    assert "Report sent" in words_of(report(bob))
    assert Report.objects.filter(reporter=alice).count() == REPORTS_A_DAY
    Report.objects.update(reported_at=timezone.now() - timedelta(days=2))
    assert "Report sent" in words_of(report(alice))


@pytest.mark.parametrize(
    "fields",
    [
        {"description": ""},
        {"description": "x" * 1_001},
        {"description": "nul \x00"},
        {"when": "2190-01-01T00:00"},
        {"when": "yesterday"},
        {"when": "0001-01-01T00:00"},
        {"filesystem": "no such"},
    ],
    ids=str,
)
def test_invalid_reports_are_refused(report, alice, fields):
    report(alice, **fields)

    assert not Report.objects.exists()


def test_the_number_of_queries_does_not_grow(
    report, client, alice, sam, incident, django_assert_num_queries
):
    report(alice)
    report(alice, when="2017-07-05T18:00")
    pages = {"/incidents/": 13, f"/incidents/{incident.pk}/": 14}
    client.force_login(sam)
    _assert_queries(client, pages, django_assert_num_queries)

    for hour in range(13, 17):
        report(alice, when=f"2017-07-05T{hour}:00")
        report(alice, when="2017-07-05T12:11")
        Incident.objects.create(
            title="More", server=incident.server, start=at("12:11"), end=at("12:13")
        )
    client.force_login(sam)
    _assert_queries(client, pages, django_assert_num_queries)


def _assert_queries(client, pages, counted):
    for page, queries in pages.items():
        client.get(page)
        with counted(queries):
            client.get(page)
