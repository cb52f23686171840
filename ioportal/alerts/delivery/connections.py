"""Connections that deliver notifications: their results, verified TLS, and limits of time.

A message is sent in two parts. Until the second part, its end, the server has nothing to deliver;
after it, only the server's answer is missing.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import contextmanager, suppress
from threading import Timer
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST_ANSWER = 4_096  # bytes that are read
_MAX_LINES = 1_000  # of a reply
_DEADLINE_S = 90.0  # of a conversation: a server may answer one byte at a time


class NotSent(Exception):  # noqa: N818  (a result, as the caller sees it)
    """The server has not accepted the message, and will not deliver it.

    Args:
        answer: of the server, or the error.
        is_permanent: whether the server refused it for good.
        is_about_message: whether the server answered, and might accept other messages.
    """

    def __init__(
        self, answer: str, *, is_permanent: bool = False, is_about_message: bool = False
    ) -> None:
        super().__init__(answer)
        self.is_permanent = is_permanent
        self.is_about_message = is_about_message or is_permanent


class AnswerLost(Exception):  # noqa: N818
    """The message was sent completely, but the server's answer was lost."""


class Withdrawn(Exception):  # noqa: N818
    """The caller did not allow the end of the message: the server delivers nothing."""


def tls_context() -> ssl.SSLContext:
    """Return a context that verifies certificates and host names, with the site's own CAs."""
    context = ssl.create_default_context()
    if settings.CA_FILE:
        context.load_verify_locations(settings.CA_FILE)
    return context


@contextmanager
def connection(
    host: str, port: int, *, is_tls: bool, addresses: Sequence[str] = ()
) -> Iterator[socket.socket]:
    """Connect to a server, and end a conversation that lasts too long.

    A reader gets the end of the stream then, also during the handshake of TLS or STARTTLS.

    Args:
        host: name or address of the server.
        port: its port.
        is_tls: whether TLS begins immediately.
        addresses: of the host, which are tried in their order; none: its name is resolved.
    """
    with (
        _connected(addresses or [host], port) as plain,
        plain.dup() as same,  # TLS takes over the other
    ):
        timer = Timer(_DEADLINE_S, _hang_up, [same])
        timer.start()
        try:
            if not is_tls:
                yield plain
                return
            with tls_context().wrap_socket(plain, server_hostname=host) as secure:
                yield secure
        finally:
            timer.cancel()
            timer.join()


def _connected(hosts: Sequence[str], port: int) -> socket.socket:
    """Connect to the first host that accepts it."""
    for host in hosts[:-1]:
        with suppress(OSError):
            return socket.create_connection((host, port), settings.EMAIL_TIMEOUT)
    return socket.create_connection((hosts[-1], port), settings.EMAIL_TIMEOUT)


class ReplyLimit:
    """The limit of what a server may send as one reply: an endless one would fill the memory."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.renew()

    def renew(self) -> None:
        """Begin a new reply."""
        self._bytes, self._lines = self._max_bytes, _MAX_LINES

    def take_line(self, line: bytes) -> bytes:
        """Count a line, and return it.

        Raises:
            OSError: the reply is too long.
        """
        self._lines -= 1
        self.take(len(line))
        return line

    def take(self, size: int) -> None:
        """Count bytes before they are read.

        Raises:
            OSError: the reply is too long.
        """
        self._bytes -= size
        if self._bytes < 0 or self._lines < 0:
            raise OSError("The server's reply is too long.")


def _hang_up(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def early_end(sock: socket.socket) -> str:
    """Return what the server answered before the message's end, or that it closed the connection.

    "" means that it waits for the end.
    """
    timeout_s = sock.gettimeout()
    sock.settimeout(0)
    try:
        early = sock.recv(LONGEST_ANSWER)
    except (BlockingIOError, ssl.SSLWantReadError):
        return ""
    finally:
        sock.settimeout(timeout_s)
    return early.decode("utf-8", "replace").strip() or "The server closed the connection."
