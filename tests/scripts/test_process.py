"""Only processes of this checkout are stopped."""

import subprocess
from pathlib import Path

import pytest

from scripts.process import OwnProcess, wait_until


def program_name(process):
    return Path(f"/proc/{process.pid}/comm").read_text().strip()


@pytest.fixture
def sleeper(tmp_path):
    return OwnProcess("the sleeper", tmp_path, "sleeper.pid", ("sleep",))


@pytest.fixture
def run():
    """Start programs; end the remaining ones after the test."""
    started = []

    def run(*command, cwd):
        process = subprocess.Popen(command, cwd=cwd)
        started.append(process)
        wait_until(
            lambda: program_name(process) == command[0], otherwise="the program has not started"
        )
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
def test_a_stale_pid_file_does_not_stop_another_process(sleeper, run, command, folder):
    other = run(*command, cwd=sleeper.folder / folder)
    sleeper.pid_file.write_text(str(other.pid))

    sleeper.stop()

    assert sleeper.pid() is None
    assert other.poll() is None


@pytest.mark.parametrize("text", ["", "not a number", "999999999"])
def test_an_invalid_pid_file_is_ignored(sleeper, text):
    sleeper.pid_file.write_text(text)

    assert sleeper.pid() is None


def test_the_end_of_a_killed_process_includes_its_children(sleeper, run):
    child = run("sleep", "0.3", cwd=sleeper.folder)

    sleeper.wait_after_crash()

    assert child.wait(timeout=1) == 0


@pytest.mark.parametrize(
    ("pid", "stays"),
    [
        pytest.param("999999999", True, id="of no process: the server handles it"),
        pytest.param("1", False, id="of another process: the server would refuse to start"),
    ],
)
def test_a_stale_pid_file_does_not_prevent_the_next_start(sleeper, pid, stays):
    sleeper.pid_file.write_text(pid)

    sleeper.wait_after_crash()

    assert sleeper.pid_file.exists() is stays
