"""The agent on a growing trace, compared with mawk: in its own process, with peak memory."""

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
    """Time an agent until the data of a log is on its disk."""
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
    prefix = f"Agent, growing RPC trace, {_NIDS:,} NIDs"
    yield Figure(
        "agent_vs_mawk", f"{prefix} / mawk", timed.speed_up("agent", "mawk"), "x", at_least=_GOAL
    )
    yield Figure("agent", prefix, lines / timed.median_s("agent"), "lines/s")
    yield Figure(
        "agent_memory", f"{prefix}: peak memory", agent.peak_bytes / 1e6, "MB", at_most=_GOAL_MB
    )


class _Agent:
    """An agent's reader in a process that is started before the measurement."""

    def __init__(self, trace: Path, state: Path) -> None:
        self._trace = trace
        self._state = state
        self.peak_bytes = 0

    def start(self) -> None:
        """Start a process that has read nothing."""
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
        """Read the trace to its end, and record the peak memory."""
        assert self._process.stdin  # noqa: S101  (it is a pipe)
        self._process.stdin.close()
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        if self._process.returncode:
            raise subprocess.CalledProcessError(self._process.returncode, self._process.args)
        self.peak_bytes = max(self.peak_bytes, usage.ru_maxrss * _KIB)
