"""Bounces: which messages have an effect, and where they come from."""

import time
import uuid
from email.message import EmailMessage
from socketserver import StreamRequestHandler, TCPServer
from threading import Thread

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from ioportal.alerts import planning, tasks
from ioportal.alerts.delivery import bounces, outbox
from ioportal.alerts.models import BouncedAddress, CaseDecision, Notification
from ioportal.site.models import UserAccount
from ioportal.telemetry.models import StageFailure
from tests.alerts import imap_server
from tests.alerts.certificates import issue

State = Notification.State
BOUNCE = """\
From: MAILER-DAEMON@mail.example.org
To: ioportal@localhost
Subject: Undelivered mail
Content-Type: multipart/report; report-type=delivery-status; boundary="B"

--B
Content-Type: text/plain

Sorry.
--B
Content-Type: message/delivery-status

Reporting-MTA: dns; mail.example.org
{envelope}

Final-Recipient: rfc822; alice@example.org
Action: {action}
Status: {status}
Diagnostic-Code: smtp; 550 no such
 user \x1b[31m

--B
Content-Type: {returned}

Message-ID: {message_id}
Subject: Case

--B--
"""


def bounce(token, action="failed", status="5.1.1", returned="message/rfc822", **facts):
    """Return a bounce of a mail."""
    facts = {"message_id": f"<{token}@localhost>", "envelope": "X-Nothing: 1", **facts}
    return BOUNCE.format(action=action, status=status, returned=returned, **facts).encode()


@pytest.fixture
def sent(db):
    return Notification.objects.create(
        recipient="alice", address="Alice@example.org", subject="Case", text="Hello",
        state=State.SENT, finished_at=timezone.now(),
    )  # fmt: skip


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({}, id="returned mail"),
        pytest.param({"returned": "text/rfc822-headers"}, id="returned headers"),
        pytest.param({"envelope": "{token}", "message_id": "<x@y>"}, id="envelope"),
    ],
)
def test_a_permanent_bounce_fails_the_mail_and_its_address(sent, facts):
    if "envelope" in facts:
        facts = {**facts, "envelope": f"Original-Envelope-Id: {sent.token}"}
    assert bounces.store(bounce(sent.token, **facts))

    sent.refresh_from_db()
    reason = r"5.1.1 smtp; 550 no such user \x1b[31m"
    assert (sent.state, sent.response) == (State.FAILED, f"Bounced: {reason}")
    address = BouncedAddress.objects.get()
    assert (address.address, address.reason) == ("alice@example.org", reason)


def test_a_bounce_of_another_address_changes_nothing(sent):
    forged = bounce(sent.token).replace(b"alice@example.org", b"eve@example.org")
    assert not bounces.store(forged)

    sent.refresh_from_db()
    assert sent.state == State.SENT
    assert not BouncedAddress.objects.exists()
    original = b"Original-Recipient: rfc822;ALICE@example.org\nAction:"  # an alias of eve
    assert bounces.store(forged.replace(b"Action:", original))


def test_a_mail_that_expired_in_a_queue_fails_without_its_address(sent):
    assert bounces.store(bounce(sent.token, status="4.4.7"))

    sent.refresh_from_db()
    assert sent.state == State.FAILED
    assert not BouncedAddress.objects.exists()


def test_a_delay_changes_nothing(sent):
    assert bounces.store(bounce(sent.token, action="delayed", status="4.4.1"))

    sent.refresh_from_db()
    assert sent.state == State.SENT


def test_a_bounce_may_arrive_before_the_answer_of_the_server(sent, mails, monkeypatch):
    Notification.objects.update(kind="copy", state=State.WAITING, next_attempt_at=timezone.now())
    deliver = outbox.deliver

    def bounced(notification, may_end):
        answer = deliver(notification, may_end)
        bounces.store(bounce(notification.token))
        return answer

    monkeypatch.setattr(outbox, "deliver", bounced)
    outbox.send_due(1)

    sent.refresh_from_db()
    assert sent.state == State.FAILED


class WithReports(StreamRequestHandler):
    """A mail server that supports delivery status notifications."""

    def handle(self):
        self._say("220 ready")
        while line := self.rfile.readline().decode().strip():
            self.server.lines.append(line)
            if line == "data":
                self._say("354 go ahead")
                while self.rfile.readline() != b".\r\n":
                    pass
            self._say("250-x\r\n250 DSN" if line.startswith("ehlo") else "250 OK")

    def _say(self, answer):
        self.wfile.write(f"{answer}\r\n".encode())


def test_bounces_are_requested_with_the_token_in_the_envelope(sent, settings):
    Notification.objects.update(
        kind="copy", state=State.WAITING, next_attempt_at=timezone.now(), text="hello"
    )
    with TCPServer(("127.0.0.1", 0), WithReports) as server:
        server.lines = []
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address
        settings.EMAIL_TIMEOUT = 5
        thread = Thread(target=server.handle_request)
        thread.start()
        outbox.send_due(1)
        thread.join()

    [mail] = [line for line in server.lines if line.startswith("mail FROM")]
    assert mail.endswith(f" RET=HDRS ENVID={sent.token}")


