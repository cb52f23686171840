"""An SMTP server that fails on purpose, and counts what it received."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict, deque
from contextlib import suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Lock, Thread
from typing import Any

STEPS = ("connect", "EHLO", "MAIL", "RCPT", "DATA", "content", "end")
KINDS = ("drop", "delay", "hang", "refuse for now", "refuse")
DELAY_S, HANG_S = 0.05, 3.0  # longer than the portal waits for an answer
_MESSAGE_ID = re.compile(rb"^Message-ID:\s+<([0-9a-f-]+)@", re.MULTILINE | re.IGNORECASE)


class _Closed(Exception):  # noqa: N818  (ends a conversation)
    """The server closes the connection."""


class MailServer(ThreadingTCPServer):
    """Accepts mails; `faults` has the step and kind of the fault of each next conversation.

    Results are counted by the token in the Message-ID: "accepted", "died" (received completely, but
    not answered), "refused" (for good).
    """

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.faults: deque[tuple[str, str] | None] = deque()
        self.results: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.injected: Counter[str] = Counter()
        self.open = 0  # conversations
        self.lock = Lock()
        Thread(target=self.serve_forever, args=[0.05], daemon=True).start()

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.server_address[1])

    def note(self, fault: str) -> None:
        """Count an injected fault."""
        with self.lock:
            self.injected[fault] += 1

    def handle_error(self, *_: Any) -> None:
        """Ignore connections that the other side closed."""


class _Conversation(StreamRequestHandler):
    server: MailServer
    timeout = 2 * HANG_S

    def handle(self) -> None:
        with self.server.lock:
            self._fault = self.server.faults.popleft() if self.server.faults else None
            self.server.open += 1
        try:
            with suppress(_Closed, OSError):
                self._converse()
        finally:
            with self.server.lock:
                self.server.open -= 1

    def _converse(self) -> None:
        self._answer("connect", "220 ready")
        while line := self.rfile.readline():
            verb = line.split(maxsplit=1)[0].upper().decode() if line.strip() else ""
            if verb == "DATA":
                self._answer("DATA", "354 go ahead")
                self._receive()
            elif verb in {"EHLO", "HELO"}:
                self._answer("EHLO", "250 chaos")
            elif verb in {"MAIL", "RCPT"}:
                self._answer(verb, "250 OK")
            elif verb == "QUIT":
                self._say("221 bye")
                return
            else:
                self._say("250 OK")

    def _receive(self) -> None:
        content = b""
        while (line := self.rfile.readline()) != b".\r\n":
            if not line:
                return  # not complete: nothing to deliver
            content += line
            if self._fault == ("content", "hang"):
                self.server.note("hang at content")
                time.sleep(HANG_S)  # the other side has given up, but may have sent the end
                self._fault = ("end", "drop")
            elif self._fault and self._fault[0] == "content":
                self._fail("content")
        found = _MESSAGE_ID.search(content)
        token = found[1].decode() if found else "?"
        result = "accepted"
        if self._fault and self._fault[0] == "end":
            kind = self._fault[1]
            result = {
                "refuse": "refused",
                "refuse for now": "refused for now",
                "delay": "accepted",
            }.get(kind, "died")
        with self.server.lock:
            self.server.results[token][result] += 1
        self._answer("end", "250 queued")

    def _answer(self, step: str, answer: str) -> None:
        if self._fault and self._fault[0] == step:
            self._fail(step)
        self._say(answer)

    def _fail(self, step: str) -> None:
        """Inject the fault; a delay only delays."""
        assert self._fault  # noqa: S101
        _, kind = self._fault
        self._fault = None
        self.server.note(f"{kind} at {step}")
        if kind == "delay":
            time.sleep(DELAY_S)
            return
        if kind == "hang":
            time.sleep(HANG_S)
        elif kind.startswith("refuse"):
            self._say("450 later" if kind == "refuse for now" else "550 no")
        raise _Closed

    def _say(self, answer: str) -> None:
        self.wfile.write(answer.encode() + b"\r\n")
