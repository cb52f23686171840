"""job_stats of an MDT: the second read of many jobs, and a history of reads of some jobs."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from django.db import connection

from bench import inputs, portal
from bench.figures import Figure, Way, in_turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

JOBS = 50_000
READS, JOBS_OF_READS = 536, 60
_GOAL_S = 3
_READS_GOAL_S = 5


def measure(scale: float) -> Iterator[Figure]:
    """Time the second of two reads, and many reads."""
    jobs, reads = int(JOBS * scale), int(READS * scale)
    portal.record_jobs((inputs.FIRST_JOB + n, f"c{n:05d}", 1) for n in range(jobs))
    portal.settle()
    with inputs.job_stats(jobs, 2) as (first, second):
        timed = in_turn(
            f"{jobs:,} jobs",
            {"second read": Way(partial(_ingest, [second]), prepare=partial(_only, [first]))},
        )
    yield Figure(
        "job_stats",
        f"job_stats of {jobs:,} jobs: parsed, differenced, attributed, stored",
        median(timed.seconds["second read"]),
        "s",
        at_most=_GOAL_S,
    )
    with inputs.job_stats(JOBS_OF_READS, reads) as files:
        timed = in_turn(
            f"{reads:,} reads", {"reads": Way(partial(_ingest, files), prepare=partial(_only, []))}
        )
    yield Figure(
        "job_stats_reads",
        f"{reads:,} reads of job_stats, {JOBS_OF_READS} jobs each: file to attributed rows",
        median(timed.seconds["reads"]),
        "s",
        at_most=_READS_GOAL_S * scale,
    )


def _only(reads: Sequence[Path]) -> None:
    """Remove all reads but some."""
    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE telemetry_jobsnapshot, telemetry_iowindow, telemetry_coverage, "
            "ingest_dirtyreads, jobs_dirtystatistics"
        )
        cursor.execute("DELETE FROM ingest_segment_targets")
        cursor.execute("DELETE FROM ingest_segment WHERE format = 'job_stats'")
    if reads:
        _ingest(reads)


def _ingest(reads: Sequence[Path]) -> None:
    portal.ingest("job_stats", *map(str, reads))
