"""Change points on the trends page: proposals, explanations and dismissals."""

import re

import numpy as np
import pytest

from ioportal.changes.models import DismissedChange
from ioportal.jobs.models import Job, JobStatistics
from ioportal.site.models import ServerVersion
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


def test_another_mix_of_applications_is_pointed_out(as_staff):
    change = at("00:00") - 4 * DAY
    Job.objects.filter(started_at__lt=change).update(name="reco")
    Job.objects.filter(started_at__gte=change).update(name="merge")
    page = words_of(as_staff.get(ADDRESS))

    assert "1 July 2017 : Duration fell" in page
    assert "The jobs are of other applications than before." in page


def test_what_is_left_of_a_change_with_the_same_mix_is_shown(as_staff):
    change, rng = at("00:00") - 4 * DAY, np.random.default_rng(2)
    jobs = list(Job.objects.select_related("statistics"))
    for job in jobs:
        # Three of five jobs of a day, later one.
        is_long = job.started_at.hour > (1 if job.started_at < change else 3)
        job.name = "reco" if is_long else "merge"
        job.statistics.duration_s = (4_000 if is_long else 1_000) * rng.lognormal(0, 0.05)
    Job.objects.bulk_update(jobs, ["name"])
    JobStatistics.objects.bulk_update([job.statistics for job in jobs], ["duration_s"])

    page = words_of(as_staff.get(ADDRESS))
    [row] = csv_of(as_staff.get(f"{ADDRESS}&format=csv"))

    assert "The mix of applications changed: with the same mix, duration" in page
    assert float(row["ratio"]) < 0.3
    assert float(row["ratio_with_same_mix"]) == pytest.approx(1, abs=0.05)


def test_a_change_within_applications_is_not_one_of_their_mix(as_staff):
    assert "applications" not in words_of(as_staff.get(ADDRESS))


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
