"""Change points on the trends page: proposals, explanations and dismissals."""

import re

import pytest

from ioportal.site.models import ServerVersion
from ioportal.studies.models import DismissedChange
from tests.logs import at
from tests.web.conftest import NOON
from tests.web.mitigations.rows import DAY, change_run_time, log
from tests.web.reading import csv_of, text_of, words_of

ADDRESS = "/trends/change-points/?user=alice&last=all"


@pytest.fixture(autouse=True)
def _changed(cluster):
    """Create jobs of alice whose run time falls to a quarter on 1 July."""
    change_run_time(cluster)


def test_a_change_is_proposed_and_fills_in_the_form(as_staff):
    page = as_staff.get(ADDRESS)
    link = re.search(r'href="(/mitigations/log/[^"]+)"', text_of(page))[1]
    initial = as_staff.get(link.replace("&amp;", "&")).context["form"].initial

    assert "1 July 2017 : Duration fell" in words_of(page)
    assert "Which change explains it?" in words_of(page)
    assert initial["started_at"] == "2017-07-01T00:00:00+00:00"
    assert (initial["scope"], initial["metric"]) == ("user=alice", "duration_s")
    assert (initial["direction"], initial["source"]) == ("less", "change-point")
    [row] = csv_of(as_staff.get(f"{ADDRESS}&format=csv"))
    assert (row["day"], row["metric"]) == ("2017-07-01", "duration_s")
    assert float(row["ratio"]) == pytest.approx(0.25, rel=0.1)


@pytest.mark.parametrize("days", [-1, 0, 1])
def test_a_mitigation_within_a_day_explains_it(as_staff, days):
    log(title="The fix", started_at=at("23:00") + DAY * (days - 4), scope="user=alice")
    page = words_of(as_staff.get(ADDRESS))

    assert "Logged within a day: The fix" in page
    assert "Which change explains it?" not in page


def test_other_mitigations_do_not_explain_it(as_staff):
    log(started_at=at("12:00") - 2 * DAY, scope="user=alice")
    log(started_at=at("12:00") - 4 * DAY, scope="user=bob")

    assert "Which change explains it?" in words_of(as_staff.get(ADDRESS))


def test_an_upgrade_explains_it(as_staff, mds):
    for version, day in (("2.12", -99), ("2.15", -4)):
        ServerVersion.objects.create(server=mds, version=version, since=NOON + day * DAY)

    assert "upgrade, lake: MDS 2.15" in words_of(as_staff.get(ADDRESS))


def test_a_dismissed_change_is_not_proposed_again_for_these_jobs(as_staff):
    for _ in range(2):
        answer = as_staff.post(ADDRESS, {"day": "2017-07-01"})

    assert answer["Location"].startswith("/trends/?user=alice")
    assert DismissedChange.objects.get().by == "sam"
    assert "No change points in this period." in words_of(as_staff.get(ADDRESS))
    assert "1 July" in words_of(as_staff.get("/trends/change-points/?last=all"))
    assert as_staff.post(ADDRESS, {"day": "x"}).status_code == 400


def test_users_see_change_points_without_actions(as_alice):
    page = as_alice.get(ADDRESS)

    assert "1 July 2017" in words_of(page)
    assert "Dismiss" not in words_of(page)


def test_the_trends_page_loads_them(as_staff):
    page = text_of(as_staff.get("/trends/?user=alice&last=all"))

    assert 'hx-get="/trends/change-points/?user=alice&amp;last=all"' in page
