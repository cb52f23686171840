"""Old texts of mails and old decisions are removed; who was mailed about what remains."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ioportal.alerts import retention, tasks
from ioportal.alerts.delivery import outbox
from ioportal.alerts.models import CaseDecision, DeliveryAttempt, Notification, NotificationImage
from ioportal.telemetry.stage_runs import drain

DAY = timedelta(days=1)
State = Notification.State


@pytest.fixture
def write(db, settings):
    """Write a mail that ended some days ago; texts are retained for 30 days."""
    settings.MAILS_RETENTION = 30 * DAY

    def mail(days, state=State.SENT):
        ended = None if state == State.DRAFT else timezone.now() - days * DAY
        written = Notification.objects.create(
            recipient="alice", address="alice@example.org", subject="s", text="t", html="h",
            response="250 OK", state=state, finished_at=ended,
        )  # fmt: skip
        DeliveryAttempt.objects.create(notification=written, outcome=state, response="250 OK")
        NotificationImage.objects.create(notification=written, name="chart", png=b"png")
        return written

    return mail


def test_texts_and_logs_of_old_mails_are_removed(write):
    old, recent, draft = write(31), write(29), write(400, State.DRAFT)

    tasks.retain_mails()

    for mail in (old, recent, draft):
        mail.refresh_from_db()
    assert (old.text, old.html, old.response) == ("", "", "")
    assert (old.subject, old.recipient, old.state) == ("s", "alice", State.SENT)
    assert [recent.text, draft.text] == ["t", "t"]
    for model in (DeliveryAttempt, NotificationImage):
        assert {row.notification_id for row in model.objects.all()} == {recent.pk, draft.pk}


def test_a_mail_without_text_is_not_sent_again(write):
    failed = write(31, State.FAILED)
    tasks.retain_mails()

    assert not outbox.release(failed, by="sam")


def test_decisions_are_removed_except_the_latest_of_a_case(new_case, settings):
    settings.MAIL_DECISIONS_RETENTION = 30 * DAY
    cases = new_case(), new_case()
    for case in cases:
        for number in range(3):
            CaseDecision.objects.create(case=case, verdict="later", reason=f"reason {number}")
    CaseDecision.objects.filter(case=cases[0]).update(at=timezone.now() - 31 * DAY)

    assert retention.remove_old(1) == 1  # a slice
    assert drain(retention.remove_old) is False

    reasons = [list(case.mail_decisions.values_list("reason", flat=True)) for case in cases]
    assert reasons == [["reason 2"], ["reason 2", "reason 1", "reason 0"]]


def test_retention_may_be_unlimited(write, settings):
    settings.MAILS_RETENTION = settings.MAIL_DECISIONS_RETENTION = None
    write(4_000)

    tasks.retain_mails()

    assert Notification.objects.exclude(text="").exists()
