"""What people do about flags: told with who, when and why; safe beside each other and the judge."""

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
    """She is of the staff."""
    return User.objects.create_user("sam", is_staff=True)


@pytest.fixture
def new_flag(db):
    """Make a flag of a user's campaign, as the judge would."""
    numbers = count(1)

    def make(**facts):
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
                "scope": "the rule's own",
                "advice": "Submit fewer.",
                **facts,
            }
        )
        FlagEvent.objects.create(flag=flag, kind=FlagEvent.Kind.OPENED, text=flag.advice)
        return flag

    return make


def history(flag):
    """What happened to a flag since it was opened: what, by whom, and why."""
    return list(flag.events.values_list("kind", "by", "text"))[1:]


def test_an_action_is_told_with_who_and_why(new_flag, sam):
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


def test_many_flags_at_once_change_each_as_it_can(new_flag, sam):
    opened, known, resolved = new_flag(), new_flag(), new_flag()
    triage.acknowledge([known.pk], sam)
    triage.resolve([resolved.pk], sam, "done")

    outcome = triage.acknowledge([opened.pk, known.pk, resolved.pk, 0], sam)

    assert outcome.done == [opened.pk]
    assert outcome.unchanged == [known.pk]
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
def test_a_form_that_is_sent_twice_counts_once(action, new_flag, sam, time_stands):
    flag = new_flag()

    assert [action(flag.pk, sam).done for _ in range(2)] == [[flag.pk], []]
    assert len(history(flag)) == 1


@pytest.fixture
def time_stands(monkeypatch):
    """Let it be one moment for as long as a test lasts."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)


def test_a_muted_flag_wakes_when_its_time_has_come(new_flag, sam):
    flag = new_flag()
    triage.mute([flag.pk], sam, timezone.now() + HOUR, "maintenance")

    lifecycle.expire(timezone.now() + HOUR, at("13:00"))

    flag.refresh_from_db()
    assert (flag.state, flag.muted_until) == ("open", None)


def test_a_flag_that_is_reopened_does_not_rest_at_once(new_flag, sam):
    flag = new_flag()
    triage.resolve([flag.pk], sam, "done")
    Flag.objects.update(changed_at=timezone.now() - WEEK)

    triage.reopen([flag.pk], sam, "it goes on")
    lifecycle.expire(timezone.now(), at("13:00") + WEEK)

    flag.refresh_from_db()
    assert (flag.state, flag.resolution, flag.resolved_at) == ("open", "", None)


def test_what_would_be_suppressed_but_for_its_triage_is_suppressed_once_it_opens_again(
    new_flag, sam
):
    muted, resolved = (
        new_flag(state="suppressed", suppression_reasons=["Poor."]) for _ in range(2)
    )
    triage.resolve([resolved.pk], sam, "done")
    Flag.objects.filter(pk=muted.pk).update(state="muted", muted_until=timezone.now() + HOUR)

    triage.reopen([resolved.pk], sam)
    lifecycle.expire(timezone.now() + HOUR, at("13:00"))

    assert {one.state for one in Flag.objects.all()} == {"suppressed"}


def test_what_ended_long_before_the_newest_data_rests_unless_somebody_dealt_with_it(new_flag, sam):
    flag, looked_at = new_flag(), new_flag()
    triage.acknowledge([looked_at.pk], sam)

    lifecycle.expire(timezone.now(), at("13:00") + HOUR)
    assert {one.state for one in Flag.objects.all()} == {"open", "acknowledged"}

    lifecycle.expire(timezone.now(), at("13:00") + WEEK)
    flag.refresh_from_db()
    looked_at.refresh_from_db()
    assert (flag.state, flag.resolution) == ("resolved", "Expired: no new data for a day.")
    assert looked_at.state == "acknowledged"


def test_what_was_found_anew_is_not_opened_twice(new_flag, sam):
    old = new_flag(subject="alice")
    triage.resolve([old.pk], sam, "done")
    new = new_flag(subject="alice")

    outcome = triage.reopen([old.pk], sam)

    assert outcome.refused == {old.pk: f"Flag {new.pk} has the same finding and is open."}


@pytest.mark.parametrize(
    ("action", "words"),
    [
        pytest.param(
            lambda flag, sam: triage.mute([flag], sam, timezone.now()),
            "The mute period must end in the future",
            id="a muting that has ended",
        ),
        pytest.param(
            lambda flag, sam: triage.resolve([flag], sam, " "),
            "Describe the fix",
            id="a resolution without a reason",
        ),
        pytest.param(
            lambda flag, sam: triage.assign([flag], sam, User(username="alice")),
            "staff only",
            id="an assignee who sees no flags",
        ),
        pytest.param(
            lambda flag, sam: triage.comment([flag], sam, "a" * 2_001), "Longer", id="a novel"
        ),
    ],
)
def test_what_makes_no_sense_is_refused(action, words, new_flag, sam):
    flag = new_flag()

    with pytest.raises(ValidationError, match=words):
        action(flag.pk, sam)
    assert history(flag) == []


def test_who_is_not_of_the_staff_changes_nothing(new_flag):
    flag = new_flag()

    with pytest.raises(PermissionDenied):
        triage.resolve([flag.pk], User.objects.create_user("alice"), "not me")
    assert history(flag) == []


def _apart(work, *arguments):
    """Do something on a connection of its own."""
    try:
        return work(*arguments)
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_of_two_people_at_once_one_resolves_it(new_flag, sam):
    flag, tom = new_flag(), User.objects.create_user("tom", is_staff=True)
    both = Barrier(2)

    def resolve(by):
        both.wait()
        return triage.resolve([flag.pk], by, f"{by} did it")

    with ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(lambda by: _apart(resolve, by), (sam, tom)))

    assert sorted(len(outcome.done) for outcome in outcomes) == [0, 1]
    flag.refresh_from_db()
    assert history(flag) == [("resolved", flag.resolved_by, f"{flag.resolved_by} did it")]


@pytest.mark.django_db(transaction=True)
def test_what_the_judge_resolves_meanwhile_is_not_acknowledged(new_flag, sam, queries, eventually):
    flag = new_flag()
    waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"

    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        Flag.objects.select_for_update().get()
        acknowledged = threads.submit(_apart, triage.acknowledge, [flag.pk], sam)
        eventually(lambda: queries(waiting))
        Flag.objects.update(
            state="resolved", resolution="below the thresholds", resolved_at=timezone.now()
        )

    assert acknowledged.result().refused == {flag.pk: "The flag is resolved. Reopen it first."}
    assert history(flag) == []
