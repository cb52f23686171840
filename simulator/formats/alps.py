"""ALPS messages of a Cray XK: aprun's Starting and apsys' Finishing lines in RFC 5424 syslog."""

from collections.abc import Iterable, Iterator

import numpy as np

from simulator.batch.jobs import Ints, Job, Launch
from simulator.clock import MICROSECONDS, local_month, syslog_stamp

_BOOT = "p0-20170620t081433"


def monthly_files(jobs: Iterable[Job], until: int) -> dict[str, str]:
    """Return the text of each log by its local month, lines in time order; none after `until`."""
    lines = sorted(
        line
        for job in jobs
        for launch in job.launches
        for line in _lines(job, launch)
        if line[0] < until * MICROSECONDS
    )
    files: dict[str, list[str]] = {}
    for moment_us, line in lines:
        files.setdefault(local_month(moment_us // MICROSECONDS), []).append(line)
    return {month: "\n".join(text) + "\n" for month, text in files.items()}


def fold(nodes: Ints) -> str:
    """Return ascending node numbers as ALPS prints them: ``2258-2259,2263``."""
    breaks = np.flatnonzero(np.diff(nodes) != 1) + 1
    return ",".join(
        str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in np.split(nodes, breaks)
    )


def _lines(job: Job, launch: Launch) -> Iterator[tuple[int, str]]:
    ranks = len(launch.nodes) * 16
    yield (
        launch.started_us,
        _line(launch.started_us, job, "aprun", launch)
        + f"apid={launch.apid}, Starting, user={job.user.uid}, batch_id={job.batch_id}, "
        f'cmd_line="/opt/cray/alps/5.2.4-2.0502.9774.31.12.gem/bin/aprun -n {ranks} -N 16 '
        f'{launch.command} ", num_nodes={len(launch.nodes)}, node_list={fold(launch.nodes)}, '
        f'cwd="/lustre/atlas2/{job.user.project.lower()}/scratch/{job.user.name}/{job.name}"',
    )
    if launch.ended_us is not None:
        yield (
            launch.ended_us,
            _line(launch.ended_us, job, "apsys", launch)
            + f"apid={launch.apid}, Finishing, user={job.user.uid}, batch_id={job.batch_id}, "
            f"exit_code={launch.exit_code}, exitcode_array={launch.exit_code}, "
            f"exitsignal_array={launch.exit_signal}",
        )


def _line(moment_us: int, job: Job, process: str, launch: Launch) -> str:
    pid = 2_000 + launch.apid % 28_000 + (process == "apsys") * 4
    return (
        f"<150>1 {syslog_stamp(moment_us)} {job.batch_cname} {process} {pid} {_BOOT} "
        "[alps_msgs@34] "
    )
