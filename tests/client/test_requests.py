"""Requests of the client to busy, slow and foreign servers."""

import json
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from ioportal_client import Portal, PortalError, Refused, Settings, Unavailable

LOOK_UP = {"jobs": [], "nrecords": 0, "unknown": {}, "warnings": []}


@contextmanager
def server(*answers):
    """Serve answers in turn: status, headers and pieces of the body; yield address and requests."""
    waiting, requests = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            length = int(self.headers.get("Content-Length", 0))
            requests.append((self.command, dict(self.headers), self.rfile.read(length)))
            status, headers, *pieces = waiting.pop(0)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            for piece in pieces:
                time.sleep(0.1)
                self.wfile.write(piece)
                self.wfile.flush()

        do_POST = do_GET  # noqa: N815  (the name that the library calls)

        def log_message(self, *_):
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        Thread(target=running.serve_forever, args=(0.01,)).start()
        yield f"http://127.0.0.1:{running.server_port}", requests
        running.shutdown()


def ok(value):
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


@pytest.fixture
def connect():
    """Connect to a server with a token."""
    return lambda url, **options: Portal(Settings(url, "secret"), **options)


@pytest.mark.parametrize("status", [429, 503])
def test_a_request_is_repeated_when_the_portal_asks_for_it(connect, status):
    busy = (status, {"Retry-After": "1"}, b"")
    with server(busy, ok(LOOK_UP)) as (url, requests), connect(url) as portal:
        begin = time.monotonic()

        assert portal.batch_jobs(["1"]) == LOOK_UP
        assert time.monotonic() - begin >= 1
        assert len(requests) == 2


def test_a_request_is_not_repeated_for_longer_than_allowed(connect):
    problem = {"detail": "At most 60 requests per minute."}
    busy = 429, {"Retry-After": "30", "Content-Type": "application/problem+json"}
    with server((*busy, json.dumps(problem).encode())) as (url, requests):
        with connect(url, patience_s=5) as portal, pytest.raises(Unavailable) as raised:
            portal.cases()

        assert (str(raised.value), raised.value.pause_s) == (problem["detail"], 30)
        assert len(requests) == 1


def test_redirects_are_not_followed(connect):
    with server() as (elsewhere, stolen):
        redirect = 302, {"Location": f"{elsewhere}/login/"}
        refusal = pytest.raises(PortalError, match="redirects to http")
        with server(redirect) as (url, _), connect(url) as portal, refusal:
            portal.cases()

        assert stolen == []


@pytest.mark.parametrize(
    "answer", [(200, {}, *[b" "] * 50), (200, {"Content-Length": "9"}, b"", b"", *[b""] * 9)]
)
def test_an_answer_that_never_ends_is_given_up(connect, answer):
    with server(answer) as (url, _), connect(url, timeout_s=0.3) as portal:
        begin = time.monotonic()
        with pytest.raises(Unavailable, match=r"within 0\.3 s"):
            portal.cases()

        assert time.monotonic() - begin < 2


def test_many_ids_are_sent_in_one_body(connect):
    with server(ok(LOOK_UP)) as (url, requests), connect(url) as portal:
        portal.panda_jobs(range(5_000))

    [(method, headers, body)] = requests
    assert (method, headers["Authorization"]) == ("POST", "Token secret")
    assert json.loads(body)["pandaid"].split("|") == [str(number) for number in range(5_000)]


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, b"\xff"])
def test_another_server_is_recognised(connect, body):
    refusal = pytest.raises(PortalError, match="IOPORTAL_URL")
    with server((200, {}, body)) as (url, _), connect(url) as portal, refusal:
        portal.cases()


def test_errors_of_pages_are_readable(connect):
    errors = json.dumps({"errors": {"last": ["Unknown range."]}}).encode()
    invalid = 400, {"Content-Type": "application/json"}, errors
    page = 403, {"Content-Type": "text/html"}, b"<html>"
    with server(invalid, page) as (url, _), connect(url) as portal:
        with pytest.raises(PortalError, match=r"^last: Unknown range\.$"):
            portal.load(last="2h")
        with pytest.raises(Refused, match="403 Forbidden"):
            portal.load()


def test_tokens_do_not_appear_in_tracebacks():
    assert "secret" not in repr(Settings("https://io.example.org", "secret"))
