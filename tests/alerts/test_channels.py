"""Channels: from a case to a webhook, a chat and a ticket that real servers accept."""

import hashlib
import hmac
import json
import socket
import time
from datetime import timedelta
from ipaddress import ip_network
from select import select

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.utils import timezone

from ioportal.alerts import channel_messages, planning
from ioportal.alerts.delivery import connections, outbox, webhooks
from ioportal.alerts.delivery.connections import early_end
from ioportal.alerts.models import Channel, Notification, Silence
from ioportal.findings.models import Case, CaseEvent, Flag
from tests.alerts import http_server, slow_server
from tests.alerts.certificates import issue

State = Notification.State
HOST = "hooks.example.org"
HOSTILE = "x`\r\n<!channel> @all [click](http://evil.example) \u202e"


@pytest.fixture
def receiver(settings, local_channels):
    settings.EMAIL_TIMEOUT = 2
    with http_server.running() as server:
        yield server


@pytest.fixture
def named(settings, tmp_path, monkeypatch):
    """Yield a TLS server whose host name resolves to the next addresses in `answers`.

    The name server is hostile: each answer is different. `asked` lists its queries.
    """
    context, settings.CA_FILE = issue(tmp_path, HOST)
    resolve = socket.getaddrinfo
    asked = []

    def answer(host, *arguments, **options):
        if host != HOST or options.get("flags"):  # no name server is asked
            return resolve(host, *arguments, **options)
        asked.append(host)
        found = [resolve(each, *arguments, **options) for each in answers.pop(0)]
        return [each for group in found for each in group]

    answers = []
    monkeypatch.setattr(socket, "getaddrinfo", answer)
    with http_server.running(context) as server:
        server.url = server.url.replace("127.0.0.1", HOST)
        server.answers, server.asked = answers, asked
        yield server


@pytest.fixture
def channel(db, receiver):
    """Return a function that creates a channel, which was enabled long ago."""

    def create(kind="webhook", **facts):
        created = Channel(**{"name": kind, "kind": kind, "address": receiver.url, **facts})
        created.clean()
        created.enabled_at = timezone.now() - timedelta(days=1)
        created.save()
        return created

    return create


def early_end_when_readable(sock):
    select([sock], [], [], 10)
    return early_end(sock)


def send():
    """Send everything at the time of its next attempt; return the latest notification."""
    Notification.objects.filter(state=State.WAITING).update(next_attempt_at=timezone.now())
    outbox.send_due(10)
    return Notification.objects.latest("pk")


def test_a_webhook_gets_signed_json(storm, channel, receiver):
    webhook = channel()
    assert channel_messages.plan() == 1
    sent = send()

    [(path, headers, body)] = receiver.received
    assert (sent.state, sent.recipient, sent.address) == (State.SENT, "webhook", "")
    assert path == "/hook?x=1"
    assert headers["Idempotency-Key"] == str(sent.token)
    signed = headers["X-Ioportal-Timestamp"].encode() + b"." + body
    signature = hmac.new(webhook.secret.encode(), signed, hashlib.sha256).hexdigest()
    assert headers["X-Ioportal-Signature"] == f"sha256={signature}"
    content = json.loads(body)
    assert (content["version"], content["id"], content["event"]) == (1, str(sent.token), "case")
    case = content["case"]
    assert (case["id"], case["rule"], case["owner"]) == (storm.pk, storm.rule, "alice")
    assert case["url"].endswith(f"/cases/{storm.pk}/")
    assert case["highest"] > case["threshold"]
    assert channel_messages.plan() == 0


def test_names_can_forge_nothing_in_a_chat(storm, channel, receiver):
    Case.objects.update(application=HOSTILE)
    channel("chat")
    channel_messages.plan()
    send()

    text = json.loads(receiver.received[0][2])["text"]
    [line] = [line for line in text.splitlines() if line.startswith("Jobs named")]
    assert line == (
        "Jobs named: `x'\\r\\n&lt;!channel&gt; @all [click](http://evil.example) \\u202e`"
    )
    assert text.splitlines()[-1].endswith(f"/cases/{storm.pk}/")


