"""Peak memory of a process that loads a small and a large trace."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from django.conf import settings

from bench import inputs, portal
from bench.figures import Figure, say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GIGABYTES = (1, 8)
_LINES_PER_GB = 3_478_000  # of the simulator's lines
_NIDS = 300
_GOAL = 1.2
_KIB = 1024


def measure(scale: float) -> Iterator[Figure]:
    """Load one trace of each size."""
    peaks = []
    for gigabytes in GIGABYTES:
        with inputs.rpctrace(int(gigabytes * scale * _LINES_PER_GB), _NIDS) as trace:
            size = trace.stat().st_size / 1e9
            peaks.append(_peak_bytes(trace) / 1e6)
        say(f"{size:.1f} GB: peak {peaks[-1]:.0f} MB")
        yield Figure(
            f"memory_{gigabytes}gb", f"Peak memory, trace of {size:.1f} GB", peaks[-1], "MB"
        )
    small, large = peaks
    yield Figure(
        "memory_growth",
        f"Peak memory, trace of {GIGABYTES[1]} GB / {GIGABYTES[0]} GB",
        large / small,
        "x",
        at_most=_GOAL,
    )


def _peak_bytes(trace: Path) -> int:
    """Load a trace in a separate process; return its peak memory."""
    portal.clear_traces()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "ingest", "rpctrace", "--server", portal.SERVER, str(trace)],
        cwd=settings.BASE_DIR,
        env=os.environ | {"DATABASE_URL": portal.database_url()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    portal.clear_traces()
    return usage.ru_maxrss * _KIB
