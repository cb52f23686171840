"""The portal's three programs start and end together."""

import asyncio
import os
import signal
import sys

import pytest

from scripts import serve
from scripts.checkout import Problem, say

UNTIL_STOPPED = ["sleep", "60"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "LOGS", tmp_path)

    def run(port=1, followers=None, **programs):  # no server listens there
        asyncio.run(serve.serve(port, programs, followers))

    return run


def test_the_terminal_shows_only_the_address_and_the_log_in(run, tmp_path, monkeypatch, capfd):
    port = serve.free_port(20_000)
    login = tmp_path / "login"
    login.write_text("admin secret\nalice hidden\n")
    monkeypatch.setattr(serve, "DEMO_LOGIN", login)
    # Ends this test after the log-in is printed.
    monkeypatch.setattr(
        serve, "say", lambda text: (say(text), "alice" in text and os.kill(os.getpid(), 15))
    )

    run(
        port,
        web=[sys.executable, "-m", "http.server", "--bind", serve.HOST, str(port)],
        agent=["sh", "-c", "echo one; echo two >&2; exec sleep 60"],
    )

    output = capfd.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        f"==> Starting the portal, with logs in {tmp_path}",
        f"==> The portal is at http://127.0.0.1:{port}/ (Ctrl-C or `make stop` ends it)",
        "==> Log in as admin with the password secret",
        "==> Log in as alice with the password hidden",
    ]
    assert (tmp_path / "agent.log").read_text() == "one\ntwo\n"


def test_the_portal_is_served_while_and_after_the_past_year_is_loaded(
    run, tmp_path, monkeypatch, capfd
):
    port = serve.free_port(20_000)
    monkeypatch.setattr(serve, "DEMO_LOGIN", tmp_path / "none")
    monkeypatch.setattr(serve, "PROGRESS", tmp_path / "progress.json")
    monkeypatch.setattr(serve, "STATUS_EVERY_S", 0.2)
    progress = '{"status": "Loading the simulated year: 34 %"}'
    year = f"echo '{progress}' > {tmp_path}/progress.json; sleep 1; exit 3"
    # Ends this test after the last message.
    monkeypatch.setattr(
        serve, "say", lambda text: (say(text), "not loaded" in text and os.kill(os.getpid(), 15))
    )

    run(
        port,
        followers={"year": ["sh", "-c", year]},
        web=[sys.executable, "-m", "http.server", "--bind", serve.HOST, str(port)],
    )

    lines = capfd.readouterr().err.splitlines()
    assert lines[2] == "==> Loading the simulated year: 34 %"
    assert lines[-1] == (
        f"==> The simulated year was not loaded, see {tmp_path}/year.log. `make serve` continues."
    )


def test_the_end_of_one_program_stops_the_others_and_shows_its_log(run, tmp_path):
    lines = "seq 100; echo 'out of memory' >&2"

    with pytest.raises(Problem) as problem:
        run(web=UNTIL_STOPPED, worker=["sh", "-c", lines], beat=UNTIL_STOPPED)

    problem_lines = str(problem.value).splitlines()
    assert problem_lines[0] == (
        f"worker ended unexpectedly, so the others were stopped, see {tmp_path}/worker.log:"
    )
    assert problem_lines[1:] == [*map(str, range(87, 101)), "out of memory"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all_programs(run, number):
    kill = f"kill -{number.value} {os.getpid()}; exec sleep 60"

    run(web=UNTIL_STOPPED, worker=["sh", "-c", kill])


def test_a_used_port_is_replaced_by_the_next_free_port():
    first = serve.free_port(20_000)
    with serve.socket.create_server((serve.HOST, first)):
        assert serve.free_port(first) > first
