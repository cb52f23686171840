"""PBS/Torque accounting records, as on a Cray: exec_host is a service node."""

from collections.abc import Iterable, Iterator

from simulator.batch.jobs import Job
from simulator.clock import local_month, pbs_stamp
from simulator.site import CORES_PER_NODE


def monthly_files(jobs: Iterable[Job], until: int, since: int = 0) -> dict[str, str]:
    """Return the text of each accounting file by its name (the local month), records in time order.

    Records later than the epoch second `until` are omitted, as are records before `since`.
    """
    records = sorted(
        (moment, order, record)
        for job in jobs
        for order, (moment, record) in enumerate(_records(job))
        if since <= moment < until
    )
    files: dict[str, list[str]] = {}
    for moment, _, record in records:
        files.setdefault(local_month(moment), []).append(record)
    return {month: "\n".join(lines) + "\n" for month, lines in files.items()}


def _records(job: Job) -> Iterator[tuple[int, str]]:
    yield job.submitted, _record(job.submitted, "Q", job, f"queue={job.queue}")
    if job.started is not None:
        yield job.started, _record(job.started, "S", job, _started(job))
    if job.started is not None and job.ended is not None:
        yield job.ended, _record(job.ended, "E", job, f"{_started(job)} {_ended(job)}")


def _record(moment: int, kind: str, job: Job, text: str) -> str:
    return f"{pbs_stamp(moment)};{kind};{job.batch_id};{text}"


def _started(job: Job) -> str:
    return (
        f"user={job.user.name} group={job.user.project.lower()} account={job.user.project} "
        f"jobname={job.name} queue={job.queue} ctime={job.submitted} qtime={job.submitted} "
        f"etime={job.submitted} start={job.started} owner={job.user.name}@titan-ext1 "
        f"exec_host={job.batch_host}/0 login_node={job.batch_host} "
        f"Resource_List.neednodes={job.node_count}:ppn={CORES_PER_NODE} "
        f"Resource_List.nodect={job.node_count} "
        f"Resource_List.nodes={job.node_count}:ppn={CORES_PER_NODE} "
        f"Resource_List.walltime={_duration(job.limit_s)}"
    )


def _ended(job: Job) -> str:
    assert job.started is not None  # noqa: S101  (only ended jobs have an end record)
    assert job.ended is not None  # noqa: S101
    wall_s = job.ended - job.started
    return (
        f"session={10_000 + job.number % 20_000} total_execution_slots={job.cores} "
        f"unique_node_count={job.node_count} end={job.ended} Exit_status={job.exit_status} "
        f"resources_used.cput={_duration(round(wall_s * job.cores * job.busy_share))} "
        f"resources_used.mem={40_960 + job.number % 977}kb "
        f"resources_used.vmem={204_800 + job.number % 3_989}kb "
        f"resources_used.walltime={_duration(wall_s)}"
    )


def _duration(seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}"
