"""POST requests to webhooks and chats."""

from __future__ import annotations

import hashlib
import hmac
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection, responses
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ioportal.alerts.delivery import channel_networks
from ioportal.alerts.delivery.connections import (
    AnswerLost,
    NotSent,
    Withdrawn,
    connection,
    early_end,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from urllib.parse import SplitResult

_SUCCESS, _REDIRECTION, _SERVER_ERROR = 200, 300, 500
_TEMPORARY = {408, 425, 429}  # of the refusals
_FROM_GATEWAY = {502, 504}  # which may have passed the message on


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a webhook's body, in hexadecimal."""
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


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
