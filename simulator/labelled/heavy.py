"""Jobs that may harm others, from no harm at all to a blocked server.

Each function takes the capacity of the server (requests per second) and a strength between 0 and
1, drawn uniformly in its logarithm. Whether a job harms others is measured afterwards.
"""

from collections.abc import Callable

import numpy as np

from simulator.activity import Burst, Transfers
from simulator.clock import MICROSECONDS, MINUTE_S
from simulator.labelled.ordinary import MIB, MIX, QUIET, reads_of
from simulator.labelled.play import Play, between, phase, shares
from simulator.servers import mds

Chance = np.random.Generator

_MOST_REQUESTS = 250_000  # of one subject: each is a line of a trace
_MOST_S = 20  # of the server's capacity
_MOST_STEADY = 60_000  # requests of a job that spreads them over its run
_CAPACITY_PER_NODE = 30  # requests/s of the server, per node of a large storm
LARGEST_JOB = 8_000  # nodes
_STATS = {"getattr": 0.84, "open": 0.05, "close": 0.05, "getxattr": 0.06}
_CHURN = {"open": 0.23, "mknod": 0.22, "close": 0.23, "unlink": 0.22, "getattr": 0.1}
_UNPACK = {"open": 0.3, "mknod": 0.28, "close": 0.3, "setattr": 0.12}
_CREATE = {"open": 0.45, "mknod": 0.2, "close": 0.35}
_MOST_LOCKED = 0.3  # of the server's threads wait for locks
_STORMS = (MIX, _STATS, _CHURN, _UNPACK)


def most_requests(capacity_per_s: float) -> float:
    """Return the largest number of requests of one subject."""
    return min(_MOST_REQUESTS, _MOST_S * capacity_per_s)


def _clients(chance: Chance, capacity_per_s: float) -> int:
    """Return a number of nodes: centres with faster servers have more."""
    return int(between(chance, 10, capacity_per_s / _CAPACITY_PER_NODE))


def storm(chance: Chance, capacity_per_s: float, strength: float) -> Play:
    """Send requests at a high rate, once."""
    nodes = _clients(chance, capacity_per_s)
    per_s = 4 * strength * capacity_per_s
    lasts_s = int(max(min(between(chance, 10, 300), most_requests(capacity_per_s) / per_s), 5))
    mix = _STORMS[int(chance.integers(len(_STORMS)))]
    operations = min(per_s * lasts_s, most_requests(capacity_per_s))
    quiet_s = int(chance.integers(60, 180))
    runtime_s = quiet_s + lasts_s + int(chance.integers(3, 10)) * MINUTE_S
    return Play(
        "storm",
        str(chance.choice(["unpack_all", "uq_sweep", "screening", "dedup"])),
        nodes,
        runtime_s,
        (
            *phase(chance, 10, quiet_s, shares(10 * nodes, QUIET)),
            *phase(
                chance,
                quiet_s,
                quiet_s + lasts_s,
                shares(operations, mix),
                reads=reads_of(shares(operations, mix)),
            ),
        ),
        busy_share=chance.uniform(0.2, 0.7),
    )


def repeated_bursts(chance: Chance, capacity_per_s: float, strength: float) -> Play:
    """Send short bursts with calm between them."""
    nodes = _clients(chance, capacity_per_s)
    count = int(chance.integers(5, 14))
    per_s = 3 * strength * capacity_per_s
    lasts_s = int(
        max(min(between(chance, 3, 20), most_requests(capacity_per_s) / count / per_s), 1)
    )
    every_s = int(chance.integers(45, 110))
    each = min(per_s * lasts_s, most_requests(capacity_per_s) / count)
    mix = _STORMS[int(chance.integers(len(_STORMS)))]
    bursts: list[Burst] = []
    for n in range(count):
        begin = 30 + n * every_s
        bursts += phase(chance, begin, begin + lasts_s, shares(each, mix))
        bursts += phase(chance, begin + lasts_s, begin + every_s, shares(5 * nodes, QUIET))
    return Play(
        "bursts with calm between",
        str(chance.choice(["param_scan", "monitor.py", "restart_loop"])),
        nodes,
        30 + count * every_s + MINUTE_S,
        tuple(bursts),
    )


