"""Senders of requests outside jobs: log-in nodes, transfer nodes, a policy engine."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simulator import site
from simulator.activity import Burst, Source, Transfers
from simulator.clock import MINUTE_S
from simulator.labelled.heavy import most_requests
from simulator.labelled.play import between, later, phase, shares

_BROWSING = {"open": 0.22, "close": 0.2, "getattr": 0.38, "getxattr": 0.1, "unlink": 0.1}
_CRAWLING = {"open": 0.15, "close": 0.1, "getattr": 0.65, "getxattr": 0.1}
_COPYING = {"open": 0.3, "close": 0.3, "getattr": 0.2, "setattr": 0.2}
_CALM_PER_S = 1.0  # of each host in the history
_LOGIN_PER_S, _TRANSFER_PER_S = (2.0, 10.0), (4.0, 30.0)  # in the stream


@dataclass(frozen=True, eq=False)
class Host:
    """A host outside any job.

    Args:
        nid: its NID.
        process: name and user id of its process, as in its requests; "": sends none.
        source: its demand.
    """

    nid: str
    process: str
    source: Source


def hosts(
    chance: np.random.Generator, begun: int, opened: int, closed: int, capacity_per_s: float
) -> Iterator[Host]:
    """Yield all hosts: quiet before the stream, busy in it, some with a crawl.

    Args:
        chance: random generator.
        begun: start of the history.
        opened: start of the stream.
        closed: end of the stream.
        capacity_per_s: of the server.
    """
    lasts_s = closed - opened
    for n, nid in enumerate(site.HOST_OF_NID):
        is_transfer = n in (2, 3)
        mix = _COPYING if is_transfer else _BROWSING
        per_s = chance.uniform(*(_TRANSFER_PER_S if is_transfer else _LOGIN_PER_S))
        files = Transfers(int(per_s * lasts_s), 4_194_304) if is_transfer else Transfers()
        calm_s = opened - begun
        bursts = [
            *phase(chance, -calm_s, 0, shares(_CALM_PER_S * calm_s, mix)),
            *phase(chance, 0, lasts_s, shares(per_s * lasts_s, mix), reads=files),
            *_crawl(chance, lasts_s, capacity_per_s, between(chance, 0.003, 1)),
        ]
        name = "globus-gridftp" if is_transfer else str(chance.choice(["find", "rsync", "tar"]))
        process = f"{name}.{20_000 + n}" if chance.random() < 1 / 2 else ""
        source = Source(
            process or None,
            np.array([site.client(nid)]),
            later(sorted(bursts, key=_start), opened),
            spread=(1.0,),
        )
        yield Host(nid, process, source)


def _crawl(
    chance: np.random.Generator, stream_s: int, capacity_per_s: float, strength: float
) -> Iterator[Burst]:
    """Yield some minutes of heavier activity."""
    lasts_s = int(between(chance, 30, 900))
    begin = int(chance.integers(5 * MINUTE_S, stream_s - lasts_s - 3 * MINUTE_S))
    operations = min(1.5 * strength * capacity_per_s * lasts_s, most_requests(capacity_per_s) / 4)
    return phase(chance, begin, begin + lasts_s, shares(operations, _CRAWLING))


def _start(burst: Burst) -> int:
    return burst.start
