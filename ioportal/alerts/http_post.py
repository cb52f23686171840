"""Sends a request with one message over HTTP, without redirects, proxies or cookies."""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ioportal.alerts.connections import (
    LONGEST_ANSWER,
    AnswerLost,
    NotSent,
    Withdrawn,
    connection,
    refuse_early_end,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from urllib.parse import SplitResult

_SUCCESS, _REDIRECTION, _SERVER_ERROR = 200, 300, 500
_TEMPORARY = {408, 425, 429}  # of the refusals
_FROM_GATEWAY = {502, 504}  # which may have passed the message on


def post(url: str, body: bytes, headers: Mapping[str, str], may_end: Callable[[], bool]) -> str:
    """Send a body to a URL; return the server's answer.

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
            refuse_early_end(server.sock)
            return _end(server, body[-1:])
    except (OSError, HTTPException, ValueError) as error:
        raise NotSent(str(error) or type(error).__name__) from error


@contextmanager
def _conversation(parts: SplitResult) -> Iterator[HTTPConnection]:
    is_tls = parts.scheme == "https"
    kind = HTTPSConnection if is_tls else HTTPConnection
    with (
        closing(kind(parts.hostname or "", parts.port)) as server,
        connection(server.host, server.port, is_tls=is_tls) as server.sock,
    ):
        yield server


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _end(server: HTTPConnection, end: bytes) -> str:
    """Send the end of the body; return the answer of success."""
    try:
        server.send(end)
        response = server.getresponse()
    except (OSError, HTTPException) as error:
        raise AnswerLost(str(error) or "The connection was lost.") from error
    detail = b""
    with suppress(OSError, HTTPException):  # the status suffices
        detail = response.read(LONGEST_ANSWER)
    answer = f"{response.status} {response.reason}: {detail.decode('utf-8', 'replace')}"
    if _SUCCESS <= response.status < _REDIRECTION:
        return answer
    if response.status in _FROM_GATEWAY:
        raise AnswerLost(answer)
    is_refusal = response.status < _SERVER_ERROR and response.status not in _TEMPORARY
    raise NotSent(answer, is_permanent=is_refusal)
