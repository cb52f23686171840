"""Limits for a client before the application receives its request."""

import asyncio
import json

import pytest

from ioportal import asgi
from ioportal.core import serving
from ioportal.core.serving import Lane, Server


def echo(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["wsgi.input"].read()]


@pytest.fixture
def send_request():
    """Send the parts of a body, each after a pause; return the status, or None, and the body."""

    def send(
        *parts,
        pause_s=0.0,
        headers=(),
        path="/",
        free_body_bytes=1 << 20,
        application=echo,
        reads=True,
    ):
        incoming = iter(parts)

        async def receive():
            await asyncio.sleep(pause_s)
            part = next(incoming, None)
            if part is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": part, "more_body": part != b"."}

        answers = []

        async def answer(message):
            answers.append(message)
            if not reads and message["type"] == "http.response.body":
                await asyncio.sleep(60)

        scope = {
            "method": "POST", "path": path, "query_string": b"", "http_version": "1.1",
            "scheme": "http", "headers": list(headers),
        }  # fmt: skip
        lane = Lane("all", 1, lambda _: True, free_body_bytes=free_body_bytes)
        asyncio.run(Server(application, [lane])(scope, receive, answer))
        assert lane.free_body_bytes == free_body_bytes
        body = b"".join(message.get("body", b"") for message in answers)
        return (answers[0]["status"] if answers else None), body

    return send


def test_a_body_in_parts_reaches_the_application_whole(send_request):
    assert send_request(b"one ", b"two ", b".") == (200, b"one two .")


def test_a_body_whose_next_part_is_late_is_refused(send_request, monkeypatch):
    monkeypatch.setattr(serving, "PART_WITHIN_S", 0.05)

    assert send_request(b"one", b".", pause_s=0.2)[0] == 408


def test_a_body_that_trickles_is_refused(send_request, monkeypatch):
    monkeypatch.setattr(serving, "BODY_WITHIN_S", 0.2)

    assert send_request(*[b"x"] * 99, b".", pause_s=0.02)[0] == 408


def test_a_body_that_is_too_large_is_refused(send_request, monkeypatch):
    monkeypatch.setattr(serving, "BODY_BYTES", 9)

    assert send_request(b".", headers=[(b"content-length", b"10")])[0] == 413
    assert send_request(b"x" * 10, b".")[0] == 413


def test_a_body_that_is_too_slow_is_refused(send_request, monkeypatch):
    monkeypatch.setattr(serving, "PART_WITHIN_S", 0.5)
    monkeypatch.setattr(serving, "PART_BYTES", 12)
    slow, steady = [b"x"] * 12, [b"x" * 12] * 12

    assert send_request(*slow, b".", pause_s=0.06)[0] == 408
    assert send_request(*steady, b".", pause_s=0.06)[0] == 200


@pytest.mark.parametrize("size", [0, 1, 10, 11, 25, 40, 41, 999])
def test_a_response_of_any_size_arrives_whole(send_request, monkeypatch, size):
    monkeypatch.setattr(serving, "PART_BYTES", 10)
    monkeypatch.setattr(serving, "BUFFERED_BYTES", 40)
    content = bytes(n % 251 for n in range(size))

    def download(_, start_response):
        start_response("200 OK", [])
        return (content[n : n + 7] for n in range(0, size, 7))

    assert send_request(b".", application=download) == (200, content)


def test_a_client_that_does_not_read_holds_no_thread(send_request, monkeypatch):
    monkeypatch.setattr(serving, "PART_WITHIN_S", 0.05)
    is_closed = []

    class Download:
        def __iter__(self):
            return iter([b"x" * 10] * 10)

        def close(self):
            is_closed.append(True)

    def download(_, start_response):
        start_response("200 OK", [])
        return Download()

    assert send_request(b".", application=download, reads=False) == (200, b"x" * 100)
    assert is_closed == [True]
    monkeypatch.setattr(serving, "BUFFERED_BYTES", 40)
    monkeypatch.setattr(serving, "PART_BYTES", 10)
    assert send_request(b".", application=download, reads=False) == (200, b"x" * 10)
    assert is_closed == [True, True]


def test_a_body_without_room_is_refused_with_a_retry(send_request):
    assert send_request(b"x" * 10, b".", free_body_bytes=9) == (
        503, b"The portal is busy. Try again in 5 seconds.",
    )  # fmt: skip
    status, body = send_request(b"x" * 10, b".", path="/api/v1/batches", free_body_bytes=9)
    assert (status, json.loads(body)["code"]) == (503, "busy")


def test_a_client_that_disconnects_receives_nothing(send_request):
    assert send_request(b"one") == (None, b"")


@pytest.mark.parametrize(
    ("query", "expected"), [(b"q=M\xc3\xbcller&x=%C2%B2", False), (b"\xff=%FF&format=csv", True)]
)
def test_the_lane_of_any_query_is_found(query, expected):
    assert asgi.is_export({"path": "/", "query_string": query}) is expected
