"""Load outside jobs: log-in nodes, a scanning daemon, kernel threads, health checks."""

from collections.abc import Iterable, Iterator

import numpy as np

from simulator.activity import Burst, Source, Transfers
from simulator.batch.jobs import Ints, Job, Kind
from simulator.plan import Plan
from simulator.site import LOGIN_NIDS, POLICY_NID, client

_LOGIN_PROCESSES = (
    "bash.10233",
    "ls.10871",
    "rsync.11902",
    "vim.10544",
    "python.13020",
    "tar.12260",
    "make.13105",
    "scp.10699",
    "hepprod-sync.15311",
)
_KERNEL_THREADS = ("kworker/3:1.0", "kworker/u66:2.0", "ptlrpcd_03_12.0")
_POLICY_PER_S = {"getattr": 48.0, "getxattr": 9.0, "open": 1.2, "close": 1.2}
_NAMELESS_PER_S = {"getattr": 0.11, "statfs": 0.05}
_HEALTH_CHECKED = 6  # one node in this many checks its mounts
_WRITING_BACK = 40  # nodes with a kernel thread that sends its name
_HEALTH_CHECKS_PER_S = {"statfs": 6.0, "getattr": 7.5}
_SLICE_S = 6 * 3_600  # steady activity is divided into slices of this length
_MIB = 1_024 * 1_024


def sources(
    jobs: Iterable[Job], plan: Plan, rng: np.random.Generator, steady_share: float = 1.0
) -> list[Source]:
    """Return all sources of load other than jobs.

    Steady activity has `steady_share` of its usual rate.
    """
    start, end = plan.start, plan.end
    healthy = _some_nodes(plan, plan.node_count // _HEALTH_CHECKED, rng)
    logins = np.array([client(nid) for nid in LOGIN_NIDS])
    loads = [
        _sessions(process, rng.choice(logins, 1), start, end, rng) for process in _LOGIN_PROCESSES
    ]
    loads += [
        _steady(
            job_id,
            clients,
            _slices(start, end),
            {kind: rate * steady_share for kind, rate in per_s.items()},
        )
        for job_id, clients, per_s in (
            ("rbh-scan.0", np.array([client(POLICY_NID)]), _POLICY_PER_S),
            ("", logins, _NAMELESS_PER_S),
            (None, healthy, _HEALTH_CHECKS_PER_S),
        )
    ]
    loads += [_kernel_thread(thread, plan, rng) for thread in _KERNEL_THREADS]
    for job in jobs:
        if job.kind is Kind.SCANNER and job.started is not None:
            loads += _statahead(job, job.started, end, rng)
    return loads


def _some_nodes(plan: Plan, count: int, rng: np.random.Generator) -> Ints:
    return np.sort(rng.choice(plan.node_count, count, replace=False))


def _slices(start: int, end: int) -> list[tuple[int, int]]:
    return [(begin, min(begin + _SLICE_S, end)) for begin in range(start, end, _SLICE_S)]


def _steady(
    job_id: str | None, clients: Ints, spans: list[tuple[int, int]], per_s: dict[str, float]
) -> Source:
    return Source(
        job_id,
        clients,
        tuple(
            Burst(a, b, {kind: int(rate * (b - a)) for kind, rate in per_s.items()})
            for a, b in spans
        ),
    )


def _sessions(
    process: str, clients: Ints, start: int, end: int, rng: np.random.Generator
) -> Source:
    """Return the work of a user on a log-in node: an hour at irregular times."""
    bursts = []
    moment = start + int(rng.integers(14_000))
    while moment < end - 5_000:
        length = int(rng.integers(600, 4_000))
        opens = int(length * rng.uniform(0.1, 2.5))
        bursts.append(
            Burst(
                moment,
                moment + length,
                {
                    "open": opens,
                    "close": opens * 4 // 5,
                    "getattr": opens * 3,
                    "mknod": opens // 12,
                    "unlink": opens // 20,
                    "samedir_rename": opens // 30,
                    "setattr": opens // 25,
                },
                reads=Transfers(opens, 256 * 1_024),
                writes=Transfers(opens // 2, _MIB),
            )
        )
        moment += length + int(rng.integers(4_000, 30_000))
    return Source(process, clients, tuple(bursts))


def _kernel_thread(thread: str, plan: Plan, rng: np.random.Generator) -> Source:
    """Return write-back by a kernel thread of some nodes on behalf of a user."""
    bursts = tuple(
        Burst(a, b, {"getattr": 300, "setattr": 400}, writes=Transfers(9_000, _MIB))
        for a, b in _slices(plan.start, plan.end)
    )
    return Source(thread, _some_nodes(plan, _WRITING_BACK, rng), bursts)


def _statahead(job: Job, started: int, end: int, rng: np.random.Generator) -> Iterator[Source]:
    """Yield the stat-ahead threads of a scanner: they carry no job id."""
    last = min(started + job.runtime_s, job.ended or end)
    for n, begin in enumerate(range(started + 60, last - 400, 2_400)):
        yield Source(
            f"ll_sa_{4_000 + (7 * job.number + n) % 28_000}.0",
            rng.choice(job.nodes, 1),
            (Burst(begin, begin + 300, {"getattr": int(rng.integers(2_000, 20_000))}),),
        )
