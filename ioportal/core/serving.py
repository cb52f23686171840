"""Run a WSGI application on an ASGI server, so that slow clients never block a thread.

The event loop receives a whole request, within limits of size and time, before a thread is used.
It also sends responses, except the rest of very large ones. Each kind of request has its own
threads and its own memory for bodies.
"""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from itertools import chain
from os import SEEK_END
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any

from ioportal.core.problem_details import CONTENT_TYPE, problem_details, request_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    Message: TypeAlias = dict[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]
    Send: TypeAlias = Callable[[Message], Awaitable[None]]
    Scope: TypeAlias = dict[str, Any]
    Environ: TypeAlias = dict[str, Any]
    Wsgi: TypeAlias = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

BODY_BYTES = 34 << 20  # the application has lower limits
BODY_WITHIN_S = 120.0  # the whole body
PART_BYTES = 1 << 16
PART_WITHIN_S = 10.0  # for each part of a body or a response
THREAD_WITHIN_S = 20.0
BUFFERED_BYTES = 8 << 20  # of a response before its thread must send
_IN_MEMORY_BYTES = 1 << 16  # of a body or a response; the rest is in a temporary file


@dataclass
class Lane:
    """Threads for one kind of request."""

    name: str
    threads: int
    accepts: Callable[[Scope], bool]
    prepare_thread: Callable[[], None] | None = None
    free_body_bytes: int = 256 << 20  # for bodies of all requests of a process
    executor: ThreadPoolExecutor = field(init=False)
    free: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.executor = ThreadPoolExecutor(
            self.threads, thread_name_prefix=self.name, initializer=self.prepare_thread
        )
        self.free = asyncio.Semaphore(self.threads)


class _Refusal(Exception):  # noqa: N818  (a response, not a fault)
    """A request that does not reach the application."""

    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


_TOO_LARGE = _Refusal(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "too_large",
    f"A request has at most {BODY_BYTES >> 20} MiB.",
)
_SLOW = _Refusal(
    HTTPStatus.REQUEST_TIMEOUT, "slow", "The body of the request took too long. Try again."
)
_BUSY = _Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE, "busy", "The portal is busy. Try again in 5 seconds."
)


class _Disconnected(Exception):  # noqa: N818  (nothing is wrong with the application)
    """The client disconnected or does not read."""


class Server:
    """An ASGI application that serves each request in the first lane that accepts it."""

    def __init__(self, application: Wsgi, lanes: Sequence[Lane]) -> None:
        self._application = application
        self._lanes = lanes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        lane = next(lane for lane in self._lanes if lane.accepts(scope))
        with _file() as body, _file() as response:
            try:
                await _receive(lane, scope, receive, body)
                await _wait_for_thread(lane)
                loop = asyncio.get_running_loop()
                respond = partial(self._respond, _environ(scope, body), response, send, loop)
                responding = loop.run_in_executor(lane.executor, respond)
                responding.add_done_callback(lambda _: lane.free.release())
                for message in chain(await responding, _parts(response, is_last=True)):
                    await _deliver(message, send)
            except _Refusal as refusal:
                await _refuse(refusal, scope, send)
            except _Disconnected:
                pass
            finally:
                lane.free_body_bytes += body.seek(0, SEEK_END)

    def _respond(
        self, environ: Environ, response: IO[bytes], send: Send, loop: asyncio.AbstractEventLoop
    ) -> list[Message]:
        """Run the application; called in a thread of the lane.

        The response is written to a file. Only a response larger than `BUFFERED_BYTES` is sent from
        this thread, except its end.

        Returns:
            The message that starts the response, unless it was sent.
        """
        start: Message = {"type": "http.response.start"}

        def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> None:
            start["status"] = int(status.split(maxsplit=1)[0])
            start["headers"] = [
                (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers
            ]

        pending = [start]
        parts = self._application(environ, start_response)
        try:
            for part in parts:
                response.write(part)
                if response.tell() > BUFFERED_BYTES:
                    for message in chain(pending, _parts(response, is_last=False)):
                        asyncio.run_coroutine_threadsafe(_deliver(message, send), loop).result()
                    pending = []
                    response.seek(0)
                    response.truncate()
        finally:
            if close := getattr(parts, "close", None):
                close()
        return pending


def _file() -> SpooledTemporaryFile[bytes]:
    return SpooledTemporaryFile(_IN_MEMORY_BYTES)


def _parts(response: IO[bytes], *, is_last: bool) -> Iterator[Message]:
    """Yield the messages for the content of a file."""
    left = response.tell()
    response.seek(0)
    while left > PART_BYTES:
        left -= PART_BYTES
        yield _part(response.read(PART_BYTES), more_body=True)
    yield _part(response.read(left), more_body=not is_last)


def _part(body: bytes, *, more_body: bool) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more_body}


