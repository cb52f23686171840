"""Every format that can be read, by the name that people call it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from collectors.batch import alps, pbs, sacct, squeue
from collectors.lustre import job_stats, md_stats, req_history, rpc_trace, service_stats
from collectors.panda import jobs as panda
from collectors.parsed import Parsed
from collectors.source import Lines, Source
from collectors.tables import (
    JOB_COUNTERS,
    JOBS,
    LAUNCHES,
    RPC_WINDOWS,
    SERVICE_COUNTERS,
    TARGET_COUNTERS,
    WORKLOAD_JOBS,
    Table,
)

_UTC = ZoneInfo("UTC")


@dataclass(frozen=True)
class Origin:
    """What a text does not say itself."""

    zone: ZoneInfo = _UTC  # of local times
    columns: Sequence[str] = sacct.COLUMNS  # of an export without a header
    exec_hosts_are_compute_nodes: bool = True


@dataclass(frozen=True)
class Format:
    """How a text is read, and what becomes of it."""

    table: Table
    parse: Callable[[Source, Origin], Iterator[Parsed]]
    has_local_times: bool = False


def _pbs(lines: Lines, origin: Origin) -> Iterator[Parsed]:
    return pbs.parse(
        lines,
        origin.zone,
        exec_hosts_are_compute_nodes=origin.exec_hosts_are_compute_nodes,
    )


def _alps(lines: Lines, _: Origin) -> Iterator[Parsed]:
    return alps.parse(lines)


FORMATS = {
    "rpctrace": Format(RPC_WINDOWS, lambda source, _: rpc_trace.parse(source)),
    "req_history": Format(RPC_WINDOWS, lambda source, _: req_history.parse(source)),
    "job_stats": Format(JOB_COUNTERS, lambda source, _: job_stats.parse(source)),
    "md_stats": Format(TARGET_COUNTERS, lambda source, _: md_stats.parse(source)),
    "mds_stats": Format(SERVICE_COUNTERS, lambda source, _: service_stats.parse(source)),
    "sacct": Format(
        JOBS,
        lambda source, origin: sacct.parse(source, origin.zone, origin.columns),
        has_local_times=True,
    ),
    "squeue": Format(
        JOBS, lambda source, origin: squeue.parse(source, origin.zone), has_local_times=True
    ),
    "pbs": Format(JOBS, _pbs, has_local_times=True),
    "alps": Format(LAUNCHES, _alps),
    "panda": Format(WORKLOAD_JOBS, lambda source, _: panda.parse(source)),
}

# How records are read that are appended to a log, wherever it is cut between two lines.
RECORDS = {"pbs": _pbs, "alps": _alps}