def many_files(chance: Chance, capacity_per_s: float, strength: float) -> Play:
    """Read many small files on each node during the whole run."""
    nodes = int(between(chance, 4, 128))
    runtime_s = int(chance.integers(10, 25)) * MINUTE_S
    files = min(0.5 * strength * capacity_per_s * runtime_s, _MOST_STEADY) / 3
    return Play(
        "many files",
        str(chance.choice(["genome_index", "image_train", "reco.exe"])),
        nodes,
        runtime_s,
        tuple(
            phase(
                chance,
                30,
                runtime_s - 60,
                {"open": files, "close": files, "getattr": files},
                reads=Transfers(int(files * 2), 32_768),
            )
        ),
        busy_share=chance.uniform(0.4, 0.95),
    )


def checkpoints(chance: Chance, capacity_per_s: float, strength: float) -> Play:
    """Write some files from each of many nodes at the same time, every few minutes."""
    del capacity_per_s  # the size of a checkpoint does not depend on the server
    nodes = int(np.clip(LARGEST_JOB * strength, 64, LARGEST_JOB))
    files = nodes * int(chance.integers(1, 4))
    runtime_s = int(chance.integers(15, 25)) * MINUTE_S
    every_s = int(chance.integers(5, 9)) * MINUTE_S
    bursts: list[Burst] = []
    for begin in range(3 * MINUTE_S, runtime_s - 2 * MINUTE_S, every_s):
        bursts += phase(
            chance,
            begin,
            begin + int(chance.integers(4, 25)),
            {"open": files, "mknod": files, "close": files, "setattr": files},
            writes=Transfers(files * 16, 16 * MIB),
        )
    return Play("checkpoints", "xgc", nodes, runtime_s, tuple(bursts), busy_share=0.93)


def container_start(chance: Chance, capacity_per_s: float, strength: float) -> Play:
    """Load software from thousands of files on each node: most look-ups fail."""
    nodes = int(between(chance, 8, 2_000))
    files = int(
        min(nodes * between(chance, 0.1, 1) * 4_000 * strength, most_requests(capacity_per_s) / 4)
    )
    lasts_s = int(between(chance, 4, 120))
    runtime_s = int(chance.integers(10, 25)) * MINUTE_S
    return Play(
        "container start",
        str(chance.choice(["python3", "singularity", "cesm.exe", "athena.py"])),
        nodes,
        runtime_s,
        (
            *phase(
                chance,
                5,
                5 + lasts_s,
                {"open": 2.6 * files, "close": files, "getattr": 0.4 * files},
                failed_opens=1.6 * files,
                reads=Transfers(files * 2, 16_384),
            ),
            *phase(
                chance,
                5 + lasts_s,
                runtime_s - 30,
                shares(nodes * chance.uniform(5, 40), MIX),
                writes=Transfers(nodes * 40, 4 * MIB),
            ),
        ),
    )


def scanner(chance: Chance, capacity_per_s: float, strength: float) -> Play:
    """Stat a directory tree during the whole run."""
    nodes = int(between(chance, 1, 32))
    runtime_s = int(chance.integers(10, 25)) * MINUTE_S
    operations = min(0.9 * strength * capacity_per_s * runtime_s, _MOST_STEADY)
    return Play(
        "scanner",
        str(chance.choice(["find", "du_all", "catalogue", "rsync_tree"])),
        nodes,
        runtime_s,
        tuple(phase(chance, 20, runtime_s - 20, shares(operations, _STATS))),
        busy_share=chance.uniform(0.1, 0.6),
    )