def test_a_ticket_is_a_mail_and_an_escalation_follows_it(storm, channel, mails):
    case = Case.objects.filter(pk=storm.pk)
    Case.objects.exclude(pk=storm.pk).update(state=Case.State.SUPPRESSED)
    case.update(application=HOSTILE, severity=Flag.Severity.WARNING)
    channel("ticket", address="help@example.org")
    assert channel_messages.plan() == 1
    send()
    case.update(severity=Flag.Severity.ABUSE)
    assert channel_messages.plan() == 1
    send()
    case.update(severity=Flag.Severity.WARNING)
    assert channel_messages.plan() == 0

    (recipients, first), (_, second) = mails.accepted
    assert recipients == ["help@example.org"]
    lines = first.get_body(["plain"]).get_content().splitlines()
    assert (lines[2], lines[3][:20]) == ("Severity: warning", r"Jobs named: x`\r\n<!")
    assert "Severity: abuse" in second.get_body(["plain"]).get_content()
    assert second["References"] == second["In-Reply-To"] == first["Message-ID"]


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"rules": ["stat-storm"]}, id="another rule"),
        pytest.param({"enabled": False}, id="disabled"),
        pytest.param({"min_severity": Flag.Severity.ABUSE}, id="severity"),
    ],
)
def test_filters_of_a_channel(storm, channel, facts):
    Case.objects.update(severity=Flag.Severity.WARNING)
    channel(**facts)

    assert channel_messages.plan() == 0


def test_a_channel_of_another_filesystem_gets_nothing(storm, channel):
    pond = type(storm.filesystem).objects.get(name="pond")
    channel(filesystem=pond)
    assert channel_messages.plan() == 0

    Channel.objects.update(filesystem=storm.filesystem)
    assert channel_messages.plan() == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda: Case.objects.update(state=Case.State.SUPPRESSED), id="poor data"),
        pytest.param(lambda: Flag.objects.update(opened_at=timezone.now()), id="loaded history"),
        pytest.param(lambda: CaseEvent.objects.update(at="2017-07-06T12:00Z"), id="opened before"),
        pytest.param(
            lambda: Silence.objects.create(until=timezone.now() + timedelta(days=1), reason="test"),
            id="silenced",
        ),
    ],
)
def test_nothing_is_sent_about(storm, channel, change):
    channel()
    change()

    assert channel_messages.plan() == 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(
            lambda: Case.objects.update(
                state="resolved", resolution="So.", resolved_by="sam", resolved_at=timezone.now()
            ),
            "The case is resolved.",
            id="resolved",
        ),
        pytest.param(
            lambda: Flag.objects.update(suppression_reasons=["Other nodes."]),
            "no finding on good data",
            id="contradicted",
        ),
        pytest.param(
            lambda: Silence.objects.create(until=timezone.now() + timedelta(days=1), reason="Test"),
            "Silenced until",
            id="silenced",
        ),
        pytest.param(
            lambda: Channel.objects.update(enabled=False), "The channel is disabled.", id="disabled"
        ),
        pytest.param(lambda: Case.objects.all().delete(), "no longer exists", id="deleted"),
    ],
)
def test_a_stale_message_is_discarded_with_the_reason(storm, channel, receiver, change, reason):
    channel("chat")
    channel_messages.plan()
    change()

    message = send()
    assert (message.state, receiver.received) == (State.DISCARDED, [])
    assert reason in message.response


def test_a_message_that_was_stale_is_written_again(storm, channel, receiver):
    channel("chat")
    channel_messages.plan()
    Case.objects.update(state="muted", muted_until=timezone.now() + timedelta(days=1))
    send()
    assert channel_messages.plan() == 0
    Case.objects.update(state="open", muted_until=None)

    assert channel_messages.plan() == 1
    assert send().state == State.SENT
    assert len(receiver.received) == 1


def test_an_enabled_channel_gets_only_new_events(storm, channel):
    created = channel(enabled=False)
    created.enabled = True
    created.save()

    assert channel_messages.plan() == 0


def test_channels_do_not_count_as_mails_to_users(storm, automatic, channel):
    channel(name="alice")
    channel_messages.plan()
    assert planning.plan() == 1
    Notification.objects.update(state=State.SENT)

    [own] = Notification.objects.all().visible_to(User(username="alice"))
    assert own.channel is None


