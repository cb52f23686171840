"""What this checkout started it may stop, and nothing else."""

import subprocess
from pathlib import Path

import pytest

from scripts.process import OwnProcess, wait_until


def name_of(process):
    return Path(f"/proc/{process.pid}/comm").read_text().strip()


@pytest.fixture
def sleeper(tmp_path):
    return OwnProcess("the sleeper", tmp_path, "sleeper.pid", ("sleep",))


@pytest.fixture
def run():
    """Start programs as somebody's; end those that a test leaves."""
    started = []

    def run(*command, cwd):
        process = subprocess.Popen(command, cwd=cwd)
        started.append(process)
        wait_until(lambda: name_of(process) == command[0], otherwise="it is still a copy of us")
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


def test_a_process_in_its_folder_is_recognised_and_stopped(sleeper, run):
    process = run("sleep", "60", cwd=sleeper.folder)
    sleeper.pid_file.write_text(f"{process.pid}\nand more, as PostgreSQL writes\n")

    assert sleeper.pid() == process.pid

    sleeper.stop()

    assert process.wait() != 0


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        pytest.param(("sleep", "60"), "/", id="the same program elsewhere"),
        pytest.param(("tail", "-f", "/dev/null"), "", id="another program in the folder"),
    ],
)
def test_a_stale_pid_file_harms_no_other_process(sleeper, run, command, folder):
    other = run(*command, cwd=sleeper.folder / folder)
    sleeper.pid_file.write_text(str(other.pid))

    sleeper.stop()

    assert sleeper.pid() is None
    assert other.poll() is None


@pytest.mark.parametrize("text", ["", "not a number", "999999999"])
def test_a_pid_file_of_nonsense_is_no_process(sleeper, text):
    sleeper.pid_file.write_text(text)

    assert sleeper.pid() is None


def test_the_children_of_a_killed_process_are_waited_for(sleeper, run):
    child = run("sleep", "0.3", cwd=sleeper.folder)

    sleeper.forget_crash()

    assert child.wait(timeout=1) == 0


@pytest.mark.parametrize(
    ("pid", "stays"),
    [
        pytest.param("999999999", True, id="of no process: the server sees that itself"),
        pytest.param("1", False, id="of another process: the server would refuse to start"),
    ],
)
def test_a_stale_pid_file_does_not_hinder_the_next_start(sleeper, pid, stays):
    sleeper.pid_file.write_text(pid)

    sleeper.forget_crash()

    assert sleeper.pid_file.exists() is stays