def temporary_files(chance: Chance, capacity_per_s: float, strength: float) -> Play:
    """Create and remove temporary files all the time, like SQLite with its journals."""
    nodes = int(between(chance, 1, 48))
    runtime_s = int(chance.integers(10, 25)) * MINUTE_S
    operations = min(0.6 * strength * capacity_per_s * runtime_s, _MOST_STEADY)
    return Play(
        "temporary files",
        str(chance.choice(["sqlite_jobs", "blastdb", "conda_build"])),
        nodes,
        runtime_s,
        tuple(
            phase(
                chance,
                20,
                runtime_s - 30,
                shares(operations, _CHURN),
                writes=Transfers(int(operations / 5), 4_096),
            )
        ),
        busy_share=chance.uniform(0.3, 0.8),
    )


def failed_look_ups(chance: Chance, capacity_per_s: float, strength: float) -> Play:
    """Search for files along long paths, again and again: waste, and harm at high rates."""
    nodes = int(between(chance, 1, 64))
    runtime_s = int(chance.integers(10, 25)) * MINUTE_S
    failed = min(0.6 * strength * capacity_per_s * runtime_s, 2 * _MOST_STEADY)
    opened = failed / chance.uniform(3, 20)
    return Play(
        "failed look-ups",
        str(chance.choice(["pipeline.py", "conda_run", "matlab_mcr"])),
        nodes,
        runtime_s,
        tuple(
            phase(
                chance,
                20,
                runtime_s - 30,
                {"open": failed + opened, "close": opened, "getattr": opened / 2},
                failed_opens=failed,
                reads=Transfers(int(opened), 65_536),
            )
        ),
        busy_share=chance.uniform(0.3, 0.9),
    )


def tape_recall(chance: Chance, capacity_per_s: float, strength: float) -> Play:
    """Wait for tapes, and handle the files of each tape in a burst."""
    nodes = int(chance.integers(1, 5))
    runtime_s = int(chance.integers(15, 25)) * MINUTE_S
    bursts: list[Burst] = []
    begin = int(chance.integers(60, 300))
    while begin < runtime_s - 2 * MINUTE_S:
        files = min(
            2 * strength * capacity_per_s * chance.uniform(2, 20),
            most_requests(capacity_per_s) / 24,
        )
        bursts += phase(
            chance,
            begin,
            begin + int(chance.integers(5, 40)),
            {"open": files, "close": files, "getattr": files, "setattr": files},
            writes=Transfers(int(files * 4), 4 * MIB),
        )
        begin += int(chance.integers(3, 8)) * MINUTE_S
    return Play("tape recall", "hsi_recall", nodes, runtime_s, tuple(bursts), busy_share=0.02)


def lock_convoy(chance: Chance, capacity_per_s: float, strength: float) -> Play:
    """Create files in one directory from many nodes, which wait for each other's locks.

    Its requests take long and do little: few threads of the server wait with them.
    """
    del capacity_per_s  # locks limit its rate
    nodes = int(between(chance, 8, 256))
    runtime_s = int(chance.integers(10, 25)) * MINUTE_S
    blocked_share = chance.uniform(0.1, 0.5)
    operations = strength * _MOST_LOCKED * mds.MAIN.size * MICROSECONDS / mds.BLOCKED_MEAN_US
    operations *= runtime_s / blocked_share
    return Play(
        "lock convoy",
        str(chance.choice(["h5_append", "shared_log", "lammps"])),
        nodes,
        runtime_s,
        tuple(phase(chance, 20, runtime_s - 30, shares(operations, _CREATE))),
        busy_share=chance.uniform(0.2, 0.7),
        blocked_share=blocked_share,
    )


KINDS: tuple[Callable[[Chance, float, float], Play], ...] = (
    storm,
    repeated_bursts,
    many_files,
    checkpoints,
    container_start,
    scanner,
    temporary_files,
    failed_look_ups,
    tape_recall,
    lock_convoy,
)
