"""Harmless jobs: ordinary ones, and jobs that only resemble abuse."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simulator.activity import Burst, Transfers
from simulator.cases.abuse import NAMESAKES, NAMESAKES_READ_BYTES, USUAL_PER_NODE
from simulator.cases.filesystems import SMALL
from simulator.cases.play import Play, phase, shares
from simulator.clock import MINUTE_S

Chance = np.random.Generator

_MIB = 1_048_576
_MIX = {"open": 0.28, "close": 0.26, "getattr": 0.36, "setattr": 0.04, "mknod": 0.06}


@dataclass(frozen=True)
class _Family:
    """Jobs of one application."""

    name: str
    nodes: tuple[int, ...]
    read_bytes: float  # per job, median
    write_bytes: float
    request_bytes: int
    spread: float = 0.5  # standard deviation of the logarithm of the bytes read


_FAMILIES = (
    _Family(NAMESAKES[0], (1, 1, 2), NAMESAKES_READ_BYTES, 4e8, _MIB, 0.35),
    _Family(NAMESAKES[1], (1, 1, 2), NAMESAKES_READ_BYTES, 2e8, _MIB // 2, 0.35),
    _Family("vasp_std", (2, 2, 4, 4, 8), 2e9, 9e9, _MIB),
    _Family("gmx_mpi", (1, 2, 4, 8), 1e9, 2e10, 4 * _MIB),
    _Family("paraview", (1, 2, 4), 4e10, 1e9, _MIB),
    _Family("wrf.exe", (8, 16, 16, 32), 6e9, 8e10, 4 * _MIB),
    _Family("blastn", (1, 1, 1), 2e9, 1e8, 65_536),
)


def ordinary(chance: Chance) -> Play:
    """Read the input, compute, and write results."""
    family = _FAMILIES[int(chance.integers(len(_FAMILIES)))]
    nodes = int(chance.choice(family.nodes))
    runtime_s = int(np.clip(chance.lognormal(np.log(15), 0.6), 4, 75) * MINUTE_S)
    operations = nodes * USUAL_PER_NODE * chance.lognormal(0, 0.7)
    read_bytes, write_bytes = (
        usual * chance.lognormal(0, family.spread)
        for usual in (family.read_bytes, family.write_bytes)
    )
    return Play(
        "ordinary",
        family.name,
        nodes,
        runtime_s,
        tuple(
            phase(
                chance,
                5,
                runtime_s - 10,
                shares(operations, _MIX),
                reads=Transfers(int(read_bytes / family.request_bytes), family.request_bytes),
                writes=Transfers(int(write_bytes / family.request_bytes), family.request_bytes),
            )
        ),
        busy_share=chance.uniform(0.5, 0.98),
    )


def bystander(chance: Chance, least_per_s: float, most_per_s: float) -> Play:
    """Work on the small filesystem at a given rate."""
    runtime_s = int(chance.integers(12, 40)) * MINUTE_S
    nodes = int(chance.integers(1, 7))
    weights = dict(
        zip(
            ("open", "close", "getattr", "unlink", "getxattr"),
            0.1 + chance.dirichlet(np.ones(5)) / 2,
            strict=True,
        )
    )
    weights["getattr"] += 0.4
    weights["close"] = max(weights["close"], weights["open"] / 2)
    operations = runtime_s * chance.uniform(least_per_s, most_per_s)
    return Play(
        "ordinary",
        str(chance.choice(["gmx_mpi", "paraview", "make", "Rscript"])),
        nodes,
        runtime_s,
        tuple(
            phase(
                chance,
                5,
                runtime_s - 10,
                shares(operations, weights),
                writes=Transfers(int(chance.integers(50, 2_000)), _MIB),
            )
        ),
        filesystem=SMALL,
        busy_share=chance.uniform(0.5, 0.98),
    )


def checkpointer(chance: Chance) -> Play:
    """Write thousands of files per hour from many nodes, and remove the old ones."""
    nodes = int(chance.integers(56, 130))
    runtime_s = int(chance.integers(45, 70)) * MINUTE_S
    bursts: list[Burst] = []
    for begin in range(5 * MINUTE_S, runtime_s - 5 * MINUTE_S, 12 * MINUTE_S):
        files = nodes * 30
        bursts += phase(
            chance,
            begin,
            begin + 3 * MINUTE_S,
            {"open": files, "mknod": files, "close": files, "unlink": files, "setattr": files},
            writes=Transfers(nodes * 96, 16 * _MIB),
        )
    return Play("checkpointer", "xgc", nodes, runtime_s, tuple(bursts), busy_share=0.93)


def scanner(chance: Chance) -> Play:
    """Stat a whole filesystem, slowly, from many nodes."""
    nodes = int(chance.integers(64, 128))
    runtime_s = int(chance.integers(65, 150)) * MINUTE_S
    operations = min(chance.uniform(0.6e6, 1.5e6), 200.0 * runtime_s, 11_000.0 * nodes)
    return Play(
        "scanner",
        "catalogue",
        nodes,
        runtime_s,
        tuple(
            phase(
                chance,
                20,
                runtime_s - 20,
                shares(
                    operations, {"getattr": 0.85, "open": 0.05, "close": 0.05, "getxattr": 0.05}
                ),
            )
        ),
        busy_share=chance.uniform(0.3, 0.6),
    )


def large(chance: Chance) -> Play:
    """Do much in total on many nodes, with ordinary activity per node."""
    nodes = int(chance.integers(120, 220))
    runtime_s = int(chance.integers(30, 60)) * MINUTE_S
    return Play(
        "large",
        "chimera",
        nodes,
        runtime_s,
        tuple(
            phase(
                chance,
                MINUTE_S,
                runtime_s - MINUTE_S,
                shares(nodes * chance.uniform(2_500, 5_500), _MIX),
                reads=Transfers(nodes * 100, 4 * _MIB),
                writes=Transfers(nodes * 200, 4 * _MIB),
            )
        ),
        busy_share=chance.uniform(0.8, 0.97),
    )


def start_up(chance: Chance) -> Play:
    """Load software on many nodes, with as few operations as possible."""
    nodes = int(chance.integers(48, 160))
    runtime_s = int(chance.integers(20, 45)) * MINUTE_S
    return Play(
        "start-up of normal size",
        str(chance.choice(["cesm.exe", "lmp_mpi", "python3"])),
        nodes,
        runtime_s,
        (
            *phase(
                chance,
                5,
                5 + int(chance.integers(40, 200)),
                shares(
                    min(nodes * chance.uniform(500, 1_300), 75_000),
                    {"open": 0.42, "close": 0.3, "getattr": 0.28},
                ),
            ),
            *phase(chance, 220, runtime_s - 30, shares(nodes * chance.uniform(40, 120), _MIX)),
        ),
    )


def large_reads(chance: Chance) -> Play:
    """Read much, in requests of one MiB."""
    runtime_s = int(chance.integers(30, 60)) * MINUTE_S
    nodes = int(chance.integers(16, 48))
    return Play(
        "large reads",
        "seismic_mig",
        nodes,
        runtime_s,
        tuple(
            phase(
                chance,
                20,
                runtime_s - 20,
                shares(nodes * chance.uniform(500, 2_000), _MIX),
                reads=Transfers(int(chance.uniform(1e6, 4e6)), _MIB),
                writes=Transfers(int(chance.uniform(1e4, 1e5)), _MIB),
            )
        ),
        busy_share=chance.uniform(0.5, 0.9),
    )


def interactive(chance: Chance) -> Play:
    """Hold a node for an interactive user."""
    runtime_s = int(chance.integers(20, 60)) * MINUTE_S
    return Play(
        "interactive",
        "interactive",
        int(chance.integers(1, 3)),
        runtime_s,
        tuple(
            phase(
                chance,
                20,
                runtime_s - 20,
                shares(chance.uniform(200, 3_000), _MIX),
                writes=Transfers(int(chance.integers(10, 500)), _MIB),
            )
        ),
        busy_share=chance.uniform(0.005, 0.05),
    )


def short_burst(chance: Chance) -> Play:
    """Work intensively for two or three minutes on a few nodes."""
    nodes = int(chance.integers(4, 9))
    runtime_s = int(chance.integers(15, 40)) * MINUTE_S
    begin = int(chance.integers(6, 10)) * MINUTE_S
    return Play(
        "short burst",
        "unpack",
        nodes,
        runtime_s,
        (
            *phase(chance, 10, begin, shares(100 * nodes, _MIX)),
            *phase(
                chance, begin, begin + int(chance.integers(40, 80)), shares(nodes * 11_000, _MIX)
            ),
            *phase(chance, begin + 200, runtime_s - 20, shares(100 * nodes, _MIX)),
        ),
        busy_share=chance.uniform(0.3, 0.8),
    )


def small_job(chance: Chance) -> Play:
    """Do little, as one of many jobs."""
    runtime_s = int(chance.integers(5, 12)) * MINUTE_S
    return Play(
        "one of many small jobs",
        "array_task",
        1,
        runtime_s,
        tuple(phase(chance, 10, runtime_s - 10, shares(chance.uniform(1_000, 9_000), _MIX))),
    )


def busy(chance: Chance) -> Play:
    """Work intensively on the small filesystem, spread over a long time."""
    runtime_s = int(chance.integers(18, 30)) * MINUTE_S
    nodes = int(chance.integers(4, 33))
    return Play(
        "busy",
        "rsync_tree",
        nodes,
        runtime_s,
        tuple(
            phase(
                chance,
                30,
                runtime_s - 30,
                shares(
                    chance.uniform(5_000, 13_000),
                    {"getattr": 0.6, "open": 0.15, "close": 0.15, "getxattr": 0.1},
                ),
            )
        ),
        filesystem=SMALL,
        busy_share=chance.uniform(0.4, 0.8),
    )


def search(chance: Chance) -> Play:
    """Start Python at intervals: some look-ups fail."""
    nodes = int(chance.integers(2, 12))
    runtime_s = int(chance.integers(20, 45)) * MINUTE_S
    failed = chance.uniform(1_000, 8_000)
    return Play(
        "some look-ups fail",
        str(chance.choice(["athena.py", "pipeline.py", "conda_run"])),
        nodes,
        runtime_s,
        tuple(
            phase(
                chance,
                20,
                runtime_s - 30,
                {"open": failed * 1.3, "close": failed * 0.3, "getattr": failed * 0.3},
                failed_opens=failed,
            )
        ),
    )


HEAVY: tuple[Callable[[Chance], Play], ...] = (
    checkpointer,
    scanner,
    large,
    start_up,
    large_reads,
    interactive,
    short_burst,
    search,
    busy,
)
