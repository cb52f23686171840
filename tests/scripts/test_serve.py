"""The portal's three programs live and end together."""

import asyncio
import os
import signal

import pytest

from scripts import serve
from scripts.checkout import Problem

UNTIL_STOPPED = ["sleep", "60"]


@pytest.fixture
def run():
    def run(**programs):
        asyncio.run(serve.serve(1, programs))  # where nothing answers

    return run


def test_lines_are_shown_behind_the_name_of_their_program(run, capsys):
    with pytest.raises(Problem):
        run(web=["sh", "-c", "echo one; echo two"], worker=UNTIL_STOPPED)

    assert capsys.readouterr().out == "   web | one\n   web | two\n"


def test_when_one_program_ends_the_others_do_too(run):
    with pytest.raises(Problem, match="worker ended by itself"):
        run(web=UNTIL_STOPPED, worker=["true"], beat=UNTIL_STOPPED)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_all_end_and_nothing_is_wrong(run, number):
    tell = f"kill -{number.value} {os.getpid()}; exec sleep 60"

    run(web=UNTIL_STOPPED, worker=["sh", "-c", tell])


def test_a_port_that_is_taken_gives_way_to_the_next_free_one():
    first = serve.free_port(20_000)
    with serve.socket.create_server((serve.HOST, first)):
        assert serve.free_port(first) > first
