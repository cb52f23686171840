"""A conversation with a mail server that tells exactly how far it came.

``smtplib`` sends the end of a message together with the message. Here the end is separate: until
then the server has nothing to deliver, and after it only its answer is missing.
"""

from __future__ import annotations

import smtplib
from contextlib import contextmanager
from email.policy import SMTP
from typing import TYPE_CHECKING

from django.conf import settings

from ioportal.alerts.connections import (
    AnswerLost,
    NotSent,
    Withdrawn,
    deadline,
    refuse_early_end,
    tls_context,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import EmailMessage

_OK, _SEND_CONTENT = 250, 354
_PERMANENT = 500


def send(message: EmailMessage, address: str, may_end: Callable[[], bool]) -> str:
    """Send a message to one address; return the server's answer.

    Args:
        message: with all headers.
        address: of the recipient.
        may_end: called when only the end of the message is missing; False withdraws it.

    Raises:
        NotSent: the server did not accept it.
        AnswerLost: nobody knows whether the server accepted it.
        Withdrawn: `may_end` returned False.
    """
    content = message.as_bytes(policy=SMTP)
    with _conversation() as server:
        _expect(_OK, server.mail(settings.DEFAULT_FROM_EMAIL, _report_options(server, message)))
        _expect(_OK, server.rcpt(address))
        _expect(_SEND_CONTENT, server.docmd("DATA"))
        server.send(_escaped(content))
        if not may_end():
            raise Withdrawn
        assert server.sock is not None  # noqa: S101  (connected)
        refuse_early_end(server.sock)
        try:
            server.send(b".\r\n")
            code, answer = server.getreply()
        except (OSError, smtplib.SMTPException) as error:
            raise AnswerLost(str(error) or "The connection was lost.") from error
        _expect(_OK, (code, answer))
        return _text(code, answer)


@contextmanager
def _conversation() -> Iterator[smtplib.SMTP]:
    """Connect and log in; errors become `NotSent`, to be tried again: no message is at fault."""
    server: smtplib.SMTP | None = None
    try:
        server = _connected()
        with deadline(lambda: server.sock):
            server.ehlo_or_helo_if_needed()
            if settings.EMAIL_USE_TLS:
                server.starttls(context=tls_context())
                server.ehlo()
            if settings.EMAIL_HOST_USER:
                server.login(settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD)
            yield server
    except smtplib.SMTPResponseException as error:
        raise NotSent(_text(error.smtp_code, error.smtp_error)) from error
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise NotSent(str(error) or type(error).__name__) from error
    finally:
        if server is not None:
            server.close()


def _connected() -> smtplib.SMTP:
    server = settings.EMAIL_HOST, settings.EMAIL_PORT
    if settings.EMAIL_USE_SSL:
        return smtplib.SMTP_SSL(*server, timeout=settings.EMAIL_TIMEOUT, context=tls_context())
    return smtplib.SMTP(*server, timeout=settings.EMAIL_TIMEOUT)


def _report_options(server: smtplib.SMTP, message: EmailMessage) -> list[str]:
    """Ask for bounces (RFC 3461) with the headers of the message, and with its identity."""
    if not server.has_extn("dsn"):
        return []
    identity, _, _ = message["Message-ID"].strip("<>").partition("@")
    return ["RET=HDRS", f"ENVID={identity}"]


def _expect(code: int, reply: tuple[int, bytes]) -> None:
    actual, answer = reply
    if actual // 10 != code // 10:  # 250 and 251 both accept a recipient
        is_permanent = actual >= _PERMANENT
        raise NotSent(_text(actual, answer), is_permanent=is_permanent)


def _escaped(content: bytes) -> bytes:
    """Return content for DATA: lines end with CR LF, those that begin with a dot get another."""
    lines = content.split(b"\r\n")
    if lines[-1] == b"":
        lines.pop()
    return b"".join((b"." if line.startswith(b".") else b"") + line + b"\r\n" for line in lines)


def _text(code: int, answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return f"{code} {text}"
