"""An HTTP server that fails on purpose."""

from __future__ import annotations

import json

from chaos.failing_server import Conversation

STEPS = ("connect", "content", "end")


class HttpConversation(Conversation):
    """Webhooks, whose body is the token, and chats, whose text is it.

    A webhook with a known Idempotency-Key is accepted without an effect.
    """

    _is_complete = False

    def converse(self) -> None:
        """Receive a request."""
        self.reach("connect")
        self.rfile.readline()
        headers = {}
        while line := self.rfile.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        self.reach("content")
        length = int(headers["content-length"])
        body = self.rfile.read(length).decode()
        if len(body) < length:
            return  # not complete: no request
        self._is_complete = True
        key = headers.get("idempotency-key")
        if key is None:
            self.receive_end(json.loads(body)["text"])
        elif not self._is_repeated(key):
            self.receive_end(key if key == body else "?")
        self._say("200 OK")

    def refuse(self, *, for_now: bool) -> None:
        """Answer with a status; for good only if the request is complete."""
        self._say("404 Not Found" if self._is_complete and not for_now else "503 Later")

    def cut(self) -> None:
        """Send the beginning of a status line."""
        self.wfile.write(b"HTTP/1.1 2")

    def _is_repeated(self, key: str) -> bool:
        with self.server.lock:
            results = self.server.results[key]
            is_repeated = bool(results["accepted"] + results["died"])
            results["repeated"] += is_repeated
        return is_repeated

    def _say(self, status: str) -> None:
        self.wfile.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