def test_a_repeated_bounce_changes_nothing(sent):
    for _ in range(2):
        assert bounces.store(bounce(sent.token))
        BouncedAddress.objects.all().delete()  # by staff

    assert not BouncedAddress.objects.exists()


def automatic_answer(token):
    mail = EmailMessage()
    mail["Auto-Submitted"] = "auto-replied"
    mail["In-Reply-To"] = f"<{token}@localhost>"
    mail.set_content("Out of office. Status: 5.1.1")
    return mail.as_bytes()


def forwarded(token):
    mail = EmailMessage()
    mail.set_content("See below.")
    mail.add_attachment(bounce(token), maintype="application", subtype="octet-stream")
    return mail.as_bytes()


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(automatic_answer, id="automatic answer"),
        pytest.param(forwarded, id="forwarded bounce"),
        pytest.param(lambda _: bounce(uuid.uuid4()), id="unknown mail"),
        pytest.param(lambda t: bounce(t, message_id=f"<x{t}@localhost>"), id="similar token"),
        pytest.param(lambda t: bounce(t).replace(b"Action:", b"Deed:"), id="without an action"),
        pytest.param(
            lambda t: bounce(t).replace(b"multipart/report", b"multipart/mixed"), id="no report"
        ),
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda t: b"Content-Type: multipart/digest\n\n" * 100 + bounce(t), id="deep"),
    ],
)
def test_without_effect(sent, message):
    assert not bounces.store(message(sent.token))

    sent.refresh_from_db()
    assert sent.state == State.SENT


@given(st.lists(st.tuples(st.integers(0, 900), st.binary(max_size=30)), max_size=6))
def test_any_bytes_can_be_parsed(changes):
    content = bytearray(bounce(uuid.UUID(int=1)))
    for place, change in changes:
        content[place : place + len(change)] = change

    report = bounces.parse(bytes(content))

    assert report is None or (len(report.reason) <= 400 and report.reason.isprintable())


@pytest.mark.parametrize("filler", [b"a: b\n\n", b"\n", b"--B\n", b"a: b\n", b"x" * 70 + b"\n"])
def test_hostile_messages_take_seconds_at_most(filler):
    head, tail = bounce(uuid.UUID(int=1)).split(b"Final-Recipient", 1)
    begun = time.monotonic()

    bounces.parse(head + filler * (2_000_000 // len(filler)) + tail)

    assert time.monotonic() - begun < 5


def test_no_mail_is_written_to_a_bounced_address(storm, automatic):
    BouncedAddress.objects.create(address="alice@example.org", reason="5.1.1")
    assert planning.plan() == 0
    on = timezone.localtime().strftime("%Y-%m-%d")
    reasons = CaseDecision.objects.filter(case=storm).values_list("reason", flat=True)
    assert list(reasons) == [f"Mails to alice@example.org bounced on {on}."]

    UserAccount.objects.update(email="alice@new.example.org")

    assert planning.plan() == 1


@pytest.fixture
def imap(settings, tmp_path):
    context, settings.CA_FILE = issue(tmp_path, "127.0.0.1")
    settings.EMAIL_TIMEOUT = 5
    with imap_server.running(settings, context) as server:
        yield server


def test_the_mailbox_is_read(sent, imap):
    imap.messages = {7: b"Subject: Hello\r\n\r\nHi", 9: bounce(sent.token) + b"x" * 1_000_000}

    tasks.read_bounces()

    sent.refresh_from_db()
    assert (sent.state, imap.seen) == (State.FAILED, {7, 9})
    assert imap.log_ins == ['io "secret"'] * 2  # the second time, all are seen


def test_a_message_that_the_server_cannot_read_does_not_stop_others(sent, imap):
    imap.messages = {7: None, 9: bounce(sent.token)}

    tasks.read_bounces()

    sent.refresh_from_db()
    assert (sent.state, imap.seen) == (State.FAILED, {7, 9})


def test_a_message_is_seen_only_after_its_effect_is_stored(sent, imap, monkeypatch):
    def killed(_):
        raise SystemExit

    imap.messages = {7: bounce(sent.token)}
    monkeypatch.setattr(bounces, "store", killed)
    with pytest.raises(SystemExit):
        tasks.read_bounces()
    assert imap.seen == set()

    monkeypatch.undo()
    tasks.read_bounces()

    sent.refresh_from_db()
    assert (sent.state, imap.seen) == (State.FAILED, {7})


def test_a_mailbox_with_another_certificate_gets_no_password(db, imap, settings):
    settings.CA_FILE = ""
    with pytest.raises(OSError, match="certificate verify failed"):
        tasks.read_bounces()

    assert imap.log_ins == []
    assert StageFailure.objects.get().stage == "bounces"


def test_a_mail_server_delivers_bounces_to_the_api(sent, client, call):
    secret = call("token", "create", "bounces").strip()

    def deliver(content):
        headers = {"Authorization": f"Token {secret}"}
        return client.post("/api/v1/bounces", content, "message/rfc822", headers=headers)

    assert deliver(b"x" * 3_000_000).status_code == 413
    assert deliver(b"Subject: Hello\n\nHi").json() == {"matched": False}
    assert deliver(bounce(sent.token)).json() == {"matched": True}
    sent.refresh_from_db()
    assert sent.state == State.FAILED
