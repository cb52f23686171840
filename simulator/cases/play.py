"""What a job does from its start on, before anybody knows when and where it runs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from simulator.activity import Burst, Transfers
from simulator.cases.filesystems import LARGE, Filesystem
from simulator.clock import MINUTE_S

NOTHING = Transfers()
_STEADINESS = 25.0  # of what is done from minute to minute


@dataclass(frozen=True)
class Play:
    """A job to be: times count from its start.

    Args:
        part: what it plays, for the truth file.
        name: its name: that of its application.
        nodes: how many it needs.
        runtime_s: how long it runs.
        bursts: what it does.
        filesystem: where.
        busy_share: CPU time / (cores x wall time).
        blocked_share: of its enqueues, that wait for locks of its own other nodes.
        in_flight: requests under way at once, at most.
    """

    part: str
    name: str
    nodes: int
    runtime_s: int
    bursts: tuple[Burst, ...]
    filesystem: Filesystem = LARGE
    busy_share: float = 0.85
    blocked_share: float = 0.0
    in_flight: int | None = None


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
    """Yield so many operations in all, spread over the time, some more in one minute than another.

    Args:
        chance: the source of it.
        begin: seconds since the start of the job.
        end: likewise.
        operations: by kind.
        reads: how many, and how large each.
        writes: likewise.
        failed_opens: of its opens, those that find nothing.
    """
    pieces = max(round((end - begin) / MINUTE_S), 1)
    edges = np.rint(np.linspace(begin, end, pieces + 1)).astype(int).tolist()
    reached = np.cumsum(chance.gamma(_STEADINESS, size=pieces))
    reached = np.concatenate([[0.0], reached / reached[-1]])
    wanted = [*operations.values(), failed_opens, reads.count, writes.count]
    done = np.rint(np.outer(reached, wanted)).astype(int)
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
    """Return operations by kind that add up to a total."""
    whole = sum(mix.values())
    return {kind: total * share / whole for kind, share in mix.items()}


def later(bursts: Iterable[Burst], by_s: int) -> tuple[Burst, ...]:
    """Return the same at another time."""
    return tuple(replace(one, start=one.start + by_s, end=one.end + by_s) for one in bursts)


def between(chance: np.random.Generator, least: float, most: float) -> float:
    """Draw an amount; a factor is as likely wherever it lies between them."""
    return float(np.exp(chance.uniform(np.log(least), np.log(most))))
