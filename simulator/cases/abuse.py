"""Abuse by jobs, in any amount.

Every play takes its amount as a multiple of the definition of abuse in `causes`;
everything else is random.
"""

from collections.abc import Callable

import numpy as np

from simulator.activity import Transfers
from simulator.cases import causes
from simulator.cases.causes import Cause
from simulator.cases.filesystems import LARGE, SMALL, Filesystem
from simulator.cases.play import Play, phase, shares
from simulator.clock import MINUTE_S
from simulator.servers import mds, trace

Chance = np.random.Generator

NAMESAKES = ("train.py", "hist_ana")  # application names whose jobs read similar amounts
NAMESAKES_READ_BYTES = 8_000_000_000  # median
USUAL_PER_NODE = 1_500  # median operations of a job
_MIB = 1_048_576
_IN_FLIGHT_PER_NODE = 8
_USUAL = {"open": 0.33, "close": 0.28, "getattr": 0.29, "setattr": 0.04, "getxattr": 0.06}
_QUIET = {"open": 0.4, "close": 0.4, "getattr": 0.2}
_STORMS = (
    {"open": 0.5, "getattr": 0.35, "close": 0.15},
    {"open": 0.35, "getattr": 0.6, "close": 0.05},
    {"open": 0.2, "unlink": 0.3, "mkdir": 0.2, "getattr": 0.2, "close": 0.1},
)


def too_many(chance: Chance, amount: float) -> Play:
    """Do too much of everything, from many nodes."""
    operations = amount * causes.OPERATIONS
    runtime_s = int(chance.integers(35, 60)) * MINUTE_S
    nodes = int(max(operations / runtime_s / chance.uniform(15, 45), 8))
    quiet_s = 4 * MINUTE_S
    return Play(
        "too many operations",
        str(chance.choice(["sweep.sh", "uq_driver", "mpi_serial"])),
        nodes,
        runtime_s,
        (
            *phase(chance, 10, quiet_s, shares(60 * nodes, _QUIET)),
            *phase(chance, quiet_s, runtime_s - 40, shares(operations, _USUAL)),
        ),
        busy_share=chance.uniform(0.3, 0.8),
    )


def node_rate(chance: Chance, amount: float) -> Play:
    """Keep a few nodes busy for many minutes."""
    nodes = int(chance.integers(2, 9))
    hard_s = int(chance.integers(14, 35)) * MINUTE_S
    quiet_s = int(chance.integers(6, 12)) * MINUTE_S
    operations = causes.NODE_PER_S * amount * nodes * hard_s
    return Play(
        "sustained rate",
        str(chance.choice(["dbscan", "extract.sh", "index_all"])),
        nodes,
        quiet_s + hard_s + 3 * MINUTE_S,
        (
            *phase(chance, 10, quiet_s, shares(150 * nodes, _QUIET)),
            *phase(chance, quiet_s, quiet_s + hard_s, shares(operations, _USUAL)),
        ),
        busy_share=chance.uniform(0.25, 0.7),
    )


def failed_look_ups(chance: Chance, amount: float) -> Play:
    """Search for software along long paths, on a server that counts failed look-ups."""
    return _searching(chance, amount, LARGE)


def uncounted_look_ups(chance: Chance, amount: float) -> Play:
    """Search for software along long paths, on a server that does not count failed look-ups."""
    return _searching(chance, amount, SMALL)


