"""A small IMAP server over TLS, with one folder."""

import re
from contextlib import contextmanager
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread

from ioportal.core.env import Mailbox


class ImapServer(ThreadingTCPServer):
    """A server with messages by number, the numbers of seen messages, and the log-ins.

    A message that is None cannot be read.
    """

    daemon_threads = allow_reuse_address = True

    def __init__(self, context):
        super().__init__(("127.0.0.1", 0), _Session)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.messages, self.seen, self.log_ins = {}, set(), []

    def handle_error(self, *_):
        pass


class _Session(StreamRequestHandler):
    def handle(self):
        self._say("* OK ready")
        while line := self.rfile.readline().decode().strip():
            tag, command, *arguments = line.split(" ", 2)
            if command == "UID":
                command, *arguments = arguments[0].split(" ", 1)
            answer = getattr(self, f"_{command.lower()}", lambda _: "OK")(*arguments or [""])
            self._say(f"{tag} {answer} done")

    def _capability(self, _):
        self._say("* CAPABILITY IMAP4rev1")
        return "OK"

    def _login(self, arguments):
        self.server.log_ins.append(arguments)
        return "OK" if arguments == 'io "secret"' else "NO"

    def _search(self, _):
        unseen = sorted(self.server.messages.keys() - self.server.seen)
        self._say(f"* SEARCH {' '.join(map(str, unseen))}".strip())
        return "OK"

    def _fetch(self, arguments):
        number, length = map(
            int, re.fullmatch(r"(\d+) \(BODY.PEEK\[\]<0\.(\d+)>\)", arguments).groups()
        )
        if self.server.messages[number] is None:
            return "NO [SERVERBUG]"
        content = self.server.messages[number][:length]
        self.wfile.write(f"* 1 FETCH (UID {number} BODY[]<0> {{{len(content)}}}\r\n".encode())
        self.wfile.write(content)
        self._say(")")
        return "OK"

    def _store(self, arguments):
        self.server.seen.add(int(arguments.split()[0]))
        return "OK"

    def _say(self, line):
        self.wfile.write(f"{line}\r\n".encode())


@contextmanager
def running(settings, context):
    """Run a server whose folder is the mailbox of bounces."""
    with ImapServer(context) as server:
        Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        settings.BOUNCES_MAILBOX = Mailbox(
            host="127.0.0.1", port=server.server_address[1], user="io", password="secret",  # noqa: S106
            folder="INBOX", has_starttls=False,
        )  # fmt: skip
        try:
            yield server
        finally:
            server.shutdown()
