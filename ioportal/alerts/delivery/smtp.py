"""A conversation with a mail server that tells exactly how far it came.

``smtplib`` sends the end of a message together with the message. Here the end is separate: until
then the server has nothing to deliver, and after it only its answer is missing.
"""

from __future__ import annotations

import re
import smtplib
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from django.conf import settings

from ioportal.alerts.delivery.connections import (
    LONGEST_ANSWER,
    AnswerLost,
    NotSent,
    ReplyLimit,
    Withdrawn,
    connection,
    early_end,
    tls_context,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

_LONGEST_REPLY = 64 << 10  # bytes
_UNREADABLE = -1  # of smtplib
_OK, _SEND_CONTENT = 250, 354
_PERMANENT = 500
_CLOSING = 421
_FINAL_LINE = re.compile(rb"([245][0-9][0-9])([ -].*)?\r?\n", re.DOTALL)


def send(content: bytes, address: str, identity: str, may_end: Callable[[], bool]) -> str:
    """Send a message to one address; return the server's answer.

    Args:
        content: of the message with all headers.
        address: of the recipient, in ASCII.
        identity: of the message, for bounces.
        may_end: called when only the end of the message is missing; False withdraws it.

    Raises:
        NotSent: the server did not accept it.
        AnswerLost: it is unknown whether the server accepted it.
        Withdrawn: `may_end` returned False.
    """
    with _conversation() as server:
        _expect(_OK, server.mail(settings.DEFAULT_FROM_EMAIL, _report_options(server, identity)))
        _expect(_OK, server.rcpt(address))
        _expect(_SEND_CONTENT, server.docmd("DATA"))
        server.send(_escaped(content))
        if not may_end():
            raise Withdrawn
        assert server.sock is not None  # noqa: S101  (connected)
        if reason := early_end(server.sock):
            raise NotSent(reason)
        try:
            server.send(b".\r\n")
            code, answer = _final_answer(server)
        except OSError as error:
            raise AnswerLost(str(error) or "The connection was lost.") from error
        if code // 100 != _OK // 100:
            _refuse(code, answer)
        return _text(code, answer)


class _Lines:
    """The lines of a server, up to a limit for each reply."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.limit = ReplyLimit(_LONGEST_REPLY)

    def readline(self, size: int) -> bytes:
        return self.limit.take_line(self._file.readline(size))

    def close(self) -> None:
        self._file.close()


class _Server(smtplib.SMTP):
    """A conversation on a connection that exists."""

    file: _Lines | None

    def __init__(self, sock: socket.socket) -> None:
        self._connection = sock
        super().__init__(settings.EMAIL_HOST, settings.EMAIL_PORT)

    def _get_socket(self, *_: object) -> socket.socket:
        return self._connection

    def getreply(self) -> tuple[int, bytes]:
        """Return a reply, which has a limited length.

        Raises:
            SMTPServerDisconnected: it is longer, or the connection was lost.
        """
        assert self.sock is not None  # noqa: S101  (connected)
        if self.file is None:  # at the beginning, and after STARTTLS
            self.file = _Lines(self.sock.makefile("rb"))
        self.file.limit.renew()
        return super().getreply()


@contextmanager
def _conversation() -> Iterator[smtplib.SMTP]:
    """Connect and log in; errors become `NotSent`, to be tried again: no message is at fault."""
    host, port, is_tls = settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_USE_SSL
    try:
        with connection(host, port, is_tls=is_tls) as sock, closing(_Server(sock)) as server:
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


def _final_answer(server: smtplib.SMTP) -> tuple[int, bytes]:
    """Return the complete answer to the end of a message.

    Raises:
        AnswerLost: anything else was read.
    """
    assert server.file is not None  # noqa: S101  (since the banner)
    answer = b""
    while True:
        line = server.file.readline(LONGEST_ANSWER)
        match = _FINAL_LINE.fullmatch(line)
        if match is None:
            read = (answer + line).decode("utf-8", "replace").strip()
            raise AnswerLost(f"No complete answer: {read}" if read else "The connection was lost.")
        answer = (answer + line[4:])[:LONGEST_ANSWER]
        if line[3:4] != b"-":
            return int(match[1]), answer.strip()


def _report_options(server: smtplib.SMTP, identity: str) -> list[str]:
    """Ask for bounces (RFC 3461) with the headers of the message, and with its identity."""
    return ["RET=HDRS", f"ENVID={identity}"] if server.has_extn("dsn") else []


def _expect(code: int, reply: tuple[int, bytes]) -> None:
    actual, answer = reply
    if actual // 10 != code // 10:  # 250 and 251 both accept a recipient
        _refuse(actual, answer)


def _refuse(code: int, answer: bytes) -> NoReturn:
    raise NotSent(
        _text(code, answer),
        is_permanent=code >= _PERMANENT,
        is_about_message=code not in {_CLOSING, _UNREADABLE},
    )


def _escaped(content: bytes) -> bytes:
    """Return content for DATA: lines end with CR LF; a dot at the start of a line is doubled."""
    lines = content.split(b"\r\n")
    if lines[-1] == b"":
        lines.pop()
    return b"".join((b"." if line.startswith(b".") else b"") + line + b"\r\n" for line in lines)


def _text(code: int, answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return f"{code} {text}"
