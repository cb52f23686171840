"""A real HTTP server in a thread, with faults on demand."""

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Receiver(ThreadingHTTPServer):
    """What a server received, and the faults of its next requests.

    A fault is a status, "dies" (closes before the end of a request), "dies after it", a function
    that writes to the connection, or a pair of a status and a body.
    """

    daemon_threads = True

    def __init__(self, context=None):
        super().__init__(("127.0.0.1", 0), _Request)
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        scheme = "https" if context else "http"
        self.url = f"{scheme}://127.0.0.1:{self.server_address[1]}/hook?x=1"
        self.received = []  # path, headers and body of complete requests
        self.faults = []

    def handle_error(self, *_):
        pass


class _Request(BaseHTTPRequestHandler):
    def do_POST(self):
        fault = self.server.faults.pop(0) if self.server.faults else 204
        if fault == "dies":
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, self.headers, body))
        if callable(fault):
            fault(self.wfile)
        elif fault != "dies after it":
            status, answer = fault if isinstance(fault, tuple) else (fault, b"")
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(answer)

    def log_message(self, *_):
        pass


@contextmanager
def running(context=None):
    """Run a server, with a context over TLS."""
    with Receiver(context) as server:
        Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
