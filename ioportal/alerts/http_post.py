"""Sends a request with one message over HTTP, without redirects, proxies or cookies."""

from __future__ import annotations

from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings

from ioportal.alerts.connections import (
    LONGEST_ANSWER,
    AnswerLost,
    NotSent,
    Withdrawn,
    deadline,
    refuse_early_end,
    tls_context,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from urllib.parse import SplitResult

_SUCCESS, _REDIRECTION, _SERVER_ERROR = 200, 300, 500
_TEMPORARY = {408, 425, 429}  # of the refusals


def post(url: str, body: bytes, headers: Mapping[str, str], may_end: Callable[[], bool]) -> str:
    """Send a body to a URL; return the server's answer.

    Args:
        url: may contain a secret, so no error contains it.
        body: at least one byte.
        headers: further ones.
        may_end: called when only the last byte of the body is missing; False withdraws the request.

    Raises:
        NotSent: the server did not accept it.
        AnswerLost: nobody knows whether the server accepted it.
        Withdrawn: `may_end` returned False.
    """
    parts = urlsplit(url)
    connection = _connection(parts)
    try:
        connection.connect()
        with deadline(lambda: connection.sock):
            connection.putrequest("POST", _target(parts), skip_accept_encoding=True)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                connection.putheader(name, value)
            connection.endheaders(body[:-1])
            if not may_end():
                raise Withdrawn
            refuse_early_end(connection.sock)
            return _end(connection, body[-1:])
    except (OSError, HTTPException, ValueError) as error:
        raise NotSent(str(error) or type(error).__name__) from error
    finally:
        connection.close()


def _connection(parts: SplitResult) -> HTTPConnection:
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        timeout_s = settings.EMAIL_TIMEOUT
        return HTTPSConnection(host, port, timeout=timeout_s, context=tls_context())
    return HTTPConnection(host, port, timeout=settings.EMAIL_TIMEOUT)


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _end(connection: HTTPConnection, end: bytes) -> str:
    """Send the end of the body; return the answer of success."""
    try:
        connection.send(end)
        response = connection.getresponse()
    except (OSError, HTTPException) as error:
        raise AnswerLost(str(error) or "The connection was lost.") from error
    detail = b""
    with suppress(OSError, HTTPException):  # the status suffices
        detail = response.read(LONGEST_ANSWER)
    answer = f"{response.status} {response.reason}: {detail.decode('utf-8', 'replace')}"
    if _SUCCESS <= response.status < _REDIRECTION:
        return answer
    is_refusal = response.status < _SERVER_ERROR and response.status not in _TEMPORARY
    raise NotSent(answer, is_permanent=is_refusal)
