"""Bounces: delivery status notifications (RFC 3464) about mails of the outbox.

Only a report with the token and the address of a mail has an effect. Its recipient and whoever got
it from there know both. Everything else, such as an automatic answer, is ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from email.parser import BytesHeaderParser
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone

from ioportal.alerts import mailbox
from ioportal.alerts.deliveries import in_ascii
from ioportal.alerts.models import BouncedAddress, Notification
from ioportal.core.visible_text import visible

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
    for count, content in enumerate(mailbox.unseen(limit, MAX_BYTES), start=1):  # noqa: B007  (the last)
        store(content)
    return count
