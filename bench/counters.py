"""job_stats of many jobs: the second read of an MDT, parsed, differenced, attributed, stored."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from django.db import connection

from bench import inputs, portal
from bench.figures import Figure, Way, in_turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOBS = 50_000
_FIRST_JOB = 3_520_000  # as in the simulator
_READS = (f"{inputs.TRACE_DAY}T14:00:00Z", f"{inputs.TRACE_DAY}T14:10:00Z")
_GOAL_S = 3


def measure(scale: float) -> Iterator[Figure]:
    """Time the second of two reads."""
    jobs = int(JOBS * scale)
    portal.record_jobs((_FIRST_JOB + n, f"c{n:05d}", 1) for n in range(jobs))
    portal.settle()
    with inputs.job_stats(jobs, 0) as first, inputs.job_stats(jobs, 1) as second:
        timed = in_turn(
            f"{jobs:,} jobs",
            {
                "second read": Way(
                    partial(_ingest, second, _READS[1]), prepare=partial(_only_first, first)
                )
            },
        )
    yield Figure(
        "job_stats",
        f"job_stats of {jobs:,} jobs: parsed, differenced, attributed, stored",
        median(timed.seconds["second read"]),
        "s",
        at_most=_GOAL_S,
    )


def _only_first(read: Path) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE telemetry_jobsnapshot, telemetry_iowindow, telemetry_coverage, "
            "ingest_dirtyreads, jobs_dirtystatistics"
        )
        cursor.execute("DELETE FROM ingest_segment_targets")
        cursor.execute("DELETE FROM ingest_segment WHERE format = 'job_stats'")
    _ingest(read, _READS[0])


def _ingest(read: Path, at: str) -> None:
    portal.ingest("job_stats", "--at", at, str(read))
