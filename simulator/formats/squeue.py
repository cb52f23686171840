"""Slurm's queue: ``squeue --all --format='%i|%A|%P|%a|%u|%V|%S|%T|%M|%l|%D|%C|%N|%j'``.

Times are in the format ``SLURM_TIME_FORMAT=%s``.
"""

from collections.abc import Iterable

from simulator.batch.jobs import Job
from simulator.formats.durations import days_and_time
from simulator.formats.sacct import fold

_COLUMNS = (
    "JOBID|JOBID|PARTITION|ACCOUNT|USER|SUBMIT_TIME|START_TIME|STATE|TIME|TIME_LIMIT|NODES|CPUS|"
    "NODELIST|NAME"
)


def text(jobs: Iterable[Job], now: int) -> str:
    """Return the queue at a given time: waiting and running jobs."""
    return "\n".join([_COLUMNS, *(_line(job, now) for job in jobs)]) + "\n"


def _line(job: Job, now: int) -> str:
    runs_since = job.started if job.started is not None and job.started <= now else None
    return "|".join(
        (
            job.batch_id,
            job.batch_id,
            job.queue,
            job.user.project,
            job.user.name,
            f"{job.submitted}",
            "N/A" if runs_since is None else f"{runs_since}",
            "PENDING" if runs_since is None else "RUNNING",
            days_and_time(0 if runs_since is None else now - runs_since),
            days_and_time(job.limit_s),
            f"{job.node_count}",
            f"{job.cores}",
            "" if runs_since is None else fold(job.nodes + 1, job.cluster),
            job.name,
        )
    )
