"""The application starts inside jobs, numbered over the whole machine."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from simulator.batch import numbers
from simulator.batch.jobs import Ints, Job, Kind, Launch
from simulator.clock import MICROSECONDS, local

_COMMANDS = {
    Kind.SIMULATION: "./solver.x -in input.nml",
    Kind.CHECKPOINTER: "./dns.x --checkpoint-interval 3300",
    Kind.SCANNER: "./walk_tree.py --stat",
    Kind.SMALL_FILES: "./per_item.sh items.lst",
    Kind.ENSEMBLE: "python run_member.py",
    Kind.ANALYSIS: "python analyse.py",
    Kind.STORM: "./unpack_all.sh archive.lst",
    Kind.PANDA: "./wrapper_mpi.py",
}
_PROLOGUE_S = 14  # from the job's start to its first launch
_EPILOGUE_S = 4  # from the last launch's end to the job's
_MEMBER_S = 1_200  # typical run time of a member of an ensemble
_GROUPS = 4  # of an ensemble's nodes, each with its own launches
_MAX_STEPS = 3  # launches of an ordinary job, one after the other
_SIGNALLED = 256  # PBS adds this to the number of the signal that ended a job
_STEP_S = 1_800  # a shorter job has one launch
# apids have gaps: interactive and failed starts use numbers, too.
_APIDS_PER_S = 0.03
_APID_AT = {local(2017, 7, 5, "14:31:16"): 9_205_355, local(2017, 7, 5, "14:39:02"): 9_205_593}


@dataclass(frozen=True)
class _Start:
    started_us: int
    ended_us: int
    nodes: Ints
    job: Job


def add_launches(
    jobs: Sequence[Job], given: Mapping[int, Job], until: int, rng: np.random.Generator
) -> None:
    """Add launches to every started job.

    Args:
        jobs: all jobs.
        given: jobs with given apids; all others are numbered around them.
        until: end of the logs, epoch seconds.
        rng: random generator.
    """
    starts = sorted(
        (start for job in jobs for start in _starts(job, rng)),
        key=lambda start: start.started_us,
    )
    moments = np.array([start.started_us // MICROSECONDS for start in starts], dtype=np.int64)
    known_jobs = {job: apid for apid, job in given.items()}
    pins = [n for n, start in enumerate(starts) if start.job in known_jobs]
    anchors = _APID_AT | {int(moments[n]): known_jobs[starts[n].job] for n in pins}
    apids = numbers.growing(moments, anchors, _APIDS_PER_S, np.array(pins, dtype=np.int64))
    for apid, start in zip(apids.tolist(), starts, strict=True):
        if start.started_us < until * MICROSECONDS:
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
    if job.kind is Kind.PANDA or length_s < _STEP_S:
        return 1
    return int(rng.integers(1, _MAX_STEPS + 1))
