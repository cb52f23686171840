"""Triage of flags by staff: recorded with user, time and reason, and safe under concurrency."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count
from threading import Barrier

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection, transaction
from django.utils import timezone

from ioportal.flags import lifecycle, triage
from ioportal.flags.models import Flag, FlagEvent
from tests.logs import at

HOUR = timedelta(hours=1)
WEEK = timedelta(days=7)


@pytest.fixture
def sam(db):
    """A member of staff."""
    return User.objects.create_user("sam", is_staff=True)


@pytest.fixture
def new_flag(db):
    """Create a flag of a user's campaign, as evaluation does."""
    numbers = count(1)

    def create(**fields):
        flag = Flag.objects.create(
            **{
                "rule": "campaign",
                "rule_version": 1,
                "subject_kind": "user",
                "subject": f"user{next(numbers)}",
                "state": Flag.State.OPEN,
                "severity": Flag.Severity.WARNING,
                "since": at("12:00"),
                "until": at("13:00"),
                "value": 3e7,
                "numbers": {"metadata_operations": 3e7, "jobs": 20.0},
                "thresholds": {"metadata_operations": 2e7, "jobs": 10.0},
                "scope": "rule defaults",
                "advice": "Submit fewer.",
                **fields,
            }
        )
        FlagEvent.objects.create(flag=flag, kind=FlagEvent.Kind.OPENED, text=flag.advice)
        return flag

    return create


def history(flag):
    """Return kind, user and text of a flag's events after its opening."""
    return list(flag.events.values_list("kind", "by", "text"))[1:]


def test_an_action_is_recorded_with_user_and_reason(new_flag, sam):
    flag = new_flag()

    triage.acknowledge([flag.pk], sam, "I call her")
    triage.comment([flag.pk], sam, "no answer")
    triage.resolve([flag.pk], sam, "moved conda to CVMFS")

    flag.refresh_from_db()
    assert (flag.state, flag.resolved_by, flag.resolution) == (
        "resolved",
        "sam",
        "moved conda to CVMFS",
    )
    assert history(flag) == [
        ("acknowledged", "sam", "I call her"),
        ("commented", "sam", "no answer"),
        ("resolved", "sam", "moved conda to CVMFS"),
    ]


def test_a_bulk_action_reports_the_result_of_each_flag(new_flag, sam):
    opened, acknowledged, resolved = new_flag(), new_flag(), new_flag()
    triage.acknowledge([acknowledged.pk], sam)
    triage.resolve([resolved.pk], sam, "done")

    outcome = triage.acknowledge([opened.pk, acknowledged.pk, resolved.pk, 0], sam)

    assert outcome.done == [opened.pk]
    assert outcome.unchanged == [acknowledged.pk]
    assert outcome.refused == {
        resolved.pk: "The flag is resolved. Reopen it first.",
        0: "This flag does not exist.",
    }


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(lambda flag, sam: triage.acknowledge([flag], sam), id="acknowledge"),
        pytest.param(
            lambda flag, sam: triage.mute([flag], sam, timezone.now() + WEEK),
            id="mute",
        ),
        pytest.param(lambda flag, sam: triage.resolve([flag], sam, "done"), id="resolve"),
        pytest.param(lambda flag, sam: triage.assign([flag], sam, sam), id="assign"),
        pytest.param(lambda flag, sam: triage.comment([flag], sam, "so"), id="comment"),
    ],
)
def test_a_form_submitted_twice_has_one_effect(action, new_flag, sam, frozen_time):
    flag = new_flag()

    assert [action(flag.pk, sam).done for _ in range(2)] == [[flag.pk], []]
    assert len(history(flag)) == 1


