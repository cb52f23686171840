"""A minimal portal with the ingest API, and agents as real processes that deliver to it."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest

from tests.processes import ENDS_WITH_PARENT

REPOSITORY = Path(__file__).parents[3]
TOKEN = "a token of mds1"  # noqa: S105  (it opens nothing)


class Portal:
    """Stores each batch once, by its key, and records every delivery."""

    def __init__(self):
        self.batches = {}  # by key: description, rows
        self.deliveries = []  # headers and description
        self.answers = []  # to return before normal operation: status, headers, body
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def table(self):
        """All rows."""
        return pl.concat([rows for _, rows in self.batches.values()])

    def account(self, name="lines"):
        return sum(batch["account"][name] for batch, _ in self.batches.values())

    def take(self, headers, body):
        """Return status, headers and body of the answer."""
        message = message_from_bytes(
            f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode() + body
        )
        parts = {
            p.get_param("name", header="content-disposition"): p for p in message.get_payload()
        }
        batch = json.loads(parts["batch"].get_payload(decode=True))
        rows = pl.read_ipc_stream(io.BytesIO(parts["rows"].get_payload(decode=True)))
        key = headers["Idempotency-Key"]
        assert key == f"{batch['stream']}/{batch['sequence']}"
        assert parts["rows"].get_content_type() == "application/vnd.apache.arrow.stream"
        self.deliveries.append((headers, batch))
        if self.answers:
            return self.answers.pop(0)
        if headers["Authorization"] != f"Token {TOKEN}":
            return 401, {}, {"code": "unknown_token"}
        if key in self.batches:
            is_same = self.batches[key][1].equals(rows)
            return (202, {}, {"already": True}) if is_same else (409, {}, {"code": "other_content"})
        self.batches[key] = (batch, rows)
        return 202, {}, {"already": False}

    def _handler(portal):  # noqa: N805  (self of the inner class is the handler)
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers, answer = portal.take(self.headers, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *args):
                pass

        return Handler


class Agent:
    """A real agent, to start, stop and kill."""

    def __init__(self, folder, portal):
        self.folder = folder
        self.state = folder / "state"
        self.config = folder / "agent.toml"
        (folder / "token").touch(mode=0o600)
        (folder / "token").write_text(TOKEN + "\n")
        self.config.write_text(f'[portal]\nurl = "{portal.url}"\n[agent]\nstate = "{self.state}"\n')
        self.log = folder / "agent.log"

    def configure(self, text):
        """Add sources (or other sections) to the configuration."""
        with self.config.open("a") as config:
            config.write(text)

    def start(self):
        with self.log.open("a") as log:
            return subprocess.Popen(
                [
                    *ENDS_WITH_PARENT,
                    sys.executable,
                    "-m",
                    "collectors",
                    "run",
                    "--config",
                    self.config,
                ],
                cwd=REPOSITORY,
                stderr=log,
                env=os.environ | {"POLARS_MAX_THREADS": "1"},
            )

    @contextmanager
    def running(self):
        """Run the agent, and stop it with SIGTERM at the end."""
        process = self.start()
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0, self.log.read_text()

    def events(self):
        """Return the logged events."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def portal():
    portal = Portal()
    yield portal
    portal.close()


@pytest.fixture
def agent(tmp_path, portal):
    return Agent(tmp_path, portal)


@pytest.fixture
def never():
    """A stop event that is never set."""
    return threading.Event()
