"""Output of IOR: writes and reads with 2 to 128 nodes, to a file per process and a shared file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from simulator.experiments.example import Example, File
from simulator.randomness import stream

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

NODES = (2, 8, 32, 128)
REPETITIONS = 3
# Bandwidth in MiB/s: of one node, and of the whole filesystem.
TRUTH = {
    ("file-per-process", "write"): (900.0, 42_000.0),
    ("file-per-process", "read"): (1_100.0, 55_000.0),
    ("single-shared-file", "write"): (700.0, 14_000.0),
    ("single-shared-file", "read"): (900.0, 30_000.0),
}
_PER_NODE = 16
_BLOCK_MIB = 4_096
_START = datetime(2017, 9, 11, 9, tzinfo=UTC)
_CTIME = "%a %b %e %H:%M:%S %Y"
_SPREAD = 0.07
_HEADER = (
    "access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   "
    "close(s)   total(s)   iter\n"
    "------    ---------  ----       ----------  ---------- ---------  --------   --------   "
    "--------   --------   ----"
)


def write(folder: Path, seed: int) -> Example:
    """Write an output for each number of nodes and kind of file."""
    folder.mkdir(parents=True, exist_ok=True)
    example = Example(
        "Output bandwidth with IOR",
        "A file per process against one shared file, with 2 to 128 nodes and three repetitions.",
    )
    generator = stream(seed, "ior example")
    start = _START
    for access in ("file-per-process", "single-shared-file"):
        for nodes in NODES:
            path = folder / f"{access}-{nodes}.txt"
            path.write_text(_output(generator, access, nodes, start))
            example.files.append(File("ior", path, access))
            start += timedelta(minutes=20)
    return example


def _output(generator: np.random.Generator, access: str, nodes: int, start: datetime) -> str:
    tasks = nodes * _PER_NODE
    began = start.strftime(_CTIME)
    flag = "-F " if access == "file-per-process" else ""
    lines = [
        "IOR-3.3.0: MPI Coordinated Test of Parallel I/O",
        f"Began               : {began}",
        f"Command line        : ior -a POSIX {flag}-w -r -C -i {REPETITIONS} -t 1m -b 4g -o out",
        "Machine             : Linux nid00012",
        "TestID              : 0",
        f"StartTime           : {began}",
        "",
        "Options: ",
        "api                 : POSIX",
        "apiVersion          : ",
        "test filename       : out",
        f"access              : {access}",
        "type                : independent",
        "segments            : 1",
        "ordering in a file  : sequential",
        "ordering inter file : constant task offset",
        "task offset         : 1",
        f"nodes               : {nodes}",
        f"tasks               : {tasks}",
        f"clients per node    : {_PER_NODE}",
        f"repetitions         : {REPETITIONS}",
        "xfersize            : 1 MiB",
        "blocksize           : 4 GiB",
        f"aggregate filesize  : {4 * tasks} GiB",
        "",
        "Results: ",
        "",
        _HEADER,
    ]
    for repetition in range(REPETITIONS):
        for operation in ("write", "read"):
            of_node, of_all = TRUTH[access, operation]
            # Nodes share the filesystem: the bandwidth saturates.
            mib_per_s = 1 / (1 / (nodes * of_node) + 1 / of_all) * generator.lognormal(0, _SPREAD)
            total_s = tasks * _BLOCK_MIB / mib_per_s
            lines.append(
                f"{operation:<10}{mib_per_s:<11.2f}{mib_per_s * 1.002:<11.2f}"
                f"{tasks / mib_per_s:<12.6f}{_BLOCK_MIB * 1024:<11}{1024:<11.2f}{0.02:<11.6f}"
                f"{total_s - 0.05:<11.2f}{0.03:<11.6f}{total_s:<11.2f}{repetition:<5}"
            )
    return "\n".join([*lines, f"Finished            : {began}", ""])
