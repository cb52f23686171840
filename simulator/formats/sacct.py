"""Slurm accounting: ``SLURM_TIME_FORMAT=%s sacct --allusers --parsable2 --allocations``."""

from collections.abc import Iterable

import numpy as np

from simulator.batch.jobs import Ints, Job
from simulator.clock import local_time
from simulator.formats.durations import days_and_time

_COLUMNS = (
    "JobID|JobIDRaw|Cluster|Partition|Account|User|UID|Submit|Start|End|State|ExitCode|NNodes|"
    "NCPUS|TotalCPU|Timelimit|NodeList|JobName"
)
_TIMED_OUT = 271  # as in the workloads
_SIGNALLED = 128


def monthly_files(jobs: Iterable[Job], until: int) -> dict[str, str]:
    """Return the text of each export by its month: jobs that ended in it, in order of their ends.

    The last export also has the jobs that run or wait at the epoch second `until`.
    """
    ended = sorted((job for job in jobs if job.ended), key=lambda job: job.ended or until)
    unended = [job for job in jobs if job.ended is None]
    files: dict[str, list[str]] = {}
    for job in [*ended, *unended]:
        month = f"{local_time((job.ended or until) - 1):%Y-%m}"
        files.setdefault(month, [_COLUMNS]).append(_line(job))
    return {month: "\n".join(lines) + "\n" for month, lines in files.items()}


def text(jobs: Iterable[Job]) -> str:
    """Return one export of some jobs."""
    return "\n".join([_COLUMNS, *map(_line, jobs)]) + "\n"


def fold(nodes: Ints, prefix: str) -> str:
    """Return ascending node numbers as Slurm prints them: ``rhea[12-13,17]``."""
    breaks = np.flatnonzero(np.diff(nodes) != 1) + 1
    runs = [
        f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in np.split(nodes, breaks)
    ]
    if len(nodes) == 1:
        return f"{prefix}{runs[0]}"
    return f"{prefix}[{','.join(runs)}]"


def _line(job: Job) -> str:
    wall_s = (job.ended - job.started) if job.ended and job.started else 0
    return "|".join(
        (
            job.batch_id,
            job.batch_id,
            job.cluster,
            job.queue,
            job.user.project,
            job.user.name,
            f"{job.user.uid}",
            f"{job.submitted}",
            f"{job.started or 'Unknown'}",
            f"{job.ended or 'Unknown'}",
            _state(job),
            _exit_code(job),
            f"{job.node_count}",
            f"{job.cores}",
            days_and_time(round(wall_s * job.cores * job.busy_share)),
            days_and_time(job.limit_s),
            fold(job.nodes + 1, job.cluster) if job.started else "None assigned",
            job.name,
        )
    )


def _state(job: Job) -> str:
    if job.started is None:
        return "PENDING"
    if job.ended is None:
        return "RUNNING"
    if job.exit_status == _TIMED_OUT:
        return "TIMEOUT"
    return "FAILED" if job.exit_status else "COMPLETED"


def _exit_code(job: Job) -> str:
    """Return status and signal; a shell reports a signal by a status above 128."""
    if job.ended is None or job.exit_status == _TIMED_OUT:
        return "0:0"
    if job.exit_status > _SIGNALLED:
        return f"0:{job.exit_status - _SIGNALLED}"
    return f"{job.exit_status}:0"
