"""The program that prints the report of a job, against a real HTTP server."""

import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

PROGRAM = Path(__file__).parents[2] / "collectors" / "job_report.py"


@contextmanager
def portal(*answers):
    """Serve these answers (status, body), then repeat the last; yield URL and requests."""
    requests = []
    remaining = list(answers)

    class Portal(BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append((self.path, dict(self.headers)))
            status, body = remaining.pop(0) if len(remaining) > 1 else remaining[0]
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/other")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Portal)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def token(tmp_path):
    path = tmp_path / "token"
    path.write_text("ioportal_secret\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def run(token):
    """Run the program alone, as on a compute node."""

    def program(url, *arguments, job="3567126"):
        options = ["--url", url, "--cluster", "anvil", "--token-file", token, *arguments]
        return subprocess.run(
            [sys.executable, "-I", PROGRAM, job, *options],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    return program


@pytest.mark.parametrize(
    ("job", "path"),
    [("3567126", "3567126"), ("77_4", "77%5B4%5D"), ("77[4]", "77%5B4%5D"), ("a/b", "a%2Fb")],
)
def test_the_report_is_printed(run, job, path):
    with portal((200, "Job 3567126 on anvil\n")) as (url, requests):
        done = run(url, job=job)

    assert (done.returncode, done.stdout, done.stderr) == (0, "Job 3567126 on anvil\n", "")
    [(address, headers)] = requests
    assert address == f"/api/v1/jobs/anvil/{path}/report"
    assert headers["Authorization"] == "Token ioportal_secret"


def test_it_waits_for_the_report(run):
    with portal((409, "{}"), (200, "ready\n")) as (url, requests):
        done = run(url, "--wait", "0.5")

    assert (done.returncode, done.stdout, len(requests)) == (0, "ready\n", 2)


@pytest.mark.parametrize(("status", "exit_status"), [(404, 1), (409, 1), (503, 1), (401, 3)])
def test_without_a_report_the_exit_status_says_why(run, status, exit_status):
    with portal((status, "{}")) as (url, _):
        done = run(url)

    assert (done.returncode, done.stdout) == (exit_status, "")
    assert f"the portal answers {status}" in done.stderr


def test_the_token_follows_no_redirect(run):
    with portal((302, "")) as (url, requests):
        done = run(url)

    assert done.returncode == 1
    assert len(requests) == 1


def test_an_unreachable_portal(run):
    assert run("http://127.0.0.1:1").returncode == 1


@pytest.mark.parametrize(
    ("url", "mode", "message"),
    [
        ("http://io.example.org", 0o600, "must start with https://"),
        ("http://127.0.0.1:1", 0o644, "others may read"),
        ("http://127.0.0.1:1", None, "No such file"),
    ],
)
def test_unsafe_options_are_refused(run, token, url, mode, message):
    if mode is None:
        token.unlink()
    else:
        token.chmod(mode)

    done = run(url)

    assert done.returncode == 2
    assert message in done.stderr