def _searching(chance: Chance, amount: float, filesystem: Filesystem) -> Play:
    failed = causes.FAILED_OPENS * amount
    closes = failed / chance.uniform(3, 12)
    rounds = int(chance.integers(3, 8))  # Python starts several times
    every_s = int(chance.integers(5, 8)) * MINUTE_S
    nodes = int(chance.integers(8, 40))
    operations = {
        "open": (failed + closes) / rounds,
        "close": closes / rounds,
        "getattr": failed * chance.uniform(0.1, 0.4) / rounds,
    }
    if filesystem is SMALL:
        operations["getattr"] /= 4
    return Play(
        "failed look-ups",
        str(chance.choice(["athena.py", "pipeline.py", "conda_run"])),
        nodes,
        rounds * every_s + 2 * MINUTE_S,
        tuple(
            burst
            for n in range(rounds)
            for burst in phase(
                chance,
                20 + n * every_s,
                (n + 1) * every_s,
                operations,
                failed_opens=failed / rounds,
                reads=Transfers(30 * nodes, _MIB // 4),
            )
        ),
        filesystem=filesystem,
        busy_share=chance.uniform(0.4, 0.9),
    )


def start_up(chance: Chance, amount: float) -> Play:
    """Load software on many nodes at the same time, and be quiet afterwards."""
    nodes = int(chance.integers(48, 160))
    lasts_s = int(chance.integers(60, 240))
    runtime_s = int(chance.integers(25, 50)) * MINUTE_S
    loading = {"open": 0.42, "close": 0.3, "getattr": 0.28}
    return Play(
        "start-up",
        str(chance.choice(["cesm.exe", "lmp_mpi", "python3"])),
        nodes,
        runtime_s,
        (
            *phase(chance, 5, 5 + lasts_s, shares(causes.AT_FIRST * amount, loading)),
            *phase(
                chance,
                5 + lasts_s,
                runtime_s - 30,
                shares(nodes * chance.uniform(40, 120), _QUIET),
                writes=Transfers(nodes * 40, 4 * _MIB),
            ),
        ),
    )


def stat_storm(chance: Chance, amount: float) -> Play:
    """Stat all files of a project as fast as possible."""
    nodes = int(chance.integers(4, 33))
    quiet_s = int(chance.integers(6, 12)) * MINUTE_S
    lasts_s = int(chance.integers(6, 15)) * MINUTE_S
    mix = {"getattr": 0.82, "open": 0.06, "close": 0.06, "getxattr": 0.06}
    operations = causes.STATS_PER_S * amount / mix["getattr"] * lasts_s
    return Play(
        "stat storm",
        str(chance.choice(["find", "du_all", "check_files"])),
        nodes,
        quiet_s + lasts_s + 5 * MINUTE_S,
        (
            *phase(chance, 10, quiet_s, shares(100 * nodes, _QUIET)),
            *phase(chance, quiet_s, quiet_s + lasts_s, shares(operations, mix)),
        ),
        busy_share=chance.uniform(0.2, 0.6),
    )


def churn(chance: Chance, amount: float) -> Play:
    """Create and remove temporary files all the time, like SQLite with its journals."""
    files = causes.FILES * amount
    nodes = int(chance.integers(4, 25))
    runtime_s = int(chance.integers(25, 55)) * MINUTE_S
    return Play(
        "temporary files",
        str(chance.choice(["sqlite_jobs", "make_check", "blastdb"])),
        nodes,
        runtime_s,
        tuple(
            phase(
                chance,
                20,
                runtime_s - 30,
                {
                    "open": files * 1.1,
                    "mknod": files * 1.01,
                    "close": files * 1.1,
                    "unlink": files,
                    "getattr": files * 0.3,
                },
                writes=Transfers(int(files), 4_096),
            )
        ),
        busy_share=chance.uniform(0.3, 0.8),
    )


def small_reads(chance: Chance, amount: float) -> Play:
    """Read records of a few bytes in separate requests."""
    return _small_requests(chance, amount, are_reads=True)


def small_writes(chance: Chance, amount: float) -> Play:
    """Write lines, with a flush after each."""
    return _small_requests(chance, amount, are_reads=False)


def _small_requests(chance: Chance, amount: float, *, are_reads: bool) -> Play:
    small = Transfers(
        int(causes.SMALL_REQUESTS * amount), int(np.exp(chance.uniform(np.log(200), np.log(4_000))))
    )
    usual = Transfers(int(chance.integers(500, 4_000)), _MIB)
    nodes = int(chance.integers(2, 20))
    runtime_s = int(chance.integers(25, 55)) * MINUTE_S
    return Play(
        "small reads" if are_reads else "small writes",
        str(chance.choice(["trace_reader", "logger", "md_analyse"])),
        nodes,
        runtime_s,
        tuple(
            phase(
                chance,
                15,
                runtime_s - 20,
                shares(300 * nodes, _QUIET),
                reads=small if are_reads else usual,
                writes=usual if are_reads else small,
            )
        ),
        busy_share=chance.uniform(0.3, 0.8),
    )


def above_peers(chance: Chance, amount: float) -> Play:
    """Read far more than similar jobs of the same application: its cache is switched off."""
    runtime_s = int(chance.integers(25, 50)) * MINUTE_S
    read_bytes = causes.ABOVE_NAME * NAMESAKES_READ_BYTES * amount
    return Play(
        "reads above peers",
        str(chance.choice(NAMESAKES)),
        int(chance.integers(1, 3)),
        runtime_s,
        tuple(
            phase(
                chance,
                20,
                runtime_s - 20,
                shares(chance.uniform(800, 3_000), _QUIET),
                reads=Transfers(int(read_bytes / _MIB), _MIB),
                writes=Transfers(200, _MIB),
            )
        ),
        busy_share=chance.uniform(0.3, 0.7),
    )


def outlier(chance: Chance, amount: float) -> Play:
    """Exceed all jobs of the same size on one or two nodes, but slowly."""
    nodes = int(chance.integers(1, 3))
    runtime_s = int(chance.integers(45, 70)) * MINUTE_S
    operations = causes.ABOVE_SIZE * USUAL_PER_NODE * nodes * amount
    return Play(
        "outlier",
        str(chance.choice(["crawl.py", "dedup", "xrootd_check"])),
        nodes,
        runtime_s,
        tuple(phase(chance, 15, runtime_s - 30, shares(operations, _USUAL))),
        busy_share=chance.uniform(0.3, 0.8),
    )


def idle(chance: Chance, amount: float) -> Play:
    """Hold processors while data is copied."""
    runtime_s = int(chance.integers(20, 45)) * MINUTE_S
    half = int(causes.IDLE_BYTES * amount / 2 / (4 * _MIB))
    nodes = int(chance.integers(2, 16))
    return Play(
        "idle processors",
        str(chance.choice(["stage_in", "untar_all", "copy_back"])),
        nodes,
        runtime_s,
        tuple(
            phase(
                chance,
                15,
                runtime_s - 20,
                shares(chance.uniform(300, 1_500) * nodes, _QUIET),
                reads=Transfers(half, 4 * _MIB),
                writes=Transfers(half, 4 * _MIB),
            )
        ),
        busy_share=chance.uniform(0.008, 0.04),
    )


def harm(chance: Chance, amount: float, knee_per_s: float) -> Play:
    """Exceed the capacity of a small server by a factor, so that other requests wait."""
    mix = _STORMS[int(chance.integers(len(_STORMS)))]
    nodes = int(chance.integers(8, 49))
    lasts_s = int(chance.integers(40, 70))
    quiet_s = int(chance.integers(3, 6)) * MINUTE_S
    operations = amount * most_per_s(knee_per_s, mix) * lasts_s
    return Play(
        "storm",
        str(chance.choice(["unpack_all", "uq_sweep", "screening"])),
        nodes,
        quiet_s + lasts_s + int(chance.integers(3, 10)) * MINUTE_S,
        (
            *phase(chance, 10, quiet_s, shares(20 * nodes, _QUIET)),
            *phase(chance, quiet_s, quiet_s + lasts_s, shares(operations, mix)),
        ),
        filesystem=SMALL,
        busy_share=chance.uniform(0.2, 0.6),
        in_flight=_IN_FLIGHT_PER_NODE * nodes,
    )


def quiet_s(storm: Play) -> int:
    """Return the seconds before a storm starts."""
    busiest = max(
        storm.bursts, key=lambda burst: sum(burst.mdt.values()) / (burst.end - burst.start)
    )
    return busiest.start


def locks(chance: Chance, amount: float) -> Play:
    """Open and stat one shared file from many nodes that all write to it."""
    nodes = int(chance.integers(12, 64))
    lasts_s = int(chance.integers(180, 400))
    blocked_share = chance.uniform(0.3, 0.6)
    enqueues = causes.LOCKED_S * amount / (mds.BLOCKED_MEAN_US / 1e6 * blocked_share)
    return Play(
        "lock contention",
        str(chance.choice(["shared_log", "h5_append", "counter.py"])),
        nodes,
        lasts_s + 5 * MINUTE_S,
        tuple(
            phase(
                chance,
                MINUTE_S,
                MINUTE_S + lasts_s,
                {"open": enqueues / 2, "close": enqueues / 2, "getattr": enqueues / 2},
                writes=Transfers(int(enqueues / 2), 65_536),
            )
        ),
        filesystem=SMALL,
        busy_share=chance.uniform(0.3, 0.7),
        blocked_share=blocked_share,
    )


def most_per_s(knee_per_s: float, mix: dict[str, float]) -> float:
    """Return the number of operations of a mix per second at the server's capacity."""
    codes: dict[int, float] = {}
    for kind, share in mix.items():
        code = trace.OPCODE_OF_KIND[kind]
        codes[code] = codes.get(code, 0.0) + share
    return knee_per_s * mds.MAIN_MEAN_US / mds.mean_work_us(codes)


OF_COUNTERS: dict[Cause, tuple[Callable[[Chance, float], Play], ...]] = {
    Cause.OPERATIONS: (too_many,),
    Cause.RATE: (node_rate,),
    Cause.FAILED: (failed_look_ups, uncounted_look_ups),
    Cause.START_UP: (start_up,),
    Cause.STATS: (stat_storm,),
    Cause.CHURN: (churn,),
    Cause.SMALL_READS: (small_reads,),
    Cause.SMALL_WRITES: (small_writes,),
    Cause.ABOVE_PEERS: (above_peers,),
    Cause.OUTLIER: (outlier,),
    Cause.IDLE: (idle,),
}
