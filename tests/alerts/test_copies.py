"""Copies of mails for admins."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ioportal.alerts import copies, planning
from ioportal.alerts.decide import Mode
from ioportal.alerts.delivery import outbox
from ioportal.alerts.models import MailPolicy, Notification

State = Notification.State


@pytest.fixture
def policy(db):
    """Automatic mails, with two copies."""
    return MailPolicy.objects.create(
        default_mode=Mode.AUTOMATIC, wait="0", interval="04:00", repeat="7 00:00", daily_cap=2,
        hourly_brake=20, reason="test", copies_to=["ops@example.org", "log@example.org"],
    )  # fmt: skip


def test_each_address_gets_one_copy_of_a_sent_mail(storm, policy, mails):
    planning.plan()
    original = Notification.objects.get()
    assert copies.write() == 0  # not sent yet
    outbox.send_due(10)

    assert [copies.write() for _ in range(3)] == [2, 0, 0]
    outbox.send_due(10)

    [(_, mail), *accepted] = mails.accepted
    assert sorted(to for [to], _ in accepted) == ["log@example.org", "ops@example.org"]
    for _, copy in accepted:
        assert copy["Subject"].strip() == f"Copy of a mail to alice: {mail['Subject']}"
        assert copy["Message-ID"] != mail["Message-ID"]
        for kind in ("plain", "html"):
            text = copy.get_body([kind]).get_content()
            assert "A problem was found" in " ".join(text.split())
            assert "/answers/" in mail.get_body([kind]).get_content()
            assert "/answers/" not in text
            assert f"/mails/{original.pk}/" in text
        assert [part.get_filename() for part in copy.walk() if part.get_filename()] == [
            "timeline-1.png"
        ]
    assert copies.write() == 0  # no copies of copies


@pytest.mark.parametrize("kind", [Notification.Kind.COPY, Notification.Kind.DIGEST])
def test_copies_and_digests_are_outside_the_limits_of_mails(storm, policy, kind):
    for _ in range(policy.hourly_brake):
        Notification.objects.create(
            kind=kind, recipient="alice", filesystem=storm.filesystem, subject="s", text="t",
            address="alice@example.org", state=State.SENT, finished_at=timezone.now(),
        )  # fmt: skip

    assert planning.plan() == 1


@pytest.mark.parametrize(
    "facts",
    [
        {"released_by": "sam"},
        {"state": State.FAILED},
        {"state": State.UNCERTAIN},
        {"kind": Notification.Kind.DIGEST},
        {"finished_at": timezone.now() - timedelta(hours=1)},  # before the policy
    ],
)
def test_only_mails_that_were_sent_automatically_are_copied(policy, facts):
    Notification.objects.create(
        **{
            "recipient": "alice",
            "address": "alice@example.org",
            "subject": "s",
            "text": "t",
            "state": State.SENT,
            "finished_at": timezone.now(),
            **facts,
        }
    )

    assert copies.write() == 0


def test_hostile_recipients_cannot_forge_headers(policy, mails):
    Notification.objects.create(
        recipient="x\r\nBcc: all@example.org", address="x@example.org", subject="s", text="t",
        state=State.SENT, finished_at=timezone.now(),
    )  # fmt: skip

    assert copies.write() == 2
    outbox.send_due(10)

    assert [copy["Bcc"] for _, copy in mails.accepted] == [None, None]


def test_without_addresses_there_are_no_copies(policy, storm, mails):
    MailPolicy.objects.update(copies_to=[])
    planning.plan()
    outbox.send_due(10)

    assert copies.write() == 0
