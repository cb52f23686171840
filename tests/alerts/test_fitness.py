"""What happens between the decision about a mail and its sending."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ioportal.alerts import answers, compose, outbox, planning
from ioportal.alerts.models import (
    BouncedAddress,
    CaseDecision,
    MailPolicy,
    Notification,
    NotificationCase,
    Silence,
)
from ioportal.flags.models import Case, Flag
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

    assert planning.write_draft(storm.pk, "sam") == draft
    draft.refresh_from_db()
    assert outbox.release(draft, by="sam")
    Flag.objects.update(suppression_reasons=["Other nodes."])
    outbox.send_due(10)

    draft.refresh_from_db()
    assert (draft.state, mails.received) == (State.DISCARDED, [])
    assert (
        draft.response
        == "It has no finding on good data that still applies. It was released by sam."
    )