@pytest.fixture
def frozen_time(monkeypatch):
    """Stop the clock for the duration of a test."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)


def test_a_muted_flag_reopens_at_its_end_time(new_flag, sam):
    flag = new_flag()
    triage.mute([flag.pk], sam, timezone.now() + HOUR, "maintenance")

    lifecycle.expire(timezone.now() + HOUR, at("13:00"))

    flag.refresh_from_db()
    assert (flag.state, flag.muted_until) == ("open", None)


def test_a_reopened_flag_does_not_expire_immediately(new_flag, sam):
    flag = new_flag()
    triage.resolve([flag.pk], sam, "done")
    Flag.objects.update(changed_at=timezone.now() - WEEK)

    triage.reopen([flag.pk], sam, "it continues")
    lifecycle.expire(timezone.now(), at("13:00") + WEEK)

    flag.refresh_from_db()
    assert (flag.state, flag.resolution, flag.resolved_at) == ("open", "", None)


def test_a_reopened_flag_without_good_data_is_suppressed(new_flag, sam):
    muted, resolved = (
        new_flag(state="suppressed", suppression_reasons=["Poor."]) for _ in range(2)
    )
    triage.resolve([resolved.pk], sam, "done")
    Flag.objects.filter(pk=muted.pk).update(state="muted", muted_until=timezone.now() + HOUR)

    triage.reopen([resolved.pk], sam)
    lifecycle.expire(timezone.now() + HOUR, at("13:00"))

    assert {flag.state for flag in Flag.objects.all()} == {"suppressed"}


def test_old_flags_expire_unless_a_user_has_acted(new_flag, sam):
    flag, triaged = new_flag(), new_flag()
    triage.acknowledge([triaged.pk], sam)

    lifecycle.expire(timezone.now(), at("13:00") + HOUR)
    assert {flag.state for flag in Flag.objects.all()} == {"open", "acknowledged"}

    lifecycle.expire(timezone.now(), at("13:00") + WEEK)
    flag.refresh_from_db()
    triaged.refresh_from_db()
    assert (flag.state, flag.resolution) == ("resolved", "Expired: no new data for a day.")
    assert triaged.state == "acknowledged"


def test_a_flag_is_not_reopened_next_to_a_new_flag_of_the_same_finding(new_flag, sam):
    old = new_flag(subject="alice")
    triage.resolve([old.pk], sam, "done")
    new = new_flag(subject="alice")

    outcome = triage.reopen([old.pk], sam)

    assert outcome.refused == {old.pk: f"Flag {new.pk} has the same finding and is open."}


@pytest.mark.parametrize(
    ("action", "message"),
    [
        pytest.param(
            lambda flag, sam: triage.mute([flag], sam, timezone.now()),
            "The mute period must end in the future",
            id="a mute period in the past",
        ),
        pytest.param(
            lambda flag, sam: triage.resolve([flag], sam, " "),
            "Describe the fix",
            id="a resolution without a reason",
        ),
        pytest.param(
            lambda flag, sam: triage.assign([flag], sam, User(username="alice")),
            "staff only",
            id="a non-staff assignee",
        ),
        pytest.param(
            lambda flag, sam: triage.comment([flag], sam, "a" * 2_001),
            "Longer",
            id="a long comment",
        ),
    ],
)
def test_invalid_input_is_rejected(action, message, new_flag, sam):
    flag = new_flag()

    with pytest.raises(ValidationError, match=message):
        action(flag.pk, sam)
    assert history(flag) == []


def test_only_staff_can_triage(new_flag):
    flag = new_flag()

    with pytest.raises(PermissionDenied):
        triage.resolve([flag.pk], User.objects.create_user("alice"), "not me")
    assert history(flag) == []


def _on_own_connection(function, *arguments):
    """Call a function and close the thread's database connection."""
    try:
        return function(*arguments)
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_only_one_of_two_concurrent_users_resolves_a_flag(new_flag, sam):
    flag, tom = new_flag(), User.objects.create_user("tom", is_staff=True)
    start = Barrier(2)

    def resolve(by):
        start.wait()
        return triage.resolve([flag.pk], by, f"{by} did it")

    with ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(lambda by: _on_own_connection(resolve, by), (sam, tom)))

    assert sorted(len(outcome.done) for outcome in outcomes) == [0, 1]
    flag.refresh_from_db()
    assert history(flag) == [("resolved", flag.resolved_by, f"{flag.resolved_by} did it")]


@pytest.mark.django_db(transaction=True)
def test_a_flag_resolved_by_evaluation_meanwhile_is_not_acknowledged(
    new_flag, sam, queries, eventually
):
    flag = new_flag()
    waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"

    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        Flag.objects.select_for_update().get()
        acknowledged = threads.submit(_on_own_connection, triage.acknowledge, [flag.pk], sam)
        eventually(lambda: queries(waiting))
        Flag.objects.update(
            state="resolved", resolution="below the thresholds", resolved_at=timezone.now()
        )

    assert acknowledged.result().refused == {flag.pk: "The flag is resolved. Reopen it first."}
    assert history(flag) == []
