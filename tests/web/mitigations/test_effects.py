"""Measured effects of mitigations: on their pages, and in the catalogue of what worked."""

import re
from urllib.parse import parse_qsl

import pytest
from django.core.cache import cache

from ioportal.jobs.models import DirtyStatistics, Job, JobStatistics
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
    page = as_staff.get(f"/mitigations/{fix.pk}/")
    assert facts["agreement"] == "as expected"
    assert facts["conclusions"][0].startswith(
        "Expected: duration falls 4\u00d7. Measured: fell 4.0"
    )
    assert facts["conclusions"][0].endswith("). As expected.")
    assert facts["conclusions"][0] in words_of(page)
    assert page.context["page"].chart.title == "Daily medians of duration"
    assert len(page.context["page"].chart.rows) == 28


def test_pending_jobs_are_those_of_the_periods_as_in_the_comparison(as_staff):
    fix = expect_duration(factor=0.25)
    DirtyStatistics.objects.mark(Job.objects.values_list("pk", flat=True))  # of forty days
    page = as_staff.get(f"/mitigations/{fix.pk}/").context["page"]

    compared = as_staff.get(f"{page.measured.compare_url}&format=json")
    assert page.pending_statistics == json_of(compared)["pending_statistics"] == 140


def test_no_effect_is_reported_with_what_would_have_been_seen(as_staff):
    fix = expect_duration(started_at=CHANGED_AT - 12 * DAY, factor=0.1)
    facts = json_of(as_staff.get(f"/mitigations/{fix.pk}/?format=json"))
    [conclusion] = facts["conclusions"]

    assert facts["verdict"] in {"no change detected", "equivalent"}
    assert "would have been seen" in conclusion or "within" in conclusion
    assert conclusion.endswith(". The expected change did not happen.")


def test_a_change_inside_a_period_leaves_the_effect_unknown(as_staff):
    fix = expect_duration(started_at=CHANGED_AT - 8 * DAY, factor=0.1)
    [conclusion] = json_of(as_staff.get(f"/mitigations/{fix.pk}/?format=json"))["conclusions"]

    assert "Measured: unknown; the days of an arm differ too much. Whether" in conclusion


def test_changes_close_together_are_measured_as_one(as_staff):
    fix = expect_duration()
    log(title=HOSTILE, started_at=CHANGED_AT + 2 * DAY, scope="name=relax")
    page = as_staff.get(f"/mitigations/{fix.pk}/")

    assert "Measured together with </script>" in words_of(page).replace("&lt;", "<")
    assert HOSTILE not in text_of(page)


def test_effects_close_together_have_a_joint_expectation_and_single_steps(as_staff, cluster):
    Job.objects.all().delete()
    change_run_time(cluster, halfway=2)
    first = expect_duration(title="First", factor=0.5)
    second = expect_duration(title="Second", factor=0.5, started_at=CHANGED_AT + 2 * DAY)
    conclusions = {
        row["title"]: row["conclusions"]
        for row in json_of(as_staff.get(f"{CATALOGUE}?format=json"))["rows"]
    }
    compared = as_staff.get(f"/mitigations/{first.pk}/").context["page"].measured.compare_url
    words = words_of(as_staff.get(compared))

    for title, other, day, of_other in (
        ("First", "Second", "1 July", "3 Jul 2017"), ("Second", "First", "3 July", "1 Jul 2017")
    ):  # fmt: skip
        joint, single = conclusions[title]
        assert joint.startswith(
            f"Expected together with “{other}” ({of_other}): duration falls 4\u00d7. "
            "Measured together: fell 4.0"
        )
        assert joint.endswith("). As expected.")
        factor = re.match(r"This mitigation alone: daily medians fell (.*)\u00d7 on ", single)[1]
        assert float(factor) == pytest.approx(2, rel=0.15)
        assert f" on {day} (from daily medians, without an interval" in single
    assert conclusions["First"][0] in words
    link = f'<a href="/mitigations/{second.pk}/">Second</a> (3 Jul 2017).'
    for path in (compared, f"/mitigations/{first.pk}/", CATALOGUE):
        assert link in text_of(as_staff.get(path))
    assert "Another mitigation: Second (3 Jul 2017)." in words
    assert "Another mitigation: First" not in words