@pytest.mark.parametrize("fault", [500, 429, 503])
def test_a_temporary_failure_is_tried_again(channel, receiver, fault):
    channel_messages.write_test(channel("chat"))
    receiver.faults = [fault]

    assert send().state == State.WAITING
    assert send().state == State.SENT


def test_a_server_that_dies_before_the_end_gets_the_message_again(channel, receiver, monkeypatch):
    channel_messages.write_test(channel("chat"))
    receiver.faults = ["dies"]

    with monkeypatch.context() as patch:
        patch.setattr(webhooks, "early_end", early_end_when_readable)
        assert send().state == State.WAITING
    assert send().state == State.SENT


@pytest.mark.parametrize("status", [404, 302])
def test_a_refusal_is_final_and_redirects_are_not_followed(channel, receiver, status):
    channel_messages.write_test(channel("chat"))
    receiver.faults = [status]

    assert send().state == State.FAILED
    assert [path for path, _, _ in receiver.received] == ["/hook?x=1"]


@pytest.mark.parametrize("fault", ["dies after it", 502, 504])
def test_a_lost_answer_is_uncertain_in_a_chat(channel, receiver, fault):
    channel_messages.write_test(channel("chat"))
    receiver.faults = [fault]

    assert send().state == State.UNCERTAIN
    assert send().state == State.UNCERTAIN
    assert len(receiver.received) == 1


def test_a_webhook_is_repeated_with_the_same_key_and_body(channel, receiver):
    channel_messages.write_test(channel())
    receiver.faults = ["dies after it"]

    assert send().state == State.WAITING
    assert send().state == State.SENT
    (_, first, body), (_, second, same) = receiver.received
    assert first["Idempotency-Key"] == second["Idempotency-Key"]
    assert body == same


def not_http(connection):
    connection.write(b"SSH-2.0-secret\r\n")


def with_words(connection):
    connection.write(b"HTTP/1.1 401 secret\r\nX: secret\r\n\r\nsecret")


@pytest.mark.parametrize(
    ("answer", "response"),
    [
        ((200, b"secret" + b"x" * 10_000_000), "200 OK"),
        ((404, b"secret"), "404 Not Found"),
        (with_words, "401 Unauthorized"),
        (not_http, "No answer in HTTP (BadStatusLine)."),
    ],
)
def test_only_the_status_of_an_answer_is_kept(channel, receiver, answer, response):
    channel_messages.write_test(channel("chat"))
    receiver.faults = [answer]

    assert send().response == response


def test_nothing_is_kept_of_a_server_that_speaks_first(channel, monkeypatch):
    monkeypatch.setattr(webhooks, "early_end", early_end_when_readable)
    with slow_server.running(slow_server.dripping(b"220 secret\r\n", b"")) as port:
        channel_messages.write_test(channel("chat", address=f"http://127.0.0.1:{port}/"))
        told = send()

    assert told.state == State.WAITING
    assert told.response.startswith("The server answered, or hung up")


NOT_PUBLIC = [
    "127.0.0.1", "127.1", "0x7f.1", "2130706433", "0.0.0.0",  # noqa: S104  (a server would bind it)
    "10.0.0.1", "172.16.0.1",
    "192.168.0.1", "169.254.169.254", "100.64.0.1", "192.0.0.192", "224.0.0.1", "255.255.255.255",
    "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::127.0.0.1]", "[fe80::1]",
    "[fc00::1]", "[fec0::1]", "[ff02::1]", "[64:ff9b::a00:1]", "[2002:a00:1::]",
]  # fmt: skip


@pytest.mark.parametrize("host", NOT_PUBLIC)
def test_the_form_refuses_an_address_that_is_not_public(settings, host):
    hook = Channel(name="hook", kind="webhook", address=f"https://{host}/")
    with pytest.raises(ValidationError, match="IOPORTAL_CHANNEL_NETWORKS"):
        hook.clean()

    settings.CHANNEL_NETWORKS = [ip_network("::/0"), ip_network("0.0.0.0/0")]
    hook.clean()


