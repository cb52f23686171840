"""An access study: jobs that read through three protocols, near to the storage and far from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.experiments.example import Example, File
from simulator.randomness import stream

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

# CPU / wall-clock time of the jobs of a protocol: local, remote.
TRUTH = {"dcap": (0.65, 0.35), "dcap++": (0.78, 0.55), "xroot": (0.78, 0.40)}
LOCALITIES = ("local", "remote")
JOBS = 40  # of each kind
HUNG = {("dcap", "remote"): 4, ("dcap", "local"): 1}
FAILED = {("xroot", "remote"): 2}
# Mean seconds of the steps before a job that stages its input in.
STAGE_IN = {"write": 95.0, "checksum": 60.0, "read": 70.0}
_STAGED_SHARE = 0.70  # CPU / wall-clock time, with the steps
_READ_AHEAD_KIB = (32, 128, 512, 2_048)
_PENALTY = 0.02  # of the share, for each larger size: too much read-ahead harms
_SPREAD = 0.035
_COLUMNS = (
    *("arm", "run", "protocol", "locality", "read_ahead_kib", "events", "cpu_s", "wall_s"),
    *("max_pss_mib", "max_swap_mib", *(f"step:{name}" for name in STAGE_IN), "state"),
)


def write(folder: Path, seed: int) -> Example:
    """Write a table of runs."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = stream(seed, "access example")
    rows = [",".join(_COLUMNS)]
    for protocol, shares in TRUTH.items():
        for locality, share in zip(LOCALITIES, shares, strict=True):
            rows += _jobs(generator, protocol, locality, share)
    rows += _staged(generator)
    path = folder / "access.csv"
    path.write_text("\n".join([*rows, ""]))
    return Example(
        "Access methods",
        "Direct access through three protocols, on nodes near the storage and far from it, and "
        "stage-in. CPU efficiency of analysis jobs with the same events.",
        [File("runs", path)],
    )


def _jobs(generator: np.random.Generator, protocol: str, locality: str, share: float) -> list[str]:
    kind = (protocol, locality)
    states = ["hung"] * HUNG.get(kind, 0) + ["failed"] * FAILED.get(kind, 0)
    rows = []
    for number in range(JOBS):
        kib = _READ_AHEAD_KIB[number % len(_READ_AHEAD_KIB)]
        # The mean over all sizes is the share of the kind.
        excess = _READ_AHEAD_KIB.index(kib) - (len(_READ_AHEAD_KIB) - 1) / 2
        efficiency = share - _PENALTY * excess + generator.normal(0, _SPREAD)
        cpu_s = 3_000 * generator.lognormal(0, 0.05)
        run = f"{protocol}-{locality}-{number + 1}"
        rows.append(_row(generator, [run, protocol, locality, kib], cpu_s, cpu_s / efficiency))
    for number, state in enumerate(states, start=1):
        run = f"{protocol}-{locality}-{state}-{number}"
        cells = [protocol, run, protocol, locality, _READ_AHEAD_KIB[0], *[""] * 8, state]
        rows.append(",".join(map(str, cells)))
    return rows


def _row(
    generator: np.random.Generator,
    cells: list[object],
    cpu_s: float,
    wall_s: float,
    steps: tuple[str, ...] = ("", "", ""),
) -> str:
    memory = generator.normal(1_450, 60)
    swap = max(0.0, generator.normal(20, 15))
    run, protocol, locality, kib = cells
    figures = (20_000, f"{cpu_s:.1f}", f"{wall_s:.1f}", f"{memory:.0f}", f"{swap:.0f}")
    row = (protocol, run, protocol, locality, kib, *figures, *steps, "finished")
    return ",".join(map(str, row))


def _staged(generator: np.random.Generator) -> list[str]:
    rows = []
    for number in range(JOBS):
        cpu_s = 3_000 * generator.lognormal(0, 0.05)
        steps = tuple(
            f"{seconds * generator.lognormal(0, 0.15):.1f}" for seconds in STAGE_IN.values()
        )
        wall_s = cpu_s / (_STAGED_SHARE + generator.normal(0, _SPREAD))
        cells: list[object] = [f"stage-in-{number + 1}", "stage-in", "local", 0]
        rows.append(_row(generator, cells, cpu_s, wall_s, steps))
    return rows
