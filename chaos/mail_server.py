"""An SMTP server that fails on purpose."""

from __future__ import annotations

import re
from itertools import cycle

from chaos.failing_server import Conversation

STEPS = ("connect", "EHLO", "MAIL", "RCPT", "DATA", "content", "end")
_MESSAGE_ID = re.compile(rb"^Message-ID:\s+<([0-9a-f-]+)@", re.MULTILINE | re.IGNORECASE)


class SmtpConversation(Conversation):
    """Mails; their token is in the Message-ID."""

    _cut_answers = cycle(("2", "25", "4", "55", "250-queued\r\n", "queued\r\n"))

    def converse(self) -> None:
        """Answer commands."""
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

    def refuse(self, *, for_now: bool) -> None:
        """Answer with a code."""
        self._say("450 later" if for_now else "550 no")

    def cut(self) -> None:
        """Send the beginning of an answer."""
        self.wfile.write(next(self._cut_answers).encode())

    def _receive(self) -> None:
        content = b""
        while (line := self.rfile.readline()) != b".\r\n":
            if not line:
                return  # not complete: nothing to deliver
            content += line
            self.reach("content")
        found = _MESSAGE_ID.search(content)
        self.receive_end(found[1].decode() if found else "?")
        self._say("250 queued")

    def _answer(self, step: str, answer: str) -> None:
        self.reach(step)
        self._say(answer)

    def _say(self, answer: str) -> None:
        self.wfile.write(answer.encode() + b"\r\n")
