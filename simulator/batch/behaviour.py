"""Activity of each kind of job on the filesystem during its run."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from simulator import story_storm
from simulator.activity import EVEN_SPREAD, Burst, Source, Transfers
from simulator.batch.jobs import Demand, Job, Kind
from simulator.site import OSTS
from simulator.story import Era

_KIB = 1_024
_MIB = 1_024 * _KIB
_LARGEST_REQUEST = 16 * _MIB
# Between output bursts: long enough for an idle entry to be dropped and observed as missing.
_OUTPUT_EVERY_S = (1_900, 3_600)


def source(job: Job, rng: np.random.Generator) -> Source:
    """Return a started job as seen by the filesystem.

    Raises:
        ValueError: the job has not started.
    """
    if job.started is None:
        raise ValueError(f"job {job.batch_id} has not started")
    bursts = [part for burst in _bursts(job, rng) if (part := _until(burst, job.ended)) is not None]
    return Source(
        job_id=job.batch_id,
        clients=job.clients,
        bursts=tuple(bursts),
        spread=_spread(job, rng),
        blocked_share=job.era.conflicts if job.era else 0.0,
        readpages_per_getattr=0.02 if job.kind is Kind.SCANNER else 0.004,
        in_flight=story_storm.IN_FLIGHT_PER_CLIENT * job.node_count
        if job.kind is Kind.STORM
        else None,
    )


def _bursts(job: Job, rng: np.random.Generator) -> Iterable[Burst]:
    started = job.started or 0
    if job.era and job.demand:
        return _pilot(started, job.runtime_s, job.node_count, job.era, job.demand)
    if job.kind is Kind.STORM:
        return story_storm.bursts()
    return _BEHAVIOUR[job.kind](started, job.runtime_s, job.node_count, rng)


def _until(burst: Burst, end: int | None) -> Burst | None:
    """Return the part of a burst before the job's `end`."""
    if end is None or burst.end <= end:
        return burst
    if burst.start >= end:
        return None
    share = (end - burst.start) / (burst.end - burst.start)
    return Burst(
        burst.start,
        end,
        {kind: int(operations * share) for kind, operations in burst.mdt.items()},
        Transfers(int(burst.reads.count * share), burst.reads.size_bytes),
        Transfers(int(burst.writes.count * share), burst.writes.size_bytes),
        int(burst.failed_opens * share),
    )


def _spread(job: Job, rng: np.random.Generator) -> tuple[float, ...]:
    """Return a job's share of each OST; jobs on few nodes have few files and hit them unevenly."""
    if job.node_count > len(OSTS) * 4:
        return EVEN_SPREAD
    shares = rng.dirichlet(np.full(len(OSTS), 2.0)) + 0.05  # every OST receives data soon
    return tuple(float(share) for share in shares / shares.sum())


Bursts = Iterator[Burst]


