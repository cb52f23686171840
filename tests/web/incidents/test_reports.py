"""What users say of a filesystem, beside what its servers did then."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ioportal.activity.models import Incident, Report
from ioportal.site.models import Server
from ioportal.web.incidents.forms import REPORTS_A_DAY
from tests.logs import at
from tests.web.reading import json_of, text_of, words_of

HOSTILE = "ls <script>alert(1)</script> \x1b[31mhangs"


@pytest.fixture
def say(client, site):
    """Let somebody report something."""

    def run(person, words=HOSTILE, when="2017-07-05T12:20", filesystem="lake"):
        client.force_login(person)
        told = {"filesystem": filesystem, "at": when, "words": words}
        return client.post("/incidents/", told, follow=True)

    return run


@pytest.fixture
def incident(site):
    """On mds1, from 12:10 to 12:12."""
    mds = Server.objects.get(name="mds1")
    return Incident.objects.create(title="Slow", server=mds, start=at("12:10"), end=at("12:12"))


def test_the_reporter_sees_what_became_of_it(say, client, alice, incident):
    page = words_of(say(alice))

    assert "ls <script>alert(1)</script>" in page
    assert f"Incident {incident.pk}" in page
    assert "<script>alert" not in text_of(client.get("/incidents/"))
    assert Report.objects.get().reporter == alice


def test_staff_see_it_with_the_incident_of_its_time_and_filesystem(
    say, client, alice, incident, sam
):
    say(alice, "it hangs")
    say(alice, "hours later", when="2017-07-05T16:00")
    say(alice, "elsewhere", filesystem="pond")
    client.force_login(sam)

    [told] = json_of(client.get(f"/incidents/{incident.pk}/?format=json"))["reports"]
    without = words_of(client.get("/incidents/"))

    assert (told["words"], told["reporter"]) == ("it hangs", "alice")
    assert "hours later" in without
    assert "elsewhere" in without
    assert "it hangs" not in without


def test_nobody_reads_what_others_report(say, client, alice, charlie, incident):
    say(alice, "secret words")
    client.force_login(charlie)

    assert "secret words" not in words_of(client.get("/incidents/"))
    assert json_of(client.get(f"/incidents/{incident.pk}/?format=json"))["reports"] == []


def test_twenty_a_day_are_enough(say, alice, bob):
    for _ in range(REPORTS_A_DAY):
        say(alice)

    assert "please call the centre" in words_of(say(alice))
    assert "Thank you" in words_of(say(bob))
    assert Report.objects.filter(reporter=alice).count() == REPORTS_A_DAY
    Report.objects.update(reported_at=timezone.now() - timedelta(days=2))
    assert "Thank you" in words_of(say(alice))


@pytest.mark.parametrize(
    "told",
    [
        {"words": ""},
        {"words": "x" * 1_001},
        {"words": "nul \x00"},
        {"when": "2190-01-01T00:00"},
        {"when": "yesterday"},
        {"when": "0001-01-01T00:00"},
        {"filesystem": "no such"},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(say, alice, told):
    say(alice, **told)

    assert not Report.objects.exists()


def test_more_reports_and_incidents_take_no_more_queries(
    say, client, alice, sam, incident, django_assert_num_queries
):
    say(alice)
    say(alice, when="2017-07-05T18:00")
    pages = {"/incidents/": 12, f"/incidents/{incident.pk}/": 7}
    client.force_login(sam)
    _asked(client, pages, django_assert_num_queries)

    for hour in range(13, 17):
        say(alice, when=f"2017-07-05T{hour}:00")
        say(alice, when="2017-07-05T12:11")
        Incident.objects.create(
            title="More", server=incident.server, start=at("12:11"), end=at("12:13")
        )
    client.force_login(sam)
    _asked(client, pages, django_assert_num_queries)


def _asked(client, pages, counted):
    for page, queries in pages.items():
        client.get(page)
        with counted(queries):
            client.get(page)
