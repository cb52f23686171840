"""A scaling test: the copy of 4 GB to the memory of each node, and of the output back to Lustre."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.experiments.example import Example, File
from simulator.randomness import stream

if TYPE_CHECKING:
    from pathlib import Path

NODES = (1, 5, 150, 400, 800)
REPETITIONS = 5
# Seconds on n nodes: constant + factor * n^exponent, with a relative spread.
TRUTH = {
    "copy in": (7.5, 0.09, 0.72),
    "copy out": (0.62, 0.004, 0.55),
}
OUTLIER = ("copy in", 400, 3)  # arm, nodes, repetition
_SPREAD = 0.05
_SLOW = 2.4


def write(folder: Path, seed: int) -> Example:
    """Write a table of runs for each direction."""
    folder.mkdir(parents=True, exist_ok=True)
    example = Example(
        "Copies to memory by number of nodes",
        "Is moving the working directory to memory acceptable for large jobs? Input of 4 GB per "
        "node, five repetitions with 1 to 800 nodes.",
    )
    generator = stream(seed, "scaling example")
    for arm, (constant, factor, exponent) in TRUTH.items():
        lines = ["nodes,repetition,seconds"]
        for nodes in NODES:
            for repetition in range(1, REPETITIONS + 1):
                seconds = constant + factor * nodes**exponent
                seconds *= generator.lognormal(0, _SPREAD)
                seconds *= _SLOW if (arm, nodes, repetition) == OUTLIER else 1
                lines.append(f"{nodes},{repetition},{seconds:.3f}")
        path = folder / f"{arm.replace(' ', '-')}.csv"
        path.write_text("\n".join([*lines, ""]))
        example.files.append(File("runs", path, arm))
    return example
