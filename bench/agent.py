"""The agent on a growing trace, beside mawk: in a process of its own, with its peak of memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from bench import inputs, traces
from bench.figures import Figure, Way, in_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

LINES = 5_000_000
_NIDS = 300
_GOAL, _GOAL_MB = 1.5, 500
_KIB = 1024


def measure(scale: float) -> Iterator[Figure]:
    """Time how long an agent takes to have on its disk what a log says."""
    lines = int(LINES * scale)
    with inputs.rpctrace(lines, _NIDS) as trace, tempfile.TemporaryDirectory() as folder:
        agent = _Agent(trace, Path(folder, "state"))
        timed = in_turn(
            "agent",
            {
                "mawk": Way(partial(traces.group, trace)),
                "agent": Way(agent.read, prepare=agent.start),
            },
        )
    of = f"Agent, growing RPC trace, {_NIDS:,} NIDs"
    yield Figure(
        "agent_vs_mawk", f"{of} / mawk", timed.speed_up("agent", "mawk"), "x", at_least=_GOAL
    )
    yield Figure("agent", of, lines / timed.of("agent"), "lines/s")
    yield Figure(
        "agent_memory", f"{of}: peak memory", agent.peak_bytes / 1e6, "MB", at_most=_GOAL_MB
    )


class _Agent:
    """An agent's reader, in a process that runs already when there is something to read."""

    def __init__(self, trace: Path, state: Path) -> None:
        self._trace = trace
        self._state = state
        self.peak_bytes = 0

    def start(self) -> None:
        """Have a process ready that has read nothing."""
        shutil.rmtree(self._state, ignore_errors=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.reading", str(self._trace), str(self._state)],
            cwd=settings.BASE_DIR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout  # noqa: S101  (it is a pipe)
        self._process.stdout.readline()

    def read(self) -> None:
        """Have it read the trace to its end, and note the most memory that it had."""
        assert self._process.stdin  # noqa: S101  (it is a pipe)
        self._process.stdin.close()
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        if self._process.returncode:
            raise subprocess.CalledProcessError(self._process.returncode, self._process.args)
        self.peak_bytes = max(self.peak_bytes, usage.ru_maxrss * _KIB)
