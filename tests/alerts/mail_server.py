"""A real SMTP server in a thread, with faults on demand."""

import socket
from contextlib import contextmanager
from email import message_from_bytes, policy

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult


class MailServer:
    """What a server accepted, and the faults of its next conversations.

    A fault is one of: an answer to RCPT ("450 busy"), "dies" (closes before the end of a message),
    "dies after DATA" (closes before its answer), or an answer to DATA after "DATA: ".
    """

    def __init__(self):
        self.accepted = []
        self.received = []  # completely; some of them without an answer
        self.faults = []
        self.log_ins = []
        self.before_answer = lambda: None  # called with each complete mail

    def log_in(self, _server, _session, _envelope, _mechanism, data):
        """Accept the password "secret"."""
        self.log_ins.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=data.password == b"secret", handled=False)

    async def handle_RCPT(  # noqa: N802  (names of aiosmtpd)
        self, server, _session, envelope, address, _options
    ):
        if self.faults and not self.faults[0].startswith(("dies after", "DATA")):
            fault = self.faults.pop(0)
            if fault == "dies":
                server.transport.abort()
            return fault
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, _session, envelope):  # noqa: N802
        message = message_from_bytes(envelope.content, policy=policy.default)
        self.received.append(message)
        self.before_answer()
        if self.faults:
            fault = self.faults.pop(0)
            if fault == "dies after DATA":
                server.transport.abort()
            return fault.removeprefix("DATA: ")
        self.accepted.append((envelope.rcpt_tos, message))
        return "250 Queued"


@contextmanager
def running(settings, starttls=None, tls=None):
    """Run a mail server that the portal's settings name.

    Args:
        settings: of the portal.
        starttls: context of STARTTLS; None: the server does not offer it.
        tls: context of TLS from the beginning.
    """
    server = MailServer()
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    controller = Controller(
        server,
        hostname="127.0.0.1",
        port=port,
        tls_context=starttls,
        authenticator=server.log_in,
        auth_require_tls=starttls is not None,
        ssl_context=tls,
    )
    controller.start()
    try:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
        settings.EMAIL_TIMEOUT = 5
        yield server
    finally:
        controller.stop()
