"""Senders of requests outside jobs: log-in nodes, processes, unregistered machines."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from simulator import site
from simulator.activity import Burst, Source
from simulator.batch.jobs import Ints
from simulator.cases import causes
from simulator.cases.cast import CALM_S, STREAM_S
from simulator.cases.filesystems import MOUNTED_BY, SMALL, Filesystem
from simulator.cases.play import between, later, phase, shares
from simulator.clock import MINUTE_S

LOGINS = tuple(site.LOGIN_NIDS)
_CALM_PER_S = 0.12  # per log-in node, before the stream
_BROWSING = {"open": 0.22, "close": 0.2, "getattr": 0.38, "getxattr": 0.1, "unlink": 0.1}
_CRAWLING = {"open": 0.2, "close": 0.1, "getattr": 0.6, "getxattr": 0.1}
_UNREGISTERED = 40  # nodes of an unregistered machine
_MOUNTED_PER_S = 2.5


@dataclass(frozen=True, eq=False)
class Host:
    """A host outside any job, or a process on it that sends its name."""

    name: str  # NID, or the name of the process; "": unregistered
    filesystem: Filesystem
    source: Source
    is_process: bool = False


def hosts(chance: np.random.Generator, opened: int) -> list[Host]:
    """Return all hosts and processes around a stream that begins at `opened`."""
    plenty = chance.permutation([chance.uniform(0.32, 0.7), chance.uniform(0.27, 0.45)]).tolist()
    little = chance.choice([chance.uniform(0.005, 0.06), between(chance, 0.16, 0.25)])
    senders = list(_small_filesystem_hosts(chance))
    for filesystem, share in zip(MOUNTED_BY, [*plenty, float(little)], strict=True):
        senders += _mounting(chance, filesystem, share)
    return [
        replace(host, source=replace(host.source, bursts=later(host.source.bursts, opened)))
        for host in senders
    ]


def _small_filesystem_hosts(chance: np.random.Generator) -> Iterator[Host]:
    logins = chance.permutation(LOGINS).tolist()
    amounts = [between(chance, 1.5, 2.8), between(chance, *causes.BORDERLINE), 0.0, 0.0]
    for nid, amount in zip(logins, amounts, strict=True):
        usual = _calm(chance, chance.uniform(0.5, 4.0))
        yield _host(SMALL, nid, [*usual, *_crawl(chance, amount)])
    crawl = _crawl(chance, between(chance, 1.5, 2.8))
    yield _process("updatedb.0", site.POLICY_NID, [*_calm(chance, 0.3), *crawl])
    for process, nid in (
        ("rbh-scan.0", site.POLICY_NID),
        ("rsync.11902", logins[2]),
        ("bash.10233", logins[3]),
    ):
        yield _process(process, nid, _calm(chance, chance.uniform(0.3, 3.0)))
    yield _strangers(chance, SMALL, chance.uniform(0.2, 0.8))


def _mounting(chance: np.random.Generator, filesystem: Filesystem, share: float) -> Iterator[Host]:
    """Yield hosts that mount a filesystem: log-in nodes, and unregistered ones by `share`."""
    for nid in LOGINS:
        rate = _MOUNTED_PER_S * (1 - share) / len(LOGINS)
        yield _host(filesystem, nid, _steady(chance, rate))
    yield _strangers(chance, filesystem, _MOUNTED_PER_S * share)


def _calm(chance: np.random.Generator, per_s: float) -> list[Burst]:
    """Return the activity before the stream and during it."""
    before = phase(chance, -CALM_S, 0, shares(_CALM_PER_S * CALM_S, _BROWSING))
    return [*before, *_steady(chance, per_s)]


def _steady(chance: np.random.Generator, per_s: float) -> Iterator[Burst]:
    return phase(chance, 0, STREAM_S, shares(per_s * STREAM_S, _BROWSING))


def _crawl(chance: np.random.Generator, amount: float) -> Iterator[Burst]:
    """Yield some minutes of excessive activity."""
    begin = int(chance.integers(15, 70)) * MINUTE_S
    lasts_s = int(chance.integers(330, 450))
    operations = causes.HOST_PER_S * amount * lasts_s
    return phase(chance, begin, begin + lasts_s, shares(operations, _CRAWLING))


def _host(filesystem: Filesystem, nid: str, bursts: Iterable[Burst]) -> Host:
    source = _source(None, np.array([site.client(nid)]), bursts)
    return Host(nid, filesystem, source)


def _process(name: str, nid: str, bursts: Iterable[Burst]) -> Host:
    source = _source(name, np.array([site.client(nid)]), bursts)
    return Host(name, SMALL, source, is_process=True)


def _strangers(chance: np.random.Generator, filesystem: Filesystem, per_s: float) -> Host:
    clients = site.FIRST_ANALYSIS_CLIENT + np.sort(
        chance.choice(site.ANALYSIS_NODE_COUNT, _UNREGISTERED, replace=False)
    )
    return Host("", filesystem, _source(None, clients, _steady(chance, per_s)))


def _source(job_id: str | None, clients: Ints, bursts: Iterable[Burst]) -> Source:
    return Source(job_id, clients, tuple(bursts), spread=(1.0,))
