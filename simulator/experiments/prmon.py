"""Samples of prmon: the processes of a job that reads, computes and waits in turn."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERVAL_S = 30
_HEADER = (
    *("Time", "wtime", "stime", "utime", "pss", "rss", "swap", "vmem", "rchar", "read_bytes"),
    *("wchar", "write_bytes", "rx_bytes", "rx_packets", "tx_bytes", "tx_packets"),
    *("nprocs", "nthreads"),
)
_START_KB = 380_000
_FULL_KB = 690_000
_GROWTH_S = 120.0  # until the memory is near its final size
_PAGE_BYTES = 4_096
_PACKET_BYTES = 1_448
_OUTPUT_BYTES_PER_S = 9_000


def samples(
    starts_s: int,
    wall_s: float,
    cpu_s: float,
    system_s: float,
    *,
    reads: Sequence[tuple[float, int]],
    generator: np.random.Generator,
) -> str:
    """Return the samples of a run, whose reads are spread over its CPU time.

    Args:
        starts_s: start of the run, in seconds since 1970.
        wall_s: length of the run.
        cpu_s: user CPU time.
        system_s: system CPU time.
        reads: seconds and bytes of each read, in order.
        generator: randomness of the memory.
    """
    computing_s = (wall_s - sum(seconds for seconds, _ in reads)) / (len(reads) + 1)
    ends_s = np.array(list(accumulate(computing_s + seconds for seconds, _ in reads)))
    read_bytes = np.array(list(accumulate(size for _, size in reads)))
    waited_s = np.array(list(accumulate(seconds for seconds, _ in reads)))
    lines = ["\t".join(_HEADER)]
    for elapsed_s in range(_INTERVAL_S, int(wall_s) + 1, _INTERVAL_S):
        done = int(np.searchsorted(ends_s, elapsed_s, side="right"))
        downloaded, waited = (
            (int(read_bytes[done - 1]), float(waited_s[done - 1])) if done else (0, 0.0)
        )
        share = min(max(elapsed_s - waited, 0.0) / (wall_s - waited_s[-1]), 1.0)
        grown = 1 - np.exp(-elapsed_s / _GROWTH_S)
        rss = int(_START_KB + (_FULL_KB - _START_KB) * grown + generator.normal(0, 2_000))
        written = int(_OUTPUT_BYTES_PER_S * elapsed_s)
        values = (
            *(starts_s + elapsed_s, elapsed_s, int(system_s * share), int(cpu_s * share)),
            *(rss - 6_000, rss, 0, rss + 550_000, downloaded + 20_000_000),
            *(downloaded // _PAGE_BYTES * _PAGE_BYTES, written + 250_000, written),
            *(int(downloaded * 1.03), downloaded // _PACKET_BYTES, downloaded // 60),
            *(downloaded // (2 * _PACKET_BYTES), 1, 2),
        )
        lines.append("\t".join(map(str, values)))
    return "\n".join(lines) + "\n"
