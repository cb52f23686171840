"""Constructed input: files of the simulator that are removed at the end."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from bench.figures import say

if TYPE_CHECKING:
    from collections.abc import Iterator

VAR = settings.BASE_DIR / "var"
TRACE_DAY = "2017-07-06"  # day of the simulator's constructed traces, from 14:00 UTC on
ODD_SHARE = 0.05
FIRST_JOB = 3_520_000  # of constructed job_stats


@contextmanager
def rpctrace(lines: int, nids: int) -> Iterator[Path]:
    """Provide a trace with a number of lines and clients."""
    with _constructed(
        f"a trace: {lines:,} lines, {nids:,} NIDs",
        *("rpctrace", "--lines", f"{lines}", "--nids", f"{nids}", "--odd", f"{ODD_SHARE}"),
    ) as path:
        yield path


@contextmanager
def job_stats(jobs: int, polls: int) -> Iterator[list[Path]]:
    """Provide dumps of an MDT with a number of jobs, each modified when it was read."""
    with _constructed(
        f"job_stats: {jobs:,} jobs, {polls:,} polls",
        *("job_stats", "--jobs", f"{jobs}", "--polls", f"{polls}"),
    ) as folder:
        yield sorted(folder.iterdir())


@contextmanager
def _constructed(what: str, *arguments: str) -> Iterator[Path]:
    VAR.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=VAR) as folder:
        path = Path(folder) / "input"
        say(f"writing {what}")
        subprocess.run(
            [sys.executable, "-m", "simulator", *arguments, "--out", str(path)],
            cwd=settings.BASE_DIR,
            check=True,
            stderr=subprocess.DEVNULL,
        )
        yield path
