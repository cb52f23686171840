"""Servers that answer slowly, incompletely or never: time limits, back-off, and no second mail."""

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from ioportal.alerts.delivery import bounces, connections, outbox
from ioportal.alerts.delivery.connections import NotSent
from ioportal.alerts.delivery.webhooks import post
from ioportal.alerts.models import Channel, Notification
from ioportal.core.env import Mailbox
from tests import second_connection
from tests.alerts import http_server, slow_server

State = Notification.State
TLS_RECORD = b"\x16\x03\x03\x3f\xff\x02"  # the beginning of a handshake


@pytest.fixture
def waiting(db):
    """Write copies of mails, which have no cases."""
    now = timezone.now()
    return Notification.objects.bulk_create(
        Notification(
            kind="copy", address=f"admin{number}@example.org", subject="Case", text="Hello",
            state=State.WAITING, next_attempt_at=now,
        )
        for number in range(4)
    )  # fmt: skip


@pytest.fixture
def mails_to(settings):
    """Return a function that makes a port the mail server."""

    def use(port, **others):
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", port, 2
        for name, value in others.items():
            setattr(settings, name, value)

    return use


@pytest.fixture
def briefly(monkeypatch):
    """Shorten the deadline of conversations; check that the test kept it."""
    monkeypatch.setattr(connections, "_DEADLINE_S", 0.5)
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < 6


@pytest.mark.parametrize(
    ("converse", "others"),
    [
        pytest.param(slow_server.dripping(b"220", b"-wait\r\n220"), {}, id="banner"),
        pytest.param(slow_server.dripping(TLS_RECORD, b"\0"), {"EMAIL_USE_SSL": True}, id="TLS"),
        pytest.param(slow_server.starttls_dripping, {"EMAIL_USE_TLS": True}, id="STARTTLS"),
    ],
)
def test_a_slow_mail_server_has_a_deadline_from_the_beginning(
    waiting, mails_to, briefly, converse, others
):
    with slow_server.running(converse) as port:
        mails_to(port, **others)
        outbox.send_due(1)

    assert Notification.objects.get(attempts=1).state == State.WAITING


@pytest.mark.parametrize("has_starttls", [True, False])
def test_a_slow_mailbox_has_a_deadline_from_the_beginning(settings, briefly, has_starttls):
    settings.EMAIL_TIMEOUT = 2
    with slow_server.running(
        slow_server.dripping(b"*" if has_starttls else TLS_RECORD, b"\0")
    ) as port:
        settings.BOUNCES_MAILBOX = Mailbox(
            host="127.0.0.1", port=port, user="io", password="secret",  # noqa: S106
            folder="INBOX", has_starttls=has_starttls,
        )  # fmt: skip
        with pytest.raises((OSError, bounces.imaplib.IMAP4.error)):
            list(bounces.unseen(10, 1_000))


def test_an_endless_reply_ends_the_conversation_before_it_fills_the_memory(
    waiting, mails_to, settings
):
    sent = {}

    def smtp(connection):
        connection.sendall(b"220 hi\r\n")
        slow_server.endless(b"250-" + b"x" * 1_000 + b"\r\n", sent, "smtp")(connection)

    def imap(connection):
        connection.sendall(b"* OK hi\r\n")
        slow_server.endless(b"* CAPABILITY x\r\n", sent, "imap")(connection)

    with slow_server.running(smtp) as port:
        mails_to(port)
        outbox.send_due(1)
    with slow_server.running(imap) as port:
        settings.BOUNCES_MAILBOX = Mailbox(
            host="127.0.0.1", port=port, user="io", password="secret",  # noqa: S106
            folder="INBOX", has_starttls=True,
        )  # fmt: skip
        with pytest.raises(OSError, match="too long"):
            list(bounces.unseen(10, 1_000))

    mail = Notification.objects.get(attempts=1)
    assert (mail.state, "too long" in mail.response) == (State.WAITING, True)
    assert max(sent["smtp"], sent["imap"]) < 20e6  # bytes, with the buffers of sockets


def test_a_slow_handshake_of_a_channel_has_a_deadline(settings, briefly, local_channels):
    settings.EMAIL_TIMEOUT = 2
    slow = slow_server.running(slow_server.dripping(TLS_RECORD, b"\0"))
    with slow as port, pytest.raises(NotSent):
        post(f"https://127.0.0.1:{port}/", b"xx", {}, lambda: True)


def test_after_a_frozen_mail_server_other_mails_wait_and_webhooks_do_not(
    waiting, mails_to, local_channels
):
    now = timezone.now()
    with slow_server.running(lambda _: time.sleep(10)) as port, http_server.running() as receiver:
        mails_to(port)
        hook = Channel.objects.create(name="hook", kind="webhook", address=receiver.url)
        Notification.objects.create(
            kind="channel", channel=hook, subject="Case", text="{}",
            state=State.WAITING, next_attempt_at=now,
        )  # fmt: skip
        begun = time.monotonic()
        outbox.send_due(10)

        assert time.monotonic() - begun < 2 * 2  # one time-out
        assert len(receiver.received) == 1
    mails = Notification.objects.filter(channel=None, state=State.WAITING)
    assert sorted(mails.values_list("attempts", flat=True)) == [0, 0, 0, 1]
    assert not mails.filter(next_attempt_at__lt=now + timedelta(seconds=50)).exists()


def test_no_mail_begins_after_the_turn_of_the_outbox(waiting, mails, monkeypatch):
    monkeypatch.setattr(outbox, "TURN_S", 0)

    assert outbox.send_due(10) == 1
    assert len(mails.received) == 1


@pytest.mark.parametrize(
    "answer",
    [b"2", b"25", b"250", b"4", b"451", b"250-queued\r\n", b"queued\r\n", b"354 go\r\n", b""],
)
def test_a_mail_with_an_incomplete_last_answer_is_never_sent_again(waiting, mails_to, answer):
    ends = []
    with slow_server.running(slow_server.smtp_with_final_answer(answer, ends)) as port:
        mails_to(port)
        for _ in range(2):
            outbox.send_due(1)
            Notification.objects.exclude(pk=waiting[0].pk).delete()

    assert Notification.objects.get().state == State.UNCERTAIN
    assert len(ends) == 1


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (b"250-a\r\n250 b\r\n", State.SENT),
        (b"451 x\r\n", State.WAITING),
        (b"554 x\r\n", State.FAILED),
    ],
)
def test_a_complete_last_answer_counts(waiting, mails_to, answer, state):
    with slow_server.running(slow_server.smtp_with_final_answer(answer, [])) as port:
        mails_to(port)
        outbox.send_due(1)

    assert Notification.objects.get(pk=waiting[0].pk).state == state


@pytest.mark.django_db(transaction=True)
def test_an_accepted_mail_is_sent_although_the_database_ends_the_connection(mails):
    [mail] = Notification.objects.bulk_create(
        [
            Notification(
                kind="copy", address="admin@example.org", subject="Case", text="Hello",
                state=State.WAITING, next_attempt_at=timezone.now(),
            )
        ]
    )  # fmt: skip
    with second_connection.connect(autocommit=True) as other:
        sender = connection.connection.info.backend_pid
        terminate = "SELECT pg_terminate_backend(%s, 5000)"
        mails.before_answer = lambda: other.execute(terminate, [sender])
        outbox.send_due(10)

    mail.refresh_from_db()
    assert (mail.state, mail.response) == (State.SENT, "250 Queued")
    assert len(mails.received) == 1
