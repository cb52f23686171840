"""The application starts inside jobs, numbered over the whole machine."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from simulator.clock import MICROSECONDS
from simulator.jobs import PILOTS, Ints, Job, Kind, Launch

_COMMANDS = {
    Kind.SIMULATION: "./solver.x -in input.nml",
    Kind.CHECKPOINTER: "./dns.x --checkpoint-interval 3300",
    Kind.SCANNER: "./walk_tree.py --stat",
    Kind.SMALL_FILES: "./per_item.sh items.lst",
    Kind.ENSEMBLE: "python run_member.py",
    Kind.ANALYSIS: "python analyse.py",
    Kind.PANDA: "./wrapper_mpi.py",
    Kind.PANDA_CRISIS: "./wrapper_mpi.py",
    Kind.PANDA_STRIPED: "./wrapper_mpi.py",
}
_PROLOGUE_S = 14  # from the job's start to its first launch
_EPILOGUE_S = 4  # from the last launch's end to the job's
_MEMBER_S = 1_200  # about how long a member of an ensemble runs
_GROUPS = 4  # of an ensemble's nodes, each with its own launches
_MOST_STEPS = 3  # launches of an ordinary job, one after the other
_SIGNALLED = 256  # PBS adds it to the number of the signal that ended a job
_STEP_S = 1_800  # a shorter job has one launch


@dataclass(frozen=True)
class _Start:
    started_us: int
    ended_us: int
    nodes: Ints
    job: Job


def add_launches(
    jobs: Sequence[Job], known: Mapping[Job, int], until: int, rng: np.random.Generator
) -> None:
    """Give every started job its launches.

    Args:
        jobs: all jobs.
        known: the apids of the first launches of two jobs; all others are numbered around them.
        until: when the logs end, epoch seconds.
        rng: the source of chance.
    """
    starts = sorted(
        (start for job in jobs for start in _starts(job, rng)),
        key=lambda start: start.started_us,
    )
    (early, early_apid), (late, late_apid) = sorted(
        (next(n for n, start in enumerate(starts) if start.job is job), apid)
        for job, apid in known.items()
    )
    # apids have gaps: other starts (interactive ones, failed ones) take numbers, too.
    step = (late_apid - early_apid) / (late - early)
    for n, start in enumerate(starts):
        if start.started_us < until * MICROSECONDS:
            apid = early_apid + round((n - early) * step)
            start.job.launches.append(_launch(apid, start, until))


def _launch(apid: int, start: _Start, until: int) -> Launch:
    job = start.job
    ended = start.ended_us < until * MICROSECONDS
    last = job.ended is not None and start.ended_us > (job.ended - _EPILOGUE_S - 1) * MICROSECONDS
    status = job.exit_status if last else 0
    return Launch(
        apid,
        start.started_us,
        start.ended_us if ended else None,
        start.nodes,
        _COMMANDS[job.kind],
        exit_code=min(status, 143),
        exit_signal=max(status - _SIGNALLED, 0),
    )


def _starts(job: Job, rng: np.random.Generator) -> Iterator[_Start]:
    if job.started is None:
        return
    end = job.ended or job.started + job.runtime_s
    ensemble = job.kind is Kind.ENSEMBLE
    for nodes in np.array_split(job.nodes, _GROUPS) if ensemble else [job.nodes]:
        first, last = job.started + _PROLOGUE_S, end - _EPILOGUE_S
        steps = _steps(job, last - first, rng)
        bounds = np.linspace(first, last, steps + 1) * MICROSECONDS
        for begin, finish in pairwise(bounds):
            jitter_us = int(rng.integers(100_000, 900_000))
            yield _Start(int(begin) + jitter_us, int(finish) - jitter_us, nodes, job)


def _steps(job: Job, length_s: int, rng: np.random.Generator) -> int:
    if job.kind is Kind.ENSEMBLE:
        return max(length_s // _MEMBER_S, 1)
    if job.kind in PILOTS or length_s < _STEP_S:
        return 1
    return int(rng.integers(1, _MOST_STEPS + 1))