async def _deliver(message: Message, send: Send) -> None:
    """Send a message; abort the response if the client does not read."""
    try:
        await asyncio.wait_for(send(message), PART_WITHIN_S)
    except TimeoutError:
        raise _Disconnected from None


async def _receive(lane: Lane, scope: Scope, receive: Receive, body: IO[bytes]) -> None:
    """Receive the body of a request, at least `PART_BYTES` per `PART_WITHIN_S`."""
    length = dict(scope["headers"]).get(b"content-length", b"0")
    if length.isdigit() and int(length) > BODY_BYTES:
        raise _TOO_LARGE
    has_more, expected = True, PART_BYTES
    try:
        async with asyncio.timeout(BODY_WITHIN_S), asyncio.timeout(PART_WITHIN_S) as next_part:
            while has_more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Disconnected
                part = message.get("body", b"")
                body.write(part)
                lane.free_body_bytes -= len(part)
                if body.tell() > BODY_BYTES:
                    raise _TOO_LARGE
                if lane.free_body_bytes < 0:
                    raise _BUSY
                if body.tell() >= expected:
                    expected = body.tell() + PART_BYTES
                    next_part.reschedule(asyncio.get_running_loop().time() + PART_WITHIN_S)
                has_more = message.get("more_body", False)
    except TimeoutError:
        raise _SLOW from None
    body.seek(0)


async def _wait_for_thread(lane: Lane) -> None:
    try:
        await asyncio.wait_for(lane.free.acquire(), THREAD_WITHIN_S)
    except TimeoutError:
        raise _BUSY from None


async def _refuse(refusal: _Refusal, scope: Scope, send: Send) -> None:
    """Respond with JSON to programs and with text to browsers."""
    body, kind, headers = str(refusal), b"text/plain; charset=utf-8", []
    if scope["path"].startswith("/api/"):
        sent = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        id_ = request_id(sent)
        body = json.dumps(problem_details(refusal.status, refusal.code, body, request_id=id_))
        kind = CONTENT_TYPE.encode()
        headers.append((b"x-request-id", id_.encode()))
    headers += [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    if refusal.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.append((b"retry-after", b"5"))
        if scope["method"] == "GET":
            headers.append((b"refresh", b"5"))
    else:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": int(refusal.status), "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})


def _environ(scope: Scope, body: IO[bytes]) -> Environ:
    server, client = scope.get("server") or ("localhost", 80), scope.get("client") or ("", 0)
    environ: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "REMOTE_ADDR": client[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": body,
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name_bytes, value_bytes in scope["headers"]:
        name, value = name_bytes.decode("latin-1"), value_bytes.decode("latin-1")
        if "_" in name:  # it would replace the header with a hyphen, which a proxy sets
            continue
        key = name.upper().replace("-", "_")
        key = key if key in {"CONTENT_LENGTH", "CONTENT_TYPE"} else f"HTTP_{key}"
        separator = "; " if key == "HTTP_COOKIE" else ","
        environ[key] = f"{environ[key]}{separator}{value}" if key in environ else value
    return environ
