"""Bursts of output from many nodes to many storage targets, in turn, with transient stragglers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simulator.experiments.example import Example, File
from simulator.randomness import stream

if TYPE_CHECKING:
    from pathlib import Path

_MIB = 1024**2
_PEAK = 110 * _MIB  # bytes/s of one client with one target
_PAUSE_S = (7.0, 15.0)  # between bursts
_SPREAD = 0.08  # of the logarithm of a bandwidth
_SLOW = 1.65  # times as long on a slow target, which itself limits the bandwidth
_SLOW_SPREAD = 0.02
_DENSE = 0.08  # of the bandwidth that the densest set of nodes loses with large bursts
_TORUS = (25, 16, 24)


@dataclass(frozen=True)
class Truth:
    """How stragglers arise."""

    pairs: int = 126
    bursts: int = 220
    persistent: float = 0.0  # share of the targets that are always slow
    onsets_per_s: float = 0.0012  # of a target: it becomes slow
    hold_s: float = 32.0  # mean time that it stays slow


SIZES = {"bursts of 32 MiB": 32 * _MIB, "bursts of 128 MiB": 128 * _MIB}
TRUTHS = {32 * _MIB: Truth(), 128 * _MIB: Truth(hold_s=18.0)}  # long bursts outlast slow phases


def write(folder: Path, seed: int) -> Example:
    """Write a series of each size."""
    folder.mkdir(parents=True, exist_ok=True)
    example = Example(
        "Output performance and stragglers",
        "126 nodes write to 126 targets in turn, in bursts of 32 and 128 MiB. Do slow targets stay "
        "slow, and does the past predict them?",
    )
    for name, size in SIZES.items():
        path = folder / f"{name.replace(' ', '-')}.csv"
        path.write_text(series(stream(seed, f"pairs example {size}"), size, TRUTHS[size]))
        example.files.append(File("pair_series", path, name, name))
    return example


def series(generator: np.random.Generator, size: int, truth: Truth) -> str:
    """Return a series of transfers of `size` bytes as CSV."""
    count = truth.pairs
    always = generator.random(count) < truth.persistent
    until, previous, now = np.zeros(count), 0.0, 0.0
    lines = ["time,client,target,bytes,seconds,x,y,z"]
    for burst in range(truth.bursts):
        onset = generator.random(count) < -np.expm1(-truth.onsets_per_s * (now - previous))
        until = np.where(onset, now + generator.exponential(truth.hold_s, count), until)
        target = (np.arange(count) + burst) % count
        slow = (always | (until > now))[target]
        spread, positions = _allocation(generator, count)
        bandwidth = _PEAK * (1 - _DENSE * (1 - spread) * (size > 64 * _MIB))
        usual = generator.lognormal(0, _SPREAD, count)
        limited = _SLOW * generator.lognormal(0, _SLOW_SPREAD, count)
        seconds = size / bandwidth * np.where(slow, limited, usual)
        starts = now + generator.exponential(0.02, count)
        lines += [
            f"{starts[client]:.4f},nid{client:05d},atlas2-OST{target[client]:04x},{size},"
            f"{seconds[client]:.4f},{x},{y},{z}"
            for client, (x, y, z) in enumerate(positions.tolist())
        ]
        previous, now = now, float((starts + seconds).max()) + generator.uniform(*_PAUSE_S)
    return "\n".join([*lines, ""])


def _allocation(
    generator: np.random.Generator, count: int
) -> tuple[float, np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
    """Return how far a new set of nodes is spread (0 dense, 1 far), and their positions."""
    spread = float(generator.uniform())
    extent = np.maximum(np.array(_TORUS) * (0.3 + 0.7 * spread), 1)
    positions = np.floor(generator.uniform(0, 1, (count, len(_TORUS))) * extent)
    return spread, positions.astype(np.int64)
