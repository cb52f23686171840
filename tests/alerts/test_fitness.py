"""What happens between the decision about a mail and its sending."""

import time
from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from ioportal.alerts import answers, compose, planning
from ioportal.alerts.delivery import outbox
from ioportal.alerts.models import (
    BouncedAddress,
    CaseDecision,
    MailPolicy,
    Notification,
    NotificationCase,
    Silence,
)
from ioportal.core.postgres.advisory_locks import Lock
from ioportal.findings.cases import case_lifecycle, triage
from ioportal.findings.models import Case, Flag
from ioportal.site.models import UserAccount

State = Notification.State
LATER = timedelta(minutes=6)
DAY = timedelta(days=1)


def policy(**facts):
    MailPolicy.objects.create(
        **{
            "default_mode": "automatic", "wait": "0", "interval": "04:00", "repeat": "7 00:00",
            "daily_cap": 2, "hourly_brake": 20, "reason": "test", **facts,
        }
    )  # fmt: skip


CHANGES = {
    "resolved": lambda: Case.objects.update(
        state="resolved", resolution="Our test.", resolved_by="sam", resolved_at=timezone.now()
    ),
    "expired": lambda: Case.objects.update(
        state="resolved", resolution="Expired.", resolved_at=timezone.now()
    ),
    "acknowledged": lambda: Case.objects.update(state="acknowledged"),
    "muted": lambda: Case.objects.update(state="muted", muted_until=timezone.now() + DAY),
    "suppressed": lambda: Case.objects.update(state="suppressed"),
    "contradicted": lambda: Flag.objects.update(suppression_reasons=["Other nodes."]),
    "smaller": lambda: Flag.objects.update(value=0.0),
    "another owner": lambda: Case.objects.update(owner="bob"),
    "bounced": lambda: BouncedAddress.objects.create(address="alice@example.org", reason="5.1.1"),
    "no address": lambda: UserAccount.objects.update(email=""),
    "excluded": lambda: policy(excluded=["alice"]),
    "off": lambda: policy(default_mode="off"),
    "silenced": lambda: Silence.objects.create(
        recipient="alice", until=timezone.now() + DAY, reason="On leave."
    ),
}
CHANGED = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


@pytest.fixture
def draft(storm):
    UserAccount.objects.create(name="bob", email="bob@example.org")
    planning.plan(timezone.now() + LATER)
    return Notification.objects.get(state=State.DRAFT)


@CHANGED
def test_a_stale_draft_cannot_be_sent(draft, mails, change):
    change()

    with pytest.raises(outbox.Unfit):
        outbox.release(draft, by="sam")
    outbox.send_due(10)

    draft.refresh_from_db()
    assert (draft.state, mails.received) == (State.DRAFT, [])


@CHANGED
def test_a_stale_mail_is_discarded_with_the_reason(storm, automatic, mails, change):
    planning.plan()
    change()
    outbox.send_due(10)

    mail = Notification.objects.get()
    assert (mail.state, mail.released_by, mails.received) == (State.DISCARDED, "", [])
    [attempt] = mail.delivery_log.all()
    assert (attempt.outcome, attempt.response) == (State.DISCARDED, mail.response)
    assert mail.response


def test_a_case_whose_mail_was_stale_is_mailed_about_once_it_is_fit_again(storm, automatic, mails):
    planning.plan()
    Case.objects.update(state="acknowledged")
    outbox.send_due(10)
    Case.objects.update(state="open")

    assert planning.plan() == 1
    outbox.send_due(10)
    assert len(mails.accepted) == 1


@pytest.mark.parametrize("is_released", [True, False])
def test_a_mail_goes_to_the_present_address(draft, mails, is_released):
    if is_released:
        outbox.release(draft, by="sam")
    UserAccount.objects.filter(name="alice").update(email="alice@new.example.org")
    outbox.release(draft, by="sam")
    outbox.send_due(10)

    [(recipients, mail)] = mails.accepted
    assert recipients == [mail["To"]] == ["alice@new.example.org"]
    draft.refresh_from_db()
    assert draft.address == "alice@new.example.org"


@pytest.mark.parametrize("kind", ["report", "digest", "copy"])
def test_nothing_else_goes_to_a_bounced_address(db, mails, kind):
    UserAccount.objects.create(name="alice", email="alice@example.org")
    BouncedAddress.objects.create(address="alice@example.org", reason="5.1.1")
    Notification.objects.create(
        kind=kind, recipient="alice", address="Alice@example.org", subject="Hello", text="Hello",
        state=State.WAITING, next_attempt_at=timezone.now(),
    )  # fmt: skip
    outbox.send_due(10)

    mail = Notification.objects.get()
    assert (mail.state, mails.received) == (State.DISCARDED, [])
    assert "bounced on" in mail.response


