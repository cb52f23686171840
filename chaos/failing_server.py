"""A server that fails on purpose, and counts the received messages."""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from contextlib import suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Lock, Thread
from typing import Any

KINDS = ("drop", "delay", "hang", "refuse for now", "refuse", "cut")
DELAY_S, HANG_S = 0.05, 3.0  # longer than the portal waits for an answer
_RESULTS = {
    "delay": "accepted",
    "refuse for now": "refused for now",
    "refuse": "refused",
    "drop": "died",
    "hang": "died",
    "cut": "died",  # its answer is incomplete
}


class Closed(Exception):  # noqa: N818  (ends a conversation)
    """The server closes the connection."""


class FailingServer(ThreadingTCPServer):
    """Accepts messages; `faults` has the step and kind of the fault of each next conversation.

    Results are counted by the token of a message: "accepted", "died" (received completely, but not
    answered), "refused" (for good), "refused for now".
    """

    allow_reuse_address = daemon_threads = True

    def __init__(self, conversation: type[Conversation]) -> None:
        super().__init__(("127.0.0.1", 0), conversation)
        self.faults: deque[tuple[str, str] | None] = deque()
        self.results: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.injected: Counter[str] = Counter()
        self.unread = 0  # closed without an answer before the end, which may have been sent
        self.open = 0  # conversations
        self.lock = Lock()
        Thread(target=self.serve_forever, args=[0.05], daemon=True).start()

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.server_address[1])

    def handle_error(self, *_: Any) -> None:
        """Ignore connections that the other side closed."""


class Conversation(StreamRequestHandler):
    """A conversation with at most one fault."""

    server: FailingServer
    timeout = 2 * HANG_S

    def handle(self) -> None:
        """Converse until one side closes the connection."""
        with self.server.lock:
            self._fault = self.server.faults.popleft() if self.server.faults else None
            self.server.open += 1
        try:
            with suppress(Closed, OSError):
                self.converse()
        finally:
            with self.server.lock:
                self.server.open -= 1

    def converse(self) -> None:
        """Receive messages."""
        raise NotImplementedError

    def refuse(self, *, for_now: bool) -> None:
        """Answer that a message is not accepted."""
        raise NotImplementedError

    def cut(self) -> None:
        """Send the beginning of an answer."""
        raise NotImplementedError

    def reach(self, step: str) -> None:
        """Inject the fault of a step, if there is one; a delay only delays."""
        if self._fault is None or self._fault[0] != step:
            return
        kind, self._fault = self._fault[1], None
        with self.server.lock:
            self.server.injected[f"{kind} at {step}"] += 1
        if kind == "delay":
            time.sleep(DELAY_S)
            return
        if kind == "hang":
            time.sleep(HANG_S)
            if step == "content":  # the other side has given up, but may have sent the end
                self._fault = ("end", "drop")
                return
        if kind == "cut":
            self.cut()
        if kind.startswith("refuse"):
            self.refuse(for_now=kind == "refuse for now")
        elif step != "end":
            with self.server.lock:
                self.server.unread += 1
        raise Closed

    def receive_end(self, token: str) -> None:
        """Count a complete message, and inject the fault of the end."""
        kind = self._fault[1] if self._fault else "delay"
        with self.server.lock:
            self.server.results[token][_RESULTS[kind]] += 1
        self.reach("end")