def _simulation(start: int, runtime_s: int, nodes: int, rng: np.random.Generator) -> Bursts:
    """Read the input, then write results at intervals."""
    yield _start_up(start, nodes, reads_per_node=4)
    megabytes = int(rng.lognormal(5.5, 0.8)) + 40
    for moment in _moments(
        start + 240, start + runtime_s - 120, int(rng.integers(*_OUTPUT_EVERY_S))
    ):
        files = nodes // 8 + 2
        yield Burst(
            moment,
            moment + 60,
            _new_files(files, closes=files) | {"getattr": 2 * files + 12},
            writes=Transfers(megabytes * files // 4 + 8, 4 * _MIB),
        )


def _checkpointer(start: int, runtime_s: int, nodes: int, rng: np.random.Generator) -> Bursts:
    """Restart from a file per node; then write one per node every hour and remove an old one."""
    yield Burst(
        start + 20,
        start + 260,
        {"open": 2 * nodes + 60, "close": 2 * nodes + 50, "getattr": 3 * nodes + 90},
        reads=Transfers(nodes * 96, _LARGEST_REQUEST),
    )
    for n, moment in enumerate(_moments(start + 300, start + runtime_s - 400, 3_300)):
        yield Burst(
            moment,
            moment + int(rng.integers(180, 380)),
            _new_files(nodes, closes=nodes)
            | {"unlink": nodes if n > 1 else 0, "samedir_rename": nodes, "getattr": nodes},
            writes=Transfers(nodes * 96, _LARGEST_REQUEST),
        )


def _scanner(start: int, runtime_s: int, nodes: int, rng: np.random.Generator) -> Bursts:
    """Stat file after file."""
    per_s = rng.uniform(40, 150) * nodes**0.5
    yield Burst(
        start + 5,
        start + runtime_s,
        {
            "open": int(per_s * runtime_s * 0.02) + 30,
            "close": int(per_s * runtime_s * 0.02) + 30,
            "getattr": int(per_s * runtime_s),
            "getxattr": int(per_s * runtime_s * 0.1),
            "statfs": 20,
        },
        writes=Transfers(runtime_s // 10 + 12, 64 * _KIB),
    )


def _small_files(start: int, runtime_s: int, nodes: int, rng: np.random.Generator) -> Bursts:
    """Create, write, read and remove small files all the time."""
    files = int(nodes * runtime_s * rng.uniform(0.08, 0.3))
    yield _start_up(start, nodes, reads_per_node=2)
    yield Burst(
        start + 60,
        start + runtime_s,
        _new_files(files, closes=2 * files)
        | {
            "open": 2 * files,
            "getattr": files,
            "setattr": files // 3,
            "unlink": files // 2,
            "mkdir": files // 200 + 1,
            "rmdir": files // 400,
            "samedir_rename": files // 5,
            "crossdir_rename": files // 20,
        },
        reads=Transfers(files, 16 * _KIB),
        writes=Transfers(files * 3, 8 * _KIB),
    )


def _ensemble(start: int, runtime_s: int, nodes: int, rng: np.random.Generator) -> Bursts:
    """Start Python repeatedly: many failed look-ups, hence more opens than closes."""
    for moment in range(start, start + max(runtime_s - 200, 200), 1_200):
        opens = int(nodes * rng.integers(200, 450))
        yield Burst(
            moment,
            moment + 180,
            {"open": opens, "close": opens // 3, "getattr": opens // 2},
            reads=Transfers(nodes * 40, 256 * _KIB),
            failed_opens=opens - opens // 3,
        )
        yield Burst(
            moment + 180,
            moment + 960,
            {"open": 4 * nodes + 40, "close": 4 * nodes + 40, "getattr": 2 * nodes, "mknod": nodes},
            writes=Transfers(nodes * 30, _MIB),
        )


def _analysis(start: int, runtime_s: int, nodes: int, rng: np.random.Generator) -> Bursts:
    """Read results and write a figure."""
    yield Burst(
        start + 5,
        start + runtime_s,
        {
            "open": runtime_s // 6 + 120 * nodes,
            "close": runtime_s // 6 + 50 * nodes,
            "getattr": runtime_s // 4 + 90 * nodes,
            "mknod": runtime_s // 120 + 2,
        },
        reads=Transfers(int(runtime_s * nodes * rng.uniform(0.2, 4)) + 60, _MIB),
        writes=Transfers(runtime_s // 12 + 20, _MIB),
    )


# Per node, of one pilot before the crisis, without opens and closes.
_PANDA_OPERATIONS = {
    "getattr": 1_060,
    "getxattr": 58,
    "mknod": 42,
    "unlink": 38,
    "mkdir": 6,
    "rmdir": 4,
    "samedir_rename": 5,
    "crossdir_rename": 1,
    "setattr": 27,
    "statfs": 2,
    "sync": 1,
}
_PANDA_REQUEST = 128 * _KIB


def _pilot(start: int, runtime_s: int, nodes: int, era: Era, demand: Demand) -> Bursts:
    """Search for libraries and scripts with failed opens; read input, write output."""
    operations = {
        "open": demand.opens,
        "close": demand.closes,
        **{kind: round(each * nodes * demand.cost) for kind, each in _PANDA_OPERATIONS.items()},
    }
    totals = operations | {
        "reads": demand.read_bytes // _PANDA_REQUEST,
        "writes": demand.write_bytes // _PANDA_REQUEST,
    }
    done = dict.fromkeys(totals, 0)
    reached = 0.0
    for begin, end, share in era.phases:
        reached += share
        upto = {kind: round(total * reached) for kind, total in totals.items()}
        part = {kind: upto[kind] - done[kind] for kind in totals}
        done = upto
        yield Burst(
            start + round(begin * runtime_s),
            max(start + round(end * runtime_s), start + round(begin * runtime_s) + 1),
            {kind: part[kind] for kind in operations},
            reads=Transfers(part["reads"], _PANDA_REQUEST),
            writes=Transfers(part["writes"], _PANDA_REQUEST),
            failed_opens=max(part["open"] - part["close"], 0),
        )


_BEHAVIOUR: dict[Kind, Callable[[int, int, int, np.random.Generator], Bursts]] = {
    Kind.SIMULATION: _simulation,
    Kind.CHECKPOINTER: _checkpointer,
    Kind.SCANNER: _scanner,
    Kind.SMALL_FILES: _small_files,
    Kind.ENSEMBLE: _ensemble,
    Kind.ANALYSIS: _analysis,
}


def _start_up(start: int, nodes: int, reads_per_node: int) -> Burst:
    """Load the program and read its input."""
    return Burst(
        start + 10,
        start + 70,
        {"open": 3 * nodes + 60, "close": 2 * nodes + 40, "getattr": 5 * nodes + 80, "statfs": 4},
        reads=Transfers(reads_per_node * nodes + 20, _MIB),
    )


def _new_files(files: int, closes: int) -> dict[str, int]:
    return {"open": files, "mknod": files, "close": closes, "setattr": files // 4}


def _moments(first: int, last: int, every_s: int) -> range:
    """Return the times of a regular event, the first after one whole interval."""
    return range(first + every_s, last, every_s)