def test_staff_who_discard_a_draft_decide_about_its_case(draft, storm):
    outbox.discard(draft, by="sam")
    now = timezone.now()

    assert planning.plan(now + LATER) == 0
    assert "discarded by sam" in CaseDecision.objects.filter(case=storm).latest("pk").reason
    assert planning.plan(now + 8 * DAY) == 0
    NotificationCase.objects.update(value=storm.flags.get().value / 3)
    assert planning.plan(now + 8 * DAY) == 1


def test_an_approved_draft_has_the_date_and_expiry_of_its_release(draft, mails):
    Notification.objects.update(created_at=timezone.now() - 70 * DAY)
    draft.refresh_from_db()
    outbox.release(draft, by="sam")
    outbox.send_due(10)

    draft.refresh_from_db()
    [(_, mail)] = mails.accepted
    assert abs(mail["Date"].datetime - timezone.now()) < LATER
    assert answers.notification_of(answers.key_of(draft)) == draft
    assert compose.message(draft)["Date"] == mail["Date"]


def test_a_draft_that_staff_asked_for_needs_only_sound_evidence(draft, storm, mails):
    Case.objects.update(state="acknowledged")
    Flag.objects.update(opened_at=timezone.now())  # loaded history
    with pytest.raises(outbox.Unfit):
        outbox.release(draft, by="sam")

    requested = planning.write_draft(storm.pk, "sam")
    draft.refresh_from_db()
    assert (draft.state, draft.requested_by) == (State.DISCARDED, "")
    assert planning.write_draft(storm.pk, "ann") == requested
    assert outbox.release(requested, by="sam")
    Flag.objects.update(suppression_reasons=["Other nodes."])
    outbox.send_due(10)

    requested.refresh_from_db()
    assert (requested.state, mails.received) == (State.DISCARDED, [])
    assert (
        requested.response
        == "It has no finding on good data that still applies. It was released by sam."
    )


def expire(key):
    case = Case.objects.get(pk=key)
    event = case_lifecycle.resolve(case, "Expired.")
    case.save()
    event.save()


TRIAGED = {
    "resolved": lambda case, by: triage.resolve([case], by, "Our test."),
    "expired": lambda case, _: expire(case),
    "acknowledged": lambda case, by: triage.acknowledge([case], by),
    "muted": lambda case, by: triage.mute([case], by, timezone.now() + DAY),
    "off": lambda *_: CHANGES["off"](),
    "silenced": lambda *_: CHANGES["silenced"](),
}


@pytest.mark.parametrize("change", TRIAGED.values(), ids=TRIAGED)
def test_a_later_decision_holds_a_draft_that_staff_asked_for(storm, sam, mails, change):
    requested = planning.write_draft(storm.pk, "ann")
    change(storm.pk, sam)

    with pytest.raises(outbox.Unfit, match="decided after the draft"):
        outbox.release(requested, by="ann")
    another = planning.write_draft(storm.pk, "ann")  # knows the decision
    assert another != requested
    outbox.release(another, by="ann")
    outbox.send_due(10)
    assert len(mails.accepted) == 1


def test_a_second_mail_about_a_case_waits_for_the_interval(storm, mails):
    policy(daily_cap=1, quiet_from=0, quiet_until=23)
    outbox.release(planning.write_draft(storm.pk, "sam"), by="sam")
    with pytest.raises(planning.Refused, match="on its way"):
        planning.write_draft(storm.pk, "ann")
    outbox.send_due(10)
    with pytest.raises(planning.Refused, match="the next one may follow at"):
        planning.write_draft(storm.pk, "ann")

    Notification.objects.update(finished_at=timezone.now() - timedelta(hours=4))
    assert planning.write_draft(storm.pk, "ann")


def test_a_planner_that_hangs_refuses_a_draft_soon(storm):
    wanted = ("host", "port", "user", "password", "dbname")
    database = connection.get_connection_params()
    with psycopg.connect(**{name: database[name] for name in wanted if name in database}) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [Lock.ALERTS])
        begun = time.monotonic()
        with pytest.raises(planning.Refused, match="Try again"):
            planning.write_draft(storm.pk, "sam")
    assert time.monotonic() - begun < 4
    assert planning.write_draft(storm.pk, "sam")
