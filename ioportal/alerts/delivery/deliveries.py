"""Delivery of a notification: a function for each kind of channel, and for mails to users.

Each returns the server's answer, or raises a result of `ioportal.alerts.delivery.connections`.
It calls `may_end` just before the end of the message, unless the receiver recognises a repeated
message.
"""

from __future__ import annotations

import json
from email.errors import MessageError
from email.policy import SMTP
from time import time
from typing import TYPE_CHECKING

from ioportal.alerts import compose
from ioportal.alerts.delivery import smtp
from ioportal.alerts.delivery.connections import AnswerLost, NotSent
from ioportal.alerts.delivery.webhooks import post, signature
from ioportal.alerts.models import Channel

if TYPE_CHECKING:
    from collections.abc import Callable

    from ioportal.alerts.models import Notification

_JSON = {"Content-Type": "application/json"}


def deliver(notification: Notification, may_end: Callable[[], bool]) -> str:
    """Deliver a notification by its channel; without a channel, it is a mail."""
    kind = notification.channel.kind if notification.channel else Channel.Kind.TICKET
    return _BY_KIND[Channel.Kind(kind)](notification, may_end)


def _mail(notification: Notification, may_end: Callable[[], bool]) -> str:
    try:
        notification.address = in_ascii(notification.address)
        message = compose.message(notification)
        content = message.as_bytes(policy=SMTP)
    except (IndexError, MessageError, ValueError) as error:
        raise NotSent(f"The mail cannot be written: {error}", is_permanent=True) from error
    return smtp.send(content, notification.address, str(notification.token), may_end)


def in_ascii(address: str) -> str:
    """Return an address whose domain has only the characters of DNS.

    Raises:
        UnicodeError: the part before the domain has others, or the domain is invalid.
    """
    user, _, domain = address.rpartition("@")
    user.encode("ascii")
    return f"{user}@{domain.encode('idna').decode()}"


def _webhook(notification: Notification, _may_end: Callable[[], bool]) -> str:
    """Send a signed request. It may be repeated: each has the same Idempotency-Key."""
    channel = _channel(notification)
    body = notification.text.encode()
    timestamp = str(int(time()))
    headers = {
        "Idempotency-Key": str(notification.token),
        "X-Ioportal-Timestamp": timestamp,
        "X-Ioportal-Signature": f"sha256={signature(channel.secret, timestamp, body)}",
    }
    try:
        return post(channel.address, body, _JSON | headers, may_end=lambda: True)
    except AnswerLost as error:
        raise NotSent(str(error)) from error


def _chat(notification: Notification, may_end: Callable[[], bool]) -> str:
    body = json.dumps({"text": notification.text}).encode()
    return post(_channel(notification).address, body, _JSON, may_end)


def _channel(notification: Notification) -> Channel:
    assert notification.channel  # noqa: S101  (it selected the function)
    return notification.channel


_BY_KIND = {
    Channel.Kind.WEBHOOK: _webhook,
    Channel.Kind.CHAT: _chat,
    Channel.Kind.TICKET: _mail,
}
