"""All examples of experiments, and a list of their files."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from simulator.experiments import access, cms, ior, pairs, scaling, strace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from simulator.experiments.example import Example

INDEX = "files.csv"
COLUMNS = ("experiment", "description", "format", "arm", "run", "file")

# Folder and writer of each example, in the order of loading.
EXAMPLES: tuple[tuple[str, Callable[[Path, int], Example]], ...] = (
    ("strace", strace.write_example),
    ("cms-storage-timing", cms.write),
    ("access-methods", access.write),
    ("scaling", scaling.write),
    ("ior", ior.write),
    ("output-performance", pairs.write),
)


def write(folder: Path, *, seed: int) -> None:
    """Write all examples and their index to an empty or new folder.

    The index has a row per file: experiment, format, arm and run, and the file's path in the
    folder. An empty arm or run is named in the file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / INDEX).open("w", newline="") as index:
        rows = csv.writer(index)
        rows.writerow(COLUMNS)
        for name, write_example in EXAMPLES:
            example = write_example(folder / name, seed)
            for file in example.files:
                path = file.path.relative_to(folder)
                rows.writerow(
                    (example.name, example.description, file.format, file.arm, file.run, path)
                )
