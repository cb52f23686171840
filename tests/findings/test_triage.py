"""Triage of cases by staff: recorded with user, time and reason, and safe under concurrency."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count
from threading import Barrier

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection, transaction
from django.utils import timezone

from ioportal.findings.cases import case_lifecycle, triage
from ioportal.findings.models import Case, CaseEvent, Flag
from tests.logs import at

HOUR = timedelta(hours=1)
MONTH = timedelta(days=31)


@pytest.fixture
def new_case(db):
    """Create the case of a user's campaign with its flag, as evaluation does."""
    numbers = count(1)

    def create(reasons=(), **fields):
        finding = {
            "rule": "campaign",
            "subject_kind": "user",
            "subject": f"user{next(numbers)}",
            "severity": Flag.Severity.WARNING,
            "since": at("12:00"),
            "until": at("13:00"),
        }
        case = Case.objects.create(
            **finding,
            **{"state": Case.State.OPEN, "changed_at": timezone.now(), **fields},
        )
        Flag.objects.create(
            **finding,
            case=case,
            rule_version=1,
            value=3e7,
            numbers={"metadata_operations": 3e7, "jobs": 20.0},
            thresholds={"metadata_operations": 2e7, "jobs": 10.0},
            scope="rule defaults",
            advice="Submit fewer.",
            suppression_reasons=list(reasons),
        )
        CaseEvent.objects.create(case=case, kind=CaseEvent.Kind.OPENED)
        return case

    return create


def history(case):
    """Return kind, user and text of a case's events after its opening."""
    return list(case.events.values_list("kind", "by", "text"))[1:]


def test_an_action_is_recorded_with_user_and_reason(new_case, sam):
    case = new_case()

    triage.acknowledge([case.pk], sam, "I call her")
    triage.comment([case.pk], sam, "no answer")
    triage.resolve([case.pk], sam, "moved conda to CVMFS")

    case.refresh_from_db()
    assert (case.state, case.resolved_by, case.resolution) == (
        "resolved",
        "sam",
        "moved conda to CVMFS",
    )
    assert history(case) == [
        ("acknowledged", "sam", "I call her"),
        ("commented", "sam", "no answer"),
        ("resolved", "sam", "moved conda to CVMFS"),
    ]


def test_a_bulk_action_reports_the_result_of_each_flag(new_case, sam):
    opened, acknowledged, resolved = new_case(), new_case(), new_case()
    triage.acknowledge([acknowledged.pk], sam)
    triage.resolve([resolved.pk], sam, "done")

    outcome = triage.acknowledge([opened.pk, acknowledged.pk, resolved.pk, 0], sam)

    assert outcome.done == [opened.pk]
    assert outcome.unchanged == [acknowledged.pk]
    assert outcome.refused == {
        resolved.pk: "The case is resolved. Reopen it first.",
        0: "This case does not exist.",
    }


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(lambda case, sam: triage.acknowledge([case], sam), id="acknowledge"),
        pytest.param(
            lambda case, sam: triage.mute([case], sam, timezone.now() + MONTH),
            id="mute",
        ),
        pytest.param(lambda case, sam: triage.resolve([case], sam, "done"), id="resolve"),
        pytest.param(lambda case, sam: triage.assign([case], sam, sam), id="assign"),
        pytest.param(lambda case, sam: triage.comment([case], sam, "so"), id="comment"),
    ],
)
def test_a_form_submitted_twice_has_one_effect(action, new_case, sam, frozen_time):
    case = new_case()

    assert [action(case.pk, sam).done for _ in range(2)] == [[case.pk], []]
    assert len(history(case)) == 1