def test_a_mitigation_without_metric_has_the_main_effects(as_staff):
    fix = log(started_at=CHANGED_AT, scope="user=alice")
    Job.objects.filter(started_at__gte=CHANGED_AT + 7 * DAY).update(state="completed")
    conclusions = json_of(as_staff.get(f"/mitigations/{fix.pk}/?format=json"))["conclusions"]

    assert conclusions[0].startswith("Metadata operations per node: no conclusion, no known values")
    assert conclusions[1].startswith("Duration fell 4.0")
    assert conclusions[2] == "Completed jobs per day: 0.00 before, 2.50 after."


def test_jobs_with_weight_are_counted_and_side_effects_named(as_staff):
    fix = expect_duration(factor=0.25)
    after = Job.objects.filter(started_at__gte=CHANGED_AT)
    after.filter(pk__in=after.order_by("pk")[:5]).update(node_count=4_096)
    JobStatistics.objects.update(metadata_operations_per_node=100)
    JobStatistics.objects.filter(job__in=after).update(metadata_operations_per_node=150)
    facts = json_of(as_staff.get(f"/mitigations/{fix.pk}/?format=json"))
    words = words_of(as_staff.get(f"/mitigations/{fix.pk}/"))

    assert (facts["jobs"], facts["all_jobs"]) == ([70, 65], [70, 70])
    assert "70 jobs before, 65 of 70 after" in words
    assert facts["conclusions"][1].startswith(
        "At the same time: metadata operations per node rose 50.0 %"
    )


def test_the_comparison_names_the_mitigation_and_marks_it(as_staff, alice):
    fix = expect_duration(factor=0.25, title=HOSTILE)
    address = as_staff.get(f"/mitigations/{fix.pk}/").context["page"].measured.compare_url
    words = words_of(as_staff.get(address))
    daily = as_staff.get(address).context["page"].part("days").figure["layout"]["meta"]["key"]

    assert f'before and after <a href="/mitigations/{fix.pk}/">' in text_of(as_staff.get(address))
    assert "Expected: duration falls 4\N{MULTIPLICATION SIGN}. Measured: fell 4.0" in words
    assert as_staff.get(address).context["page"].metric.name == "duration_s"
    assert HOSTILE in [mark["text"] for mark in daily]
    assert HOSTILE not in text_of(as_staff.get(address))
    as_staff.force_login(alice)
    assert f"/mitigations/{fix.pk}/" not in text_of(as_staff.get(address))  # not public


def test_the_comparison_has_both_periods_and_a_control(as_staff, new_job):
    fix = expect_duration()
    for day in range(-9, 9):  # days that only the control has, too
        new_job(owner="bob", started_at=CHANGED_AT + day * 2 * DAY)
    measured = as_staff.get(f"/mitigations/{fix.pk}/").context["page"].measured
    compared = as_staff.get(measured.compare_url).context["page"]
    [effect] = compared.result.metrics["duration_s"].effects

    assert compared.has_control
    assert effect == measured.effect

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

    assert [row["title"] for row in rows] == ["Too late", "Without metric", "Fix"]
    measured, _, unmeasured = page.partition("Not measured")
    assert "Too late" not in measured
    assert "There is less than a day of data after it." in unmeasured
    assert "Fix" not in unmeasured
    assert (rows[0]["estimate"], rows[2]["verdict"], rows[2]["cost"]) == ("", "changed", "Memory")


def test_users_have_effects_on_the_jobs_that_they_see(client, alice, charlie):
    expect_duration(is_public=True)
    conclusions = []
    for user in (alice, charlie):
        client.force_login(user)
        [row] = json_of(client.get(f"{CATALOGUE}?format=json"))["rows"]
        conclusions.append(row["conclusions"][0])

    assert conclusions[0].startswith("Duration fell")
    assert conclusions[1] == "No job of yours in its scope has started."


def test_an_empty_catalogue_explains_the_next_step(as_staff):
    assert "No mitigations. Log a mitigation" in words_of(as_staff.get(CATALOGUE))
