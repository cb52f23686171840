"""Delivery of a notification: a function for each kind of channel, and for mails to users.

Each returns the server's answer, or raises a result of `ioportal.alerts.delivery.connections`.
It calls `may_end` just before the end of the message, unless the receiver recognises a repeated
message.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from contextlib import closing, contextmanager
from email.errors import MessageError
from email.policy import SMTP
from http.client import HTTPConnection, HTTPException, HTTPSConnection, responses
from time import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ioportal.alerts import compose
from ioportal.alerts.delivery import channel_networks, smtp
from ioportal.alerts.delivery.connections import (
    AnswerLost,
    NotSent,
    Withdrawn,
    connection,
    early_end,
)
from ioportal.alerts.models import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from urllib.parse import SplitResult

    from ioportal.alerts.models import Notification

_JSON = {"Content-Type": "application/json"}
_SUCCESS, _REDIRECTION, _SERVER_ERROR = 200, 300, 500
_TEMPORARY = {408, 425, 429}  # of the refusals
_FROM_GATEWAY = {502, 504}  # which may have passed the message on


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


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a webhook's body, in hexadecimal."""
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


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


def post(url: str, body: bytes, headers: Mapping[str, str], may_end: Callable[[], bool]) -> str:
    """Send a body to a URL, without redirects, proxies or cookies; return the answer's status.

    Only the status: whoever enters a URL must not read through the portal what only the portal's
    host can read.

    Args:
        url: may contain a secret, so no error contains it.
        body: at least one byte.
        headers: further ones.
        may_end: called when only the last byte of the body is missing; False withdraws the request.

    Raises:
        NotSent: the server did not accept it.
        AnswerLost: it is unknown whether the server accepted it.
        Withdrawn: `may_end` returned False.
    """
    parts = urlsplit(url)
    try:
        with _conversation(parts) as server:
            server.putrequest("POST", _target(parts), skip_accept_encoding=True)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                server.putheader(name, value)
            server.endheaders(body[:-1])
            if not may_end():
                raise Withdrawn
            if early_end(server.sock):
                raise NotSent("The server answered, or hung up, before the end of the message.")
            return _end(server, body[-1:])
    except (OSError, HTTPException, ValueError) as error:
        raise NotSent(_reason(error)) from error


@contextmanager
def _conversation(parts: SplitResult) -> Iterator[HTTPConnection]:
    is_tls = parts.scheme == "https"
    kind = HTTPSConnection if is_tls else HTTPConnection
    with closing(kind(parts.hostname or "", parts.port)) as server:
        server.auto_open = 0  # it would connect to other addresses than the checked ones
        addresses = channel_networks.resolved(server.host, server.port)
        if objection := channel_networks.objection(addresses):
            raise NotSent(objection, is_permanent=True)
        with connection(
            server.host, server.port, is_tls=is_tls, addresses=addresses
        ) as server.sock:
            yield server


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _end(server: HTTPConnection, end: bytes) -> str:
    """Send the end of the body; return the answer of success."""
    try:
        server.send(end)
        response = server.getresponse()
    except (OSError, HTTPException) as error:
        raise AnswerLost(_reason(error)) from error
    answer = f"{response.status} {responses.get(response.status, '')}".strip()
    if _SUCCESS <= response.status < _REDIRECTION:
        return answer
    if response.status in _FROM_GATEWAY:
        raise AnswerLost(answer)
    is_refusal = response.status < _SERVER_ERROR and response.status not in _TEMPORARY
    raise NotSent(answer, is_permanent=is_refusal)


def _reason(error: Exception) -> str:
    """Return the text of an error, unless it may quote the server or the URL."""
    if isinstance(error, HTTPException) and not isinstance(error, OSError):
        return f"No answer in HTTP ({type(error).__name__})."
    return str(error) or type(error).__name__
