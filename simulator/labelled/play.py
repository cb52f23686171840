"""The demand of a job or host, independent of nodes and time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from simulator.activity import Burst, Transfers
from simulator.clock import MINUTE_S

NOTHING = Transfers()
_STEADINESS = 25.0  # of the activity from minute to minute


@dataclass(frozen=True)
class Play:
    """A job template: times count from its start.

    Args:
        part: role, for the truth file.
        name: job name: name of its application.
        nodes: number of nodes.
        runtime_s: run time.
        bursts: operations that it would do on an infinitely fast server.
        busy_share: CPU time / (cores x wall time).
        blocked_share: share of its enqueues that wait for each other's locks.
    """

    part: str
    name: str
    nodes: int
    runtime_s: int
    bursts: tuple[Burst, ...]
    busy_share: float = 0.85
    blocked_share: float = 0.0


def phase(
    chance: np.random.Generator,
    begin: int,
    end: int,
    operations: Mapping[str, float],
    *,
    reads: Transfers = NOTHING,
    writes: Transfers = NOTHING,
    failed_opens: float = 0,
) -> Iterator[Burst]:
    """Yield a total of operations, spread over the time with random variation by minute.

    Args:
        chance: random generator.
        begin: start, seconds after the start of the job.
        end: end, seconds after the start of the job.
        operations: operations by kind.
        reads: read requests.
        writes: write requests.
        failed_opens: number of opens without a result.
    """
    pieces = max(round((end - begin) / MINUTE_S), 1)
    edges = np.rint(np.linspace(begin, end, pieces + 1)).astype(int).tolist()
    reached = np.cumsum(chance.gamma(_STEADINESS, size=pieces))
    reached = np.concatenate([[0.0], reached / reached[-1]])
    totals = [*operations.values(), failed_opens, reads.count, writes.count]
    done = np.rint(np.outer(reached, totals)).astype(int)
    for piece, part in enumerate(np.diff(done, axis=0).tolist()):
        *counts, failed, read, written = part
        yield Burst(
            edges[piece],
            edges[piece + 1],
            dict(zip(operations, counts, strict=True)),
            Transfers(read, reads.size_bytes),
            Transfers(written, writes.size_bytes),
            failed,
        )


def shares(total: float, mix: Mapping[str, float]) -> dict[str, float]:
    """Return operations by kind with a given total."""
    whole = sum(mix.values())
    return {kind: total * share / whole for kind, share in mix.items()}


def later(bursts: Iterable[Burst], by_s: int) -> tuple[Burst, ...]:
    """Return the bursts at a later time."""
    return tuple(replace(burst, start=burst.start + by_s, end=burst.end + by_s) for burst in bursts)


def between(chance: np.random.Generator, lower: float, upper: float) -> float:
    """Draw an amount, uniform in its logarithm."""
    return float(np.exp(chance.uniform(np.log(lower), np.log(upper))))
