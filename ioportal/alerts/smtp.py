"""A conversation with a mail server that tells exactly how far it came.

``smtplib`` sends the end of a message together with the message. Here the end is separate: until
then the server has nothing to deliver, and after it only its answer is missing.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
from contextlib import contextmanager, suppress
from email.policy import SMTP
from threading import Timer
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import EmailMessage

_OK, _SEND_CONTENT = 250, 354
_PERMANENT = 500
_LONGEST_ANSWER = 4_096
_DEADLINE_S = 90.0  # of a conversation: a server may answer one byte at a time


class NotSent(Exception):  # noqa: N818  (a result, as the caller sees it)
    """The server has not accepted the message, and will not deliver it.

    Args:
        answer: of the server, or the error.
        is_permanent: whether the server refused it for good.
    """

    def __init__(self, answer: str, *, is_permanent: bool = False) -> None:
        super().__init__(answer)
        self.is_permanent = is_permanent


class AnswerLost(Exception):  # noqa: N818
    """The message was sent completely, but the server's answer was lost."""


class Withdrawn(Exception):  # noqa: N818
    """The caller did not allow the end of the message: the server delivers nothing."""


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
        _expect(_OK, server.mail(settings.DEFAULT_FROM_EMAIL))
        _expect(_OK, server.rcpt(address))
        _expect(_SEND_CONTENT, server.docmd("DATA"))
        server.send(_escaped(content))
        if not may_end():
            raise Withdrawn
        _refuse_early_end(server)
        try:
            server.send(b".\r\n")
            code, answer = server.getreply()
        except (OSError, smtplib.SMTPException) as error:
            raise AnswerLost(str(error) or "The connection was lost.") from error
        _expect(_OK, (code, answer))
        return _text(code, answer)


@contextmanager
def _conversation() -> Iterator[smtplib.SMTP]:
    """Connect and log in; errors become `NotSent`. The connection is closed at the deadline."""
    kind = smtplib.SMTP_SSL if settings.EMAIL_USE_SSL else smtplib.SMTP
    server: smtplib.SMTP | None = None
    try:
        timeout_s = settings.EMAIL_TIMEOUT or _DEADLINE_S
        server = kind(settings.EMAIL_HOST, settings.EMAIL_PORT, timeout=timeout_s)
        timer = Timer(_DEADLINE_S, _hang_up, [server])
        timer.start()
        try:
            server.ehlo_or_helo_if_needed()
            if settings.EMAIL_USE_TLS:
                server.starttls()
                server.ehlo()
            if settings.EMAIL_HOST_USER:
                server.login(settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD)
            yield server
        finally:
            timer.cancel()
    except smtplib.SMTPResponseException as error:
        answer = _text(error.smtp_code, error.smtp_error)
        raise NotSent(answer, is_permanent=error.smtp_code >= _PERMANENT) from error
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise NotSent(str(error) or type(error).__name__) from error
    finally:
        if server is not None:
            server.close()


def _refuse_early_end(server: smtplib.SMTP) -> None:
    """Raise `NotSent` if the server closed the connection, or answered before the message's end."""
    assert server.sock is not None  # noqa: S101  (connected)
    timeout_s = server.sock.gettimeout()
    server.sock.settimeout(0)
    try:
        early = server.sock.recv(_LONGEST_ANSWER)
    except (BlockingIOError, ssl.SSLWantReadError):
        return
    finally:
        server.sock.settimeout(timeout_s)
    raise NotSent(early.decode("utf-8", "replace").strip() or "The server closed the connection.")


def _hang_up(server: smtplib.SMTP) -> None:
    """End the connection of another thread, which reads the end of the stream then."""
    with suppress(OSError):
        if server.sock is not None:
            server.sock.shutdown(socket.SHUT_RDWR)


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
