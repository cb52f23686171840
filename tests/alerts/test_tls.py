"""Encryption of mails: only a verified server gets a password or a mail."""

import pytest

from ioportal.alerts.delivery import outbox
from ioportal.alerts.models import Notification
from tests.alerts import mail_server
from tests.alerts.certificates import issue

State = Notification.State


@pytest.fixture(scope="module")
def trusted(tmp_path_factory):
    return issue(tmp_path_factory.mktemp("trusted"), "127.0.0.1")


@pytest.fixture(scope="module")
def of_another_host(tmp_path_factory):
    return issue(tmp_path_factory.mktemp("other"), "mail.example.org")


@pytest.fixture
def waiting(db, settings):
    log_in_with(settings, "secret")
    return Notification.objects.create(
        kind="copy", address="alice@example.org", subject="Case", text="Hello",
        state=State.WAITING, next_attempt_at="2017-07-06T12:00Z",
    )  # fmt: skip


def log_in_with(settings, password):
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "io", password


def implicit(settings, context):
    settings.EMAIL_USE_SSL = True
    return mail_server.running(settings, tls=context)


def starttls(settings, context):
    settings.EMAIL_USE_TLS = True
    return mail_server.running(settings, starttls=context)


BOTH = pytest.mark.parametrize("encryption", [implicit, starttls])


def sent(waiting):
    outbox.send_due(1)
    waiting.refresh_from_db()
    return waiting


@BOTH
def test_a_verified_server_gets_password_and_mail(waiting, settings, trusted, encryption):
    context, settings.CA_FILE = trusted
    with encryption(settings, context) as server:
        assert sent(waiting).state == State.SENT

    assert server.log_ins == [("io", "secret")]
    assert len(server.accepted) == 1


@BOTH
@pytest.mark.parametrize("is_known_ca", [True, False])
def test_another_certificate_is_refused(
    waiting, settings, trusted, of_another_host, encryption, is_known_ca
):
    context, ca = of_another_host
    settings.CA_FILE = ca if is_known_ca else trusted[1]
    with encryption(settings, context) as server:
        assert sent(waiting).state == State.WAITING

    expected = "not valid for '127.0.0.1'" if is_known_ca else "unable to get local issuer"
    assert expected in waiting.response
    assert (server.log_ins, server.received) == ([], [])


def test_a_server_without_starttls_gets_nothing(waiting, settings):
    settings.EMAIL_USE_TLS = True
    with mail_server.running(settings) as server:
        assert sent(waiting).state == State.WAITING

    assert "STARTTLS" in waiting.response
    assert (server.log_ins, server.received) == ([], [])


def test_a_wrong_password_does_not_fail_mails(waiting, settings, trusted):
    context, settings.CA_FILE = trusted
    log_in_with(settings, "wrong")
    with starttls(settings, context) as server:
        assert sent(waiting).state == State.WAITING
        assert waiting.response.startswith("535")
        log_in_with(settings, "secret")
        Notification.objects.update(next_attempt_at="2017-07-06T12:00Z")
        assert sent(waiting).state == State.SENT
    assert len(server.accepted) == 1