@pytest.fixture
def frozen_time(monkeypatch):
    """Stop the clock for the duration of a test."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)


def test_a_muted_case_reopens_at_its_end_time(new_case, sam):
    case = new_case()
    triage.mute([case.pk], sam, timezone.now() + HOUR, "maintenance")

    case_lifecycle.expire(timezone.now() + HOUR, at("13:00"))

    case.refresh_from_db()
    assert (case.state, case.muted_until) == ("open", None)


def test_a_reopened_case_does_not_expire_immediately(new_case, sam):
    case = new_case()
    triage.resolve([case.pk], sam, "done")
    Case.objects.update(changed_at=timezone.now() - MONTH)

    triage.reopen([case.pk], sam, "it continues")
    case_lifecycle.expire(timezone.now(), at("13:00") + MONTH)

    case.refresh_from_db()
    assert (case.state, case.resolution, case.resolved_at) == ("open", "", None)


def test_a_reopened_case_without_good_data_is_suppressed(new_case, sam):
    muted, resolved = (new_case(reasons=["Poor."], state="suppressed") for _ in range(2))
    triage.resolve([resolved.pk], sam, "done")
    Case.objects.filter(pk=muted.pk).update(state="muted", muted_until=timezone.now() + HOUR)

    triage.reopen([resolved.pk], sam)
    case_lifecycle.expire(timezone.now() + HOUR, at("13:00"))

    assert {case.state for case in Case.objects.all()} == {"suppressed"}


def test_old_cases_expire_unless_a_user_has_acted(new_case, sam):
    case, triaged = new_case(), new_case()
    triage.acknowledge([triaged.pk], sam)

    case_lifecycle.expire(timezone.now(), at("13:00") + HOUR)
    assert {case.state for case in Case.objects.all()} == {"open", "acknowledged"}

    case_lifecycle.expire(timezone.now(), at("13:00") + MONTH)
    case.refresh_from_db()
    triaged.refresh_from_db()
    assert case.state == "resolved"
    assert "more than 30 days older than the latest data of the site" in case.resolution
    assert triaged.state == "acknowledged"

    later = timezone.now() + 2 * MONTH
    for latest, resolution in (
        (at("13:00"), "Expired without data: the site has none since 2017-07-05 13:00."),
        (later, "Expired: no new findings for 30 days."),
    ):
        case_lifecycle.expire(later, latest)
        triaged.refresh_from_db()
        assert triaged.resolution == resolution
        triage.reopen([triaged.pk], sam)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        pytest.param(
            lambda case, sam: triage.mute([case], sam, timezone.now()),
            "The mute period must end in the future",
            id="a mute period in the past",
        ),
        pytest.param(
            lambda case, sam: triage.resolve([case], sam, " "),
            "Describe the fix",
            id="a resolution without a reason",
        ),
        pytest.param(
            lambda case, sam: triage.assign([case], sam, User(username="alice")),
            "staff only",
            id="a non-staff assignee",
        ),
        pytest.param(
            lambda case, sam: triage.comment([case], sam, "a" * 2_001),
            "Longer",
            id="a long comment",
        ),
    ],
)
def test_invalid_input_is_rejected(action, message, new_case, sam):
    case = new_case()

    with pytest.raises(ValidationError, match=message):
        action(case.pk, sam)
    assert history(case) == []


def test_only_staff_can_triage(new_case):
    case = new_case()

    with pytest.raises(PermissionDenied):
        triage.resolve([case.pk], User.objects.create_user("alice"), "not me")
    assert history(case) == []


def _on_own_connection(function, *arguments):
    """Call a function and close the thread's database connection."""
    try:
        return function(*arguments)
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_only_one_of_two_concurrent_users_resolves_a_case(new_case, sam):
    case, tom = new_case(), User.objects.create_user("tom", is_staff=True)
    start = Barrier(2)

    def resolve(by):
        start.wait()
        return triage.resolve([case.pk], by, f"{by} did it")

    with ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(lambda by: _on_own_connection(resolve, by), (sam, tom)))

    assert sorted(len(outcome.done) for outcome in outcomes) == [0, 1]
    case.refresh_from_db()
    assert history(case) == [("resolved", case.resolved_by, f"{case.resolved_by} did it")]


@pytest.mark.django_db(transaction=True)
def test_a_case_resolved_by_evaluation_meanwhile_is_not_acknowledged(
    new_case, sam, queries, eventually
):
    case = new_case()
    waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"

    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        Case.objects.select_for_update().get()
        acknowledged = threads.submit(_on_own_connection, triage.acknowledge, [case.pk], sam)
        eventually(lambda: queries(waiting))
        Case.objects.update(
            state="resolved", resolution="below the thresholds", resolved_at=timezone.now()
        )

    assert acknowledged.result().refused == {case.pk: "The case is resolved. Reopen it first."}
    assert history(case) == []
