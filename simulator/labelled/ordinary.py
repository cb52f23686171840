"""Ordinary jobs of several applications: input, computation, output."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simulator.activity import Transfers
from simulator.clock import MINUTE_S
from simulator.labelled.play import Play, phase, shares

Chance = np.random.Generator

MIB = 1_048_576
MIX = {"open": 0.28, "close": 0.26, "getattr": 0.36, "setattr": 0.04, "mknod": 0.06}
QUIET = {"open": 0.4, "close": 0.4, "getattr": 0.2}
_READING_SHARE, _READING_S = 0.2, 4 * MINUTE_S  # of the run, for input; the same for output


@dataclass(frozen=True)
class _Family:
    """Jobs of one application."""

    name: str
    nodes: tuple[int, ...]
    operations_per_node: float  # median; the applications of a site differ by factors of 100
    read_bytes: float  # per job, median
    write_bytes: float
    request_bytes: int
    busy_share: tuple[float, float] = (0.5, 0.98)
    failed_share: float = 0.0  # of its opens
    weight: float = 1.0  # of its number of jobs


_FAMILIES = (
    _Family("train.py", (1, 1, 2), 300, 8e9, 4e8, MIB, failed_share=0.3),
    _Family("hist_ana", (1, 1, 2), 400, 8e9, 2e8, MIB // 2),
    _Family("vasp_std", (2, 2, 4, 4, 8), 60, 2e9, 9e9, MIB),
    _Family("gmx_mpi", (1, 2, 4, 8), 40, 1e9, 2e10, 4 * MIB),
    _Family("paraview", (1, 2, 4), 150, 4e10, 1e9, MIB),
    _Family("wrf.exe", (8, 16, 16, 32), 90, 6e9, 8e10, 4 * MIB),
    _Family("blastn", (1, 1, 1), 1_500, 2e9, 1e8, 65_536),
    _Family("make_check", (1, 1), 3_000, 2e8, 2e8, 65_536, (0.2, 0.6), 0.4),
    _Family("interactive", (1, 1, 2), 250, 1e8, 1e8, 262_144, (0.005, 0.1)),
    _Family("stage_in", (1, 2), 500, 2e11, 2e11, 4 * MIB, (0.01, 0.06), weight=0.1),
)
_WEIGHTS = np.array([family.weight for family in _FAMILIES])
_WEIGHTS /= _WEIGHTS.sum()


def reads_of(operations: Mapping[str, float]) -> Transfers:
    """Return one read of each opened file."""
    return Transfers(int(operations.get("open", 0)), 65_536)


def ordinary(chance: Chance) -> Play:
    """Read the input, compute, and write results."""
    family = _FAMILIES[int(chance.choice(len(_FAMILIES), p=_WEIGHTS))]
    nodes = int(chance.choice(family.nodes))
    runtime_s = int(np.clip(chance.lognormal(np.log(15), 0.7), 4, 90) * MINUTE_S)
    operations = shares(
        np.clip(nodes * family.operations_per_node * chance.lognormal(0, 0.9), 20, 60_000), MIX
    )
    failed = operations["open"] * family.failed_share / (1 - family.failed_share)
    half = {kind: count / 2 for kind, count in operations.items()}
    reads, writes = (
        Transfers(
            int(usual * chance.lognormal(0, 0.5) / family.request_bytes), family.request_bytes
        )
        for usual in (family.read_bytes, family.write_bytes)
    )
    lasts_s = int(min(runtime_s * _READING_SHARE, _READING_S))
    first = half | {"open": half["open"] + failed}
    end_s = runtime_s - 10
    return Play(
        "ordinary",
        family.name,
        nodes,
        runtime_s,
        (
            *phase(chance, 5, 5 + lasts_s, first, reads=reads, failed_opens=failed),
            *phase(chance, end_s - lasts_s, end_s, half, writes=writes),
        ),
        busy_share=chance.uniform(*family.busy_share),
    )
