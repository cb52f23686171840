"""Reads the mailbox of bounces by IMAP over TLS."""

from __future__ import annotations

import imaplib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.conf import settings

from ioportal.alerts.connections import deadline, tls_context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.env import Mailbox


def unseen(limit: int, max_bytes: int) -> Iterator[bytes]:
    """Yield the beginnings of up to a number of unseen messages; without a mailbox, none.

    A message is marked as seen when the next one is requested: then its effect is stored.
    """
    if settings.BOUNCES_MAILBOX is None:
        return
    with _folder(settings.BOUNCES_MAILBOX) as server:
        [numbers] = _data(server.uid("SEARCH", "UNSEEN"))
        for number in (numbers or b"").decode().split()[:limit]:
            for part in _data(server.uid("FETCH", number, f"(BODY.PEEK[]<0.{max_bytes}>)")):
                if isinstance(part, tuple):
                    yield part[1]
            _data(server.uid("STORE", number, "+FLAGS.SILENT", r"(\Seen)"))


@contextmanager
def _folder(mailbox: Mailbox) -> Iterator[imaplib.IMAP4]:
    """Log in and open the folder."""
    with _connected(mailbox) as server, deadline(lambda: server.sock):
        if mailbox.has_starttls:
            server.starttls(tls_context())
        server.login(mailbox.user, mailbox.password)
        _data(server.select(f'"{mailbox.folder}"'))
        yield server


def _connected(mailbox: Mailbox) -> imaplib.IMAP4:
    host, port, timeout_s = mailbox.host, mailbox.port, settings.EMAIL_TIMEOUT
    if mailbox.has_starttls:
        return imaplib.IMAP4(host, port, timeout_s)
    return imaplib.IMAP4_SSL(host, port, ssl_context=tls_context(), timeout=timeout_s)


def _data(response: tuple[str, list[Any]]) -> list[Any]:
    """Return the data of a response; raise an error unless the server agreed."""
    status, data = response
    if status != "OK":
        raise imaplib.IMAP4.error(f"{status} {data}")
    return data
