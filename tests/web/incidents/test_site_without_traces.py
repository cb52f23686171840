"""Pages of incidents at a site without traces."""

from ioportal.load.models import Incident
from tests.web.reading import words_of


def test_without_traces_the_page_shows_how_to_load_one(as_staff, site):
    assert "lctl set_param debug=+rpctrace" in words_of(as_staff.get("/incidents/impact/"))


def test_invalid_ranges_are_not_saved(as_staff, site):
    days = {"server": "mds1", "start": "2017-07-01T00:00Z", "end": "2017-07-05T00:00Z"}
    for interval in (
        days,
        {**days, "end": "2017-06-01T00:00Z"},
        {**days, "server": "oss1"},
        {**days, "start": "0001-01-01T00:00"},
        {},
    ):
        as_staff.post("/incidents/save/", interval)

    assert not Incident.objects.exists()
