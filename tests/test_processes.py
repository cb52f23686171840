"""The death of a worker, in a separate test run."""

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.processes import ENDS_WITH_PARENT

TESTS = """
import os, signal, subprocess, sys, time
from pathlib import Path

def child():
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    Path(f"{process.pid}.started").touch()

def test_in_a_worker_that_is_killed():
    child()
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)

def test_in_another_worker():
    child()
    time.sleep(600)
"""


def test_a_killed_worker_ends_the_run_with_all_processes_and_its_test_is_named(tmp_path):
    (tmp_path / "test_workers.py").write_text(TESTS)
    plugins = ["-p", "xdist", "-p", "tests.processes"]
    workers = ["--numprocesses=2", "--max-worker-restart=0", "--rootdir=."]

    run = subprocess.run(
        [*ENDS_WITH_PARENT, sys.executable, "-m", "pytest", *plugins, *workers],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert run.returncode == 2, run.stdout
    assert "crashed while running 'test_workers.py::test_in_a_worker_that_is_killed'" in run.stdout
    assert "1 failed in" in run.stdout
    children = [path.stem for path in tmp_path.glob("*.started")]
    assert len(children) == 2
    assert not [pid for pid in children if is_running(pid)]


def is_running(pid):
    try:
        state = Path("/proc", pid, "stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
