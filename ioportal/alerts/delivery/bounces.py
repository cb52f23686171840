"""Bounces: delivery status notifications (RFC 3464) about mails of the outbox, read by IMAP.

Only a report with the token and the address of a mail has an effect. Its recipient and whoever got
it from there know both. Everything else, such as an automatic answer, is ignored.
"""

from __future__ import annotations

import imaplib
import re
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from email.parser import BytesHeaderParser
from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from ioportal.alerts.delivery.connections import ReplyLimit, connection, tls_context
from ioportal.alerts.delivery.deliveries import in_ascii
from ioportal.alerts.models import BouncedAddress, Notification
from ioportal.core.visible_text import visible

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

    from ioportal.core.env import Mailbox

log = structlog.get_logger()

MAX_BYTES = 256 << 10  # of a message: the rest is only the returned mail
_MAX_LINES, _MAX_PARTS = 10_000, 50
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ENVELOPE_ID = re.compile(rf"({_UUID})", re.IGNORECASE)
_MESSAGE_ID = re.compile(rf"<({_UUID})@[^<>]*>", re.IGNORECASE)
_REASON = 400  # characters
_RECIPIENTS = ("Final-Recipient", "Original-Recipient")
_State = Notification.State
_ACCEPTED = (_State.ENDING, _State.SENT, _State.UNCERTAIN)  # by the mail server, as a bounce shows
_LONGEST_REPLY = 2 << 20  # bytes: of a message, or the numbers of many


@dataclass(frozen=True)
class Report:
    """What a mail server reports about a mail.

    Args:
        token: of the notification.
        is_final: whether the server has given up.
        is_permanent: whether the address does not work.
        reason: status and answer.
        addresses: of the recipient, in lower case: as the mail was sent, and where it failed.
    """

    token: UUID
    addresses: frozenset[str]
    is_final: bool
    is_permanent: bool
    reason: str


def store(content: bytes) -> bool:
    """Apply a message; return whether it is a report about a mail of the outbox."""
    try:
        report = parse(content)
    except Exception as error:  # noqa: BLE001  (one message must not stop all others)
        log.warning("bounce_unreadable", error=repr(error))
        return False
    notification = report and Notification.objects.filter(token=report.token).first()
    if not report or not notification:
        return False
    if _in_lower_case(notification.address) not in report.addresses:
        log.warning(
            "bounce_of_another_address",
            notification=notification.pk,
            addresses=sorted(map(visible, report.addresses)),
        )
        return False
    log.info("bounce", notification=notification.pk, reason=report.reason, final=report.is_final)
    if report.is_final:
        _fail(notification, report)
    return True


@transaction.atomic
def _fail(notification: Notification, report: Report) -> None:
    """Mark a mail as failed, and its address as bad; once, also if the report is repeated."""
    accepted = Notification.objects.filter(pk=notification.pk, state__in=_ACCEPTED)
    changed = accepted.update(
        state=_State.FAILED,
        claim=None,
        response=f"{Notification.BOUNCED}{report.reason}",
        finished_at=timezone.now(),
    )
    if changed and report.is_permanent and notification.channel_id is None:
        BouncedAddress.objects.update_or_create(
            address=notification.address.lower(), defaults={"reason": report.reason}
        )


def parse(content: bytes) -> Report | None:
    """Return the report that a message contains; None: it is something else."""
    lines = content[:MAX_BYTES].split(b"\n", _MAX_LINES)
    content = b"\n".join(lines[:_MAX_LINES])
    if content.lower().count(b"content-type:") > _MAX_PARTS:  # nested too deeply
        return None
    message = message_from_bytes(content)
    if message.get_content_type() != "multipart/report":
        return None
    parts = {part.get_content_type(): part for part in _children(message)}
    groups = _children(parts.get("message/delivery-status"))
    recipients = [group for group in groups if "Action" in group]
    token = _token(groups, parts)
    return _report(token, recipients) if token and recipients else None


def _report(token: UUID, recipients: list[Message]) -> Report:
    """Return the report about a mail by its recipients: the first failure, if there is one."""
    failed = [each for each in recipients if _header(each, "Action").lower() == "failed"]
    recipient = (failed or recipients)[0]
    status = _header(recipient, "Status")
    reason = f"{status} {_header(recipient, 'Diagnostic-Code')}".strip()
    return Report(
        token,
        frozenset(filter(None, (_address(recipient, name) for name in _RECIPIENTS))),
        is_final=bool(failed),
        is_permanent=bool(failed) and status.startswith("5."),
        reason=visible(reason)[:_REASON],
    )


def _address(recipient: Message, name: str) -> str:
    """Return an address of a recipient without its type: ``rfc822; user@example.org``."""
    return _in_lower_case(_header(recipient, name).partition(";")[2].strip().strip("<>"))


def _in_lower_case(address: str) -> str:
    """Return an address in the form that mails are sent to, in lower case; "": it is invalid."""
    try:
        return in_ascii(address).lower() if "@" in address else ""
    except UnicodeError:
        return ""


def _token(groups: list[Message], parts: dict[str, Message]) -> UUID | None:
    """Return the token in the envelope, or in the headers of the returned mail."""
    for group in groups:
        if match := _ENVELOPE_ID.fullmatch(_header(group, "Original-Envelope-Id")):
            return UUID(match[1])
    returned = _children(parts.get("message/rfc822"))
    if headers := parts.get("text/rfc822-headers"):
        text = headers.get_payload(decode=True)
        returned = [BytesHeaderParser().parsebytes(text)] if isinstance(text, bytes) else []
    for mail in returned:
        if match := _MESSAGE_ID.fullmatch(_header(mail, "Message-ID")):
            return UUID(match[1])
    return None


def _children(part: Message | None) -> list[Message]:
    """Return the messages directly inside a part."""
    payload = part.get_payload() if part is not None else None
    return (
        [each for each in payload if isinstance(each, Message)] if isinstance(payload, list) else []
    )


def _header(message: Message, name: str) -> str:
    """Return a header in one line."""
    return " ".join(str(message.get(name, "")).split())


def read_mailbox(limit: int) -> int:
    """Apply up to a number of messages of the mailbox; return how many."""
    count = 0
    for count, content in enumerate(unseen(limit, MAX_BYTES), start=1):  # noqa: B007  (the last)
        store(content)
    return count


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
