"""A pytest plugin: the death of a worker ends the run, and no process outlives the run.

The run's main process adopts the orphans of a killed worker, so that it can end them. Programs that
tests start with `ENDS_WITH_PARENT` also end when the main process itself is killed.
"""

import ctypes
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

ENDS_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_POLL_S = 0.02


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        return  # a worker's orphans belong to the main process
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    config.add_cleanup(end_descendants)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """Report the test that a dead worker was running and end the run, other workers included."""
    if not error:
        return
    session = node.config.pluginmanager.get_plugin("dsession")
    with suppress(KeyError):  # it died before it had any test
        if test := session.sched.remove_node(node):
            session.handle_crashitem(test, node)
    end_descendants()
    raise pytest.Session.Interrupted(f"worker {node.gateway.id} died")


def end_descendants():
    """Kill the children of this process, their children and so on, until none is left."""
    while running := descendants(os.getpid()):
        for pid in running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def descendants(ancestor):
    """Return the process ids of all running descendants."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    generation, pids = {ancestor}, []
    while generation := {pid for pid, parent in parents.items() if parent in generation}:
        pids += generation
    return pids