@pytest.mark.parametrize("host", ["localhost", "127.1", "[::ffff:127.0.0.1]"])
def test_a_refused_address_is_not_called_and_its_channel_can_be_disabled(
    db, receiver, settings, host
):
    settings.CHANNEL_NETWORKS = []
    url = receiver.url.replace("127.0.0.1", host)
    hook = Channel.objects.create(name="hook", kind="webhook", address=url)
    channel_messages.write_test(hook)

    told = send()
    assert (told.state, receiver.received) == (State.FAILED, [])
    assert "is not a public address" in told.response
    assert "IOPORTAL_CHANNEL_NETWORKS" in told.response
    hook.enabled = False
    hook.address = url.replace("http:", "https:")
    hook.clean()


@pytest.mark.parametrize("host", ["1.1.1.1", "[2606:4700::1]", HOST, f"{'x' * 64}.org"])
def test_public_addresses_and_names_need_no_setting(host):
    Channel(name="hook", kind="webhook", address=f"https://{host}/").clean()


def test_a_name_is_resolved_once_and_the_certificate_is_for_the_name(channel, named, settings):
    settings.CHANNEL_NETWORKS = [ip_network("127.0.0.1")]
    channel_messages.write_test(channel("chat", address=named.url))
    named.answers += [["127.0.0.1"], ["127.0.0.2"]]

    assert send().state == State.SENT
    assert (len(named.asked), len(named.received)) == (1, 1)
    assert named.received[0][1]["Host"].partition(":")[0] == HOST


def test_all_addresses_of_a_name_are_checked(channel, named):
    channel_messages.write_test(channel("chat", address=named.url))
    named.answers += [["127.0.0.1", "10.0.0.1"], ["127.0.0.1"]]

    told = send()
    assert (told.state, told.response[:8]) == (State.FAILED, "10.0.0.1")
    assert named.received == []


def test_the_next_address_of_a_name_is_tried(channel, named):
    channel_messages.write_test(channel("chat", address=named.url))
    named.answers += [["127.0.0.2", "127.0.0.1"]]

    assert send().state == State.SENT


def test_a_slow_answer_has_a_deadline(channel, receiver, monkeypatch):
    def drip(connection):
        for _ in range(50):
            connection.write(b"x")
            time.sleep(0.1)

    monkeypatch.setattr(connections, "_DEADLINE_S", 0.5)
    channel_messages.write_test(channel("chat"))
    receiver.faults = [drip]
    begun = time.monotonic()

    assert send().state == State.UNCERTAIN
    assert time.monotonic() - begun < 3


def test_others_of_a_channel_wait_after_a_failure(channel, receiver):
    chat = channel("chat")
    for _ in range(3):
        channel_messages.write_test(chat)
    receiver.faults = [500] * 3
    outbox.send_due(10)

    assert len(receiver.received) == 1
    due = Notification.objects.filter(next_attempt_at__gt=timezone.now())
    assert due.count() == 3


def test_certificates_of_channels_are_verified(channel, call, settings, tmp_path):
    context, ca = issue(tmp_path, "127.0.0.1")
    with http_server.running(context) as server:
        channel("chat", address=server.url)
        with pytest.raises(CommandError, match="certificate verify failed"):
            call("send_test", "chat")
        assert server.received == []
        settings.CA_FILE = ca
        assert "sent: 204" in call("send_test", "chat")


def test_a_test_message_of_each_kind(channel, receiver, mails, call):
    channel("webhook")
    channel("ticket", address="help@example.org")
    for name in ("webhook", "ticket"):
        assert call("send_test", name).startswith("sent: ")

    assert json.loads(receiver.received[0][2])["event"] == "test"
    assert mails.accepted[0][1]["Subject"] == "Test of the channel ticket"
    with pytest.raises(CommandError, match="There are: ticket, webhook"):
        call("send_test", "nothing")


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("webhook", "http://example.org/hook"),
        ("webhook", "https:///hook"),
        ("webhook", "https://user:secret@example.org/"),
        ("chat", "https://example.org/a\r\nX: y"),
        ("chat", "https://[/"),
        ("chat", "help@example.org"),
        ("ticket", "https://example.org/"),
    ],
)
def test_an_address_must_fit_the_kind(channel, kind, address):
    with pytest.raises(ValidationError):
        channel(kind, address=address)
