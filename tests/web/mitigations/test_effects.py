"""Measured effects of mitigations: on their pages, and in the catalogue of what worked."""

from urllib.parse import parse_qsl

import pytest
from django.core.cache import cache

from tests.logs import at
from tests.web.mitigations.rows import DAY, HOSTILE, change_run_time, log
from tests.web.reading import csv_of, json_of, text_of, words_of

CHANGED_AT = at("00:00") - 4 * DAY
CATALOGUE = "/mitigations/what-worked/"


@pytest.fixture(autouse=True)
def _jobs(cluster):
    """Create jobs of alice whose run time falls to a quarter on 1 July."""
    change_run_time(cluster)


def expect_duration(**facts):
    cache.clear()
    facts = {"started_at": CHANGED_AT, "scope": "user=alice", **facts}
    return log(metric="duration_s", **facts)


def test_an_effect_is_measured_with_its_interval(as_staff):
    fix = expect_duration(factor=0.25)
    facts = json_of(as_staff.get(f"/mitigations/{fix.pk}/?format=json"))

    assert (facts["verdict"], facts["scale"], facts["jobs"]) == ("changed", "ratio", [70, 70])
    assert facts["low"] < 0.25 < facts["high"]
    assert facts["estimate"] == pytest.approx(0.25, rel=0.05)
    assert facts["conclusion"] in words_of(as_staff.get(f"/mitigations/{fix.pk}/"))


def test_no_effect_is_reported_with_what_would_have_been_seen(as_staff):
    fix = expect_duration(started_at=CHANGED_AT - 8 * DAY)
    facts = json_of(as_staff.get(f"/mitigations/{fix.pk}/?format=json"))

    assert facts["verdict"] in {"no change detected", "equivalent"}
    assert "would have been seen" in facts["conclusion"] or "within" in facts["conclusion"]


def test_changes_close_together_are_measured_as_one(as_staff):
    fix = expect_duration()
    log(title=HOSTILE, started_at=CHANGED_AT + 2 * DAY, scope="name=relax")
    page = as_staff.get(f"/mitigations/{fix.pk}/")

    assert "Measured together with: </script>" in words_of(page).replace("&lt;", "<")
    assert HOSTILE not in text_of(page)


def test_the_comparison_names_the_mitigation_and_marks_it(as_staff, alice):
    fix = expect_duration(factor=0.25, title=HOSTILE)
    address = as_staff.get(f"/mitigations/{fix.pk}/").context["page"].measured.compare_url
    words = words_of(as_staff.get(address))
    daily = as_staff.get(address).context["page"].part("days").figure["layout"]["annotations"]

    assert f'before and after <a href="/mitigations/{fix.pk}/">' in text_of(as_staff.get(address))
    assert "(expected: duration falls 4\N{MULTIPLICATION SIGN})" in words
    assert "Duration fell 4.0" in words
    assert any("b>x" in label["text"] for label in daily)
    assert HOSTILE not in text_of(as_staff.get(address))
    as_staff.force_login(alice)
    assert f"/mitigations/{fix.pk}/" not in text_of(as_staff.get(address))  # not public


def test_the_comparison_has_both_periods_and_a_control(as_staff):
    fix = expect_duration()
    measured = as_staff.get(f"/mitigations/{fix.pk}/").context["page"].measured

    assert parse_qsl(measured.compare_query) == [
        ("arm", measured.periods.before),
        ("arm", measured.periods.after),
        ("control", "others"),
        ("mitigation", str(fix.pk)),
    ]


def test_the_catalogue_lists_effects_by_kind(as_staff):
    expect_duration(title="Fix", factor=0.25, cost="Memory")
    expect_duration(title="Too late", kind="striping", started_at=at("12:00") + 90 * DAY)
    log(title="Without metric")
    page = words_of(as_staff.get(CATALOGUE))
    rows = csv_of(as_staff.get(f"{CATALOGUE}?format=csv"))

    assert [row["title"] for row in rows] == ["Too late", "Fix"]
    assert "There is less than a day of data after it." in page
    assert (rows[0]["estimate"], rows[1]["verdict"], rows[1]["cost"]) == ("", "changed", "Memory")


def test_users_have_effects_on_the_jobs_that_they_see(client, alice, charlie):
    expect_duration(is_public=True)
    conclusions = []
    for user in (alice, charlie):
        client.force_login(user)
        [row] = json_of(client.get(f"{CATALOGUE}?format=json"))["rows"]
        conclusions.append(row["conclusion"])

    assert conclusions[0].startswith("Duration fell")
    assert conclusions[1] == "No job in its scope has started."


def test_an_empty_catalogue_explains_the_next_step(as_staff):
    assert "No mitigations with an expected metric." in words_of(as_staff.get(CATALOGUE))
