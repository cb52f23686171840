"""Who sends requests without any job: log-in nodes, processes, machines nobody registered."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from simulator import site
from simulator.activity import Burst, Source
from simulator.cases.cast import CALM_S, STREAM_S
from simulator.cases.filesystems import MOUNTED_BY, SMALL, Filesystem
from simulator.cases.play import phase, shares
from simulator.clock import MINUTE_S
from simulator.jobs import Ints

LOGINS = tuple(site.LOGIN_NIDS)
_CALM_PER_S = 0.12  # each log-in node, before the stream
_BROWSING = {"open": 0.22, "close": 0.2, "getattr": 0.38, "getxattr": 0.1, "unlink": 0.1}
_CRAWLING = {"open": 0.2, "close": 0.1, "getattr": 0.6, "getxattr": 0.1}
_PER_S = 25.0  # requests over five minutes: from so many on a host is a burden
_UNREGISTERED = 40  # nodes of a machine that nobody told of
_MOUNTED_PER_S = 2.5


@dataclass(frozen=True, eq=False)
class Host:
    """A host outside any job, or one process of it that tells its name."""

    name: str  # "": nobody registered it
    filesystem: Filesystem
    source: Source
    is_process: bool = False


def hosts(chance: np.random.Generator, opened: int) -> list[Host]:
    """Return all of them; the first are of the small filesystem."""
    found = list(_of_the_small(chance, opened))
    positives = chance.permutation([chance.uniform(0.32, 0.7), chance.uniform(0.27, 0.45)])
    third = chance.choice(
        [chance.uniform(0.005, 0.06), np.exp(chance.uniform(np.log(0.16), np.log(0.25)))]
    )
    for filesystem, share in zip(MOUNTED_BY, [*positives.tolist(), float(third)], strict=True):
        found += _mounting(chance, opened, filesystem, share)
    return found


def _of_the_small(chance: np.random.Generator, opened: int) -> Iterator[Host]:
    order = chance.permutation(len(LOGINS)).tolist()
    amounts = [
        float(np.exp(chance.uniform(np.log(1.5), np.log(2.8)))),
        float(np.exp(chance.uniform(np.log(0.8), np.log(1.25)))),
        0.0,
        0.0,
    ]
    for login, amount in zip(order, amounts, strict=True):
        nid = LOGINS[login]
        yield _host(
            chance,
            opened,
            site.HOST_OF_NID[nid],
            np.array([site.client(nid)]),
            amount,
            chance.uniform(0.5, 4.0),
        )
    policy = np.array([site.client(site.POLICY_NID)])
    amount = float(np.exp(chance.uniform(np.log(1.5), np.log(2.8))))
    yield _host(chance, opened, "updatedb.0", policy, amount, 0.3, is_process=True)
    for process in ("rbh-scan.0", "rsync.11902", "bash.10233"):
        clients = policy if process == "rbh-scan.0" else np.array([site.client(LOGINS[order[2]])])
        yield _host(
            chance, opened, process, clients, 0.0, chance.uniform(0.3, 3.0), is_process=True
        )
    yield _strangers(chance, opened, SMALL, chance.uniform(0.2, 0.8))


def _host(
    chance: np.random.Generator,
    opened: int,
    name: str,
    clients: Ints,
    amount: float,
    usual_per_s: float,
    *,
    is_process: bool = False,
) -> Host:
    """Return a host that is calm, then works, and for some minutes does so many times too much."""
    begin = int(chance.integers(15, 70)) * MINUTE_S
    lasts_s = int(chance.integers(330, 450))
    bursts = [
        *phase(chance, -CALM_S, 0, shares(_CALM_PER_S * CALM_S, _BROWSING)),
        *phase(chance, 0, STREAM_S, shares(usual_per_s * STREAM_S, _BROWSING)),
    ]
    if amount:
        operations = shares(_PER_S * amount * lasts_s, _CRAWLING)
        bursts += phase(chance, begin, begin + lasts_s, operations)
    job_id = name if is_process else None
    return Host(name, SMALL, _source(job_id, clients, bursts, opened), is_process)


def _mounting(
    chance: np.random.Generator, opened: int, filesystem: Filesystem, share: float
) -> Iterator[Host]:
    """Yield who mounts a filesystem: log-in nodes, and so many of the requests are strangers'."""
    for nid in LOGINS:
        rate = _MOUNTED_PER_S * (1 - share) / len(LOGINS)
        bursts = phase(chance, 0, STREAM_S, shares(rate * STREAM_S, _BROWSING))
        source = _source(None, np.array([site.client(nid)]), bursts, opened)
        yield Host(site.HOST_OF_NID[nid], filesystem, source)
    yield _strangers(chance, opened, filesystem, _MOUNTED_PER_S * share)


def _strangers(
    chance: np.random.Generator, opened: int, filesystem: Filesystem, per_s: float
) -> Host:
    clients = site.FIRST_ANALYSIS_CLIENT + np.sort(
        chance.choice(site.ANALYSIS_NODE_COUNT, _UNREGISTERED, replace=False)
    )
    bursts = phase(chance, 0, STREAM_S, shares(per_s * STREAM_S, _BROWSING))
    return Host("", filesystem, _source(None, clients, bursts, opened))


def _source(job_id: str | None, clients: Ints, bursts: Iterable[Burst], opened: int) -> Source:
    return Source(
        job_id,
        clients,
        tuple(
            replace(burst, start=burst.start + opened, end=burst.end + opened) for burst in bursts
        ),
        spread=(1.0,),
    )
