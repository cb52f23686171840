"""Cases: flags that are triaged together, opened and resolved by their findings."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ioportal.findings import evaluation
from ioportal.findings.cases import case_lifecycle, triage
from ioportal.findings.models import Case, CaseEvent, Flag, ThresholdSet
from ioportal.findings.thresholds import apply_thresholds
from ioportal.jobs.models import DirtyEvidence
from ioportal.telemetry.stage_runs import drain
from tests.logs import Run, at, job_stats

RULE = "metadata-operations"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
pytestmark = pytest.mark.usefixtures("module_site")


def the_case():
    return Case.objects.get(rule=RULE)


def history():
    """Return the kinds of a case's events."""
    return list(CaseEvent.objects.filter(case__rule=RULE).values_list("kind", flat=True))


def test_jobs_of_a_user_and_application_share_a_case(flag_job):
    first, second = flag_job("1"), flag_job("2", DAY)
    flag_job("3", owner="bob")
    flag_job("4", name="other")

    case = Case.objects.get(rule=RULE, owner="alice", application="relax")
    assert {flag.job for flag in case.flags.all()} == {first, second}
    assert (case.since, case.until) == (at("13:00"), at("13:00") + DAY)
    assert Case.objects.filter(rule=RULE).count() == 3


@pytest.mark.parametrize(
    ("name", "application"),
    [
        ("uq_sweep", "uq_sweep"),
        ("uq_sweep_34", "uq_sweep"),
        ("sim.2017-07-05", "sim"),
        ("scan_7_post", "scan_*_post"),
        ("4711", ""),
        ("größe-3", "größe"),
    ],
)
def test_numbers_of_single_jobs_are_not_part_of_the_application_name(name, application, flag_job):
    flag_job("1", name=name)

    assert the_case().application == application


def test_a_case_without_good_data_is_suppressed(flag_job):
    flag_job("1", quality="partial")
    assert the_case().state == Case.State.SUPPRESSED

    flag_job("2")

    case = the_case()
    assert (case.state, history()) == ("open", ["suppressed", "opened"])
    assert case.flags.good().count() == 1
    assert not Case.objects.visible_to(User(username="bob", pk=0)).exists()


def test_a_new_finding_on_later_data_opens_a_resolved_case_again(flag_job, sam):
    flag_job("1")
    triage.resolve([the_case().pk], sam, "User contacted.")

    flag_job("2", -HOUR)
    assert (the_case().state, the_case().flags.count()) == ("resolved", 2)

    flag_job("3", HOUR)
    assert (the_case().state, the_case().resolution) == ("open", "")
    assert history() == ["opened", "resolved", "reopened"]


def test_a_finding_that_doubles_opens_a_resolved_case_again(jobs, read, evaluate, sam):
    jobs(Run("77", end=None))
    for clock, operations in (("11:59", None), ("12:09", 2_100_000)):
        read(clock, operations)
    evaluate()
    triage.resolve([the_case().pk], sam, "User contacted.")

    read("12:19", 3_900_000)
    evaluate()
    assert the_case().state == "resolved"

    read("12:29", 4_300_000)
    evaluate()
    assert (the_case().state, the_case().flags.count()) == ("open", 1)


def test_a_muted_case_takes_new_flags_silently(flag_job, sam):
    flag_job("1")
    triage.mute([the_case().pk], sam, timezone.now() + HOUR)

    flag_job("2", DAY, operations=6e7)

    assert (the_case().state, the_case().flags.count()) == ("muted", 2)
    assert history() == ["opened", "muted"]


def test_a_case_escalates_with_its_worst_flag(flag_job):
    flag_job("1")
    flag_job("2", operations=6e7)

    assert (the_case().severity, history()) == (Flag.Severity.ABUSE, ["opened", "escalated"])


def test_the_severity_of_a_case_is_that_of_its_latest_week(flag_job):
    flag_job("1", operations=6e7)
    assert the_case().severity == Flag.Severity.ABUSE

    flag_job("2", 8 * DAY)

    assert the_case().severity == Flag.Severity.WARNING


def test_a_case_resolves_when_none_of_its_findings_applies(flag_job):
    flag_job("1")
    flag_job("2", operations=3_500_000)

    def set_threshold(value):
        apply_thresholds(
            ThresholdSet(
                rule=RULE,
                thresholds={"metadata_operations": value},
                reason="a test",
                set_by="sam",
            )
        )
        drain(evaluation.evaluate_pending)

    set_threshold(3.2e6)
    assert (the_case().state, the_case().flags.counted().count()) == ("open", 1)
    set_threshold(4e6)
    assert the_case().resolution == "Below the changed thresholds."
    set_threshold(2e6)
    assert (the_case().state, the_case().flags.counted().count()) == ("open", 2)


def test_a_case_expires_thirty_days_after_its_last_finding(flag_job):
    flag_job("1")
    now = timezone.now()
    case_lifecycle.expire(now, at("13:00") + 30 * DAY)
    assert the_case().state == "open"

    case_lifecycle.expire(now, at("13:00") + 31 * DAY)
    assert the_case().resolution == (
        "Expired: its latest data is more than 30 days older than the latest data of the site."
    )

    flag_job("2", DAY / 2)  # loaded late, and as old
    assert (the_case().state, the_case().flags.count()) == ("resolved", 2)
    flag_job("3", 29 * DAY)  # loaded late, but newer
    assert (the_case().state, history()) == ("open", ["opened", "resolved", "reopened"])


def test_a_flag_begins_when_its_threshold_was_reached(logs, ingest, jobs, evaluate):
    jobs(*(Run(job, end="12:20", nodes=f"n{job[-1]}") for job in ("71", "72")))
    slopes = {"71": 150_000, "72": 200_000}  # operations a minute
    for minute in range(0, 22, 2):
        entries = {job: {"getattr": slope * minute + 1} for job, slope in slopes.items()}
        text = job_stats("lake-MDT0000", entries, snapshot=f"12:{minute:02}")
        ingest("job_stats", logs(f"r{minute}", text), at=at(f"12:{minute:02}").isoformat())

    flags = evaluate()

    # The first read after 13:20 minutes, and after 10 minutes.
    assert [flags[RULE, job].since for job in ("71", "72")] == [at("12:14"), at("12:10")]
    assert {flags[RULE, job].until for job in ("71", "72")} == {at("12:20")}
    assert flags[RULE, "71"].opened_at > at("12:20")


def test_the_number_of_queries_does_not_grow_with_the_flags(flag_job):
    def queries_for(count):
        keys = [flag_job(f"{count}-{n}", quality="poor").pk for n in range(count)]
        Flag.objects.all().delete()
        DirtyEvidence.objects.mark(keys)
        with CaptureQueriesContext(connection) as queries:
            evaluation.evaluate_pending()
        assert Flag.objects.count() == count
        return len(queries)

    assert queries_for(2) == queries_for(8)
