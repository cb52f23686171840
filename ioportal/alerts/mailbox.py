"""Reads the mailbox of bounces by IMAP over TLS."""

from __future__ import annotations

import imaplib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog
from django.conf import settings

from ioportal.alerts.connections import ReplyLimit, connection, tls_context

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

    from ioportal.core.env import Mailbox

log = structlog.get_logger()

_LONGEST_REPLY = 2 << 20  # bytes: of a message, or the numbers of many


def unseen(limit: int, max_bytes: int) -> Iterator[bytes]:
    """Yield the beginnings of up to a number of unseen messages; without a mailbox, none.

    A message is marked as seen when the next one is requested: then its effect is stored.
    """
    if settings.BOUNCES_MAILBOX is None:
        return
    with _folder(settings.BOUNCES_MAILBOX) as server:
        [numbers] = _data(server.uid("SEARCH", "UNSEEN"))
        for number in (numbers or b"").decode().split()[:limit]:
            yield from _message(server, number, max_bytes)
            _data(server.uid("STORE", number, "+FLAGS.SILENT", r"(\Seen)"))


def _message(server: imaplib.IMAP4, number: str, max_bytes: int) -> Iterator[bytes]:
    """Yield the beginning of a message; one that the server cannot read must not stop others."""
    try:
        parts = _data(server.uid("FETCH", number, f"(BODY.PEEK[]<0.{max_bytes}>)"))
    except imaplib.IMAP4.abort:  # the connection is lost
        raise
    except imaplib.IMAP4.error as error:
        log.warning("bounce_unreadable", number=number, error=str(error))
        return
    for part in parts:
        if isinstance(part, tuple):
            yield part[1]


class _Server(imaplib.IMAP4):
    """A conversation on a connection that exists."""

    def __init__(self, mailbox: Mailbox, sock: socket.socket) -> None:
        self._connection = sock
        self._limit = ReplyLimit(_LONGEST_REPLY)
        super().__init__(mailbox.host, mailbox.port)

    def _create_socket(self, _timeout: float | None) -> socket.socket:
        return self._connection

    def send(self, data: ReadableBuffer) -> None:
        """Send a command, which begins a reply."""
        self._limit.renew()
        super().send(data)

    def read(self, size: int) -> bytes:
        """Read a part of a reply; an error ends the conversation."""
        self._limit.take(size)
        return super().read(size)

    def readline(self) -> bytes:
        """Read a line of a reply; an error ends the conversation."""
        return self._limit.take_line(super().readline())


@contextmanager
def _folder(mailbox: Mailbox) -> Iterator[imaplib.IMAP4]:
    """Log in and open the folder."""
    with (
        connection(mailbox.host, mailbox.port, is_tls=not mailbox.has_starttls) as sock,
        _Server(mailbox, sock) as server,
    ):
        if mailbox.has_starttls:
            server.starttls(tls_context())
        server.login(mailbox.user, mailbox.password)
        _data(server.select(f'"{mailbox.folder}"'))
        yield server


def _data(response: tuple[str, list[Any]]) -> list[Any]:
    """Return the data of a response; raise an error unless the server agreed."""
    status, data = response
    if status != "OK":
        raise imaplib.IMAP4.error(f"{status} {data}")
    return data
