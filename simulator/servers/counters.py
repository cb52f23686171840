"""Counting of job_stats: entries that live while their source is active, and are polled."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.activity import MDT_KINDS, RENAME, RENAMES, Source
from simulator.batch.jobs import Floats, Ints

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Server:
    """A server's handling of its counters.

    Args:
        kept_s: it drops entries after this idle time (job_cleanup_interval).
        mounts: times when its targets were remounted.
        failures_until: time until which it counts failed opens.
    """

    kept_s: int
    mounts: Sequence[int] = ()
    failures_until: int = NEVER


@dataclass(frozen=True)
class Entry:
    """A job id's counters in one poll: totals since the entry was created."""

    job_id: str
    begun_s: int
    snapshot_s: int  # last update
    counts: tuple[int, ...]
    slowdowns: tuple[float, ...] | None = None  # of each counter's times; None: an idle server


@dataclass(frozen=True)
class Life:
    """An entry from its creation to its end: dropped when idle, or zeroed by a remount."""

    begin: int
    until: int  # the last time when it is visible
    intervals: tuple[tuple[int, int], ...]

    def visible(self, polls: Ints) -> Ints:
        """Return the polls that contain it (indices into `polls`)."""
        return np.flatnonzero((polls > self.begin) & (polls <= self.until))

    def updated(self, polls: Ints) -> Ints:
        """Return the last update in each poll."""
        starts, ends = np.array(self.intervals, dtype=np.int64).T
        reached = np.maximum.accumulate(ends)[np.searchsorted(starts, polls) - 1]
        updates: Ints = np.minimum(polls, reached)
        return updates


@dataclass(frozen=True)
class Sightings:
    """Content of one target's polls for one life of one entry."""

    job_id: str
    begin: int
    polls: Ints  # indices, ascending
    snapshot_s: Ints
    counts: Ints  # (polls, counters)
    slowdowns: Floats | None = None  # (polls, counters); None: an idle server


def lives(intervals: Iterable[tuple[int, int]], server: Server) -> list[Life]:
    """Divide a source's active intervals into the lives of its entry."""
    pieces: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        cuts = [moment for moment in server.mounts if start < moment < end]
        pieces += zip([start, *cuts], [*cuts, end], strict=True)
    groups: list[list[tuple[int, int]]] = []
    last = 0
    for start, end in pieces:
        goes_on = (
            groups
            and start <= last + server.kept_s
            and not any(last <= moment <= start for moment in server.mounts)
        )
        if goes_on:
            groups[-1].append((start, end))
            last = max(last, end)
        else:
            groups.append([(start, end)])
            last = end
    return [_life(group, server) for group in groups]


def _life(group: list[tuple[int, int]], server: Server) -> Life:
    begin, last = group[0][0], max(end for _, end in group)
    mounts = [moment - 1 for moment in server.mounts if moment > begin]
    return Life(begin, min([last + server.kept_s, *mounts]), tuple(group))


def mdt_sightings(source: Source, polls: Ints, server: Server) -> Iterator[Sightings]:
    """Yield a source's content in the polls of the MDT; counters follow MDT_KINDS."""
    if source.job_id is None:
        return
    for life in lives(source.mdt_intervals(), server):
        visible = life.visible(polls)
        if len(visible):
            moments = np.append(polls[visible], life.begin)
            counts = source.mdt_counted(moments, server.failures_until)
            yield _sightings(source.job_id, life, polls, visible, counts[:-1] - counts[-1])


def ost_sightings(source: Source, ost: int, polls: Ints, server: Server) -> Iterator[Sightings]:
    """Yield a source's content in the polls of an OST.

    Counters: number, minimum, maximum and sum of reads in bytes; the same for writes.
    """
    if source.job_id is None:
        return
    _, totals = source.ost_requests(ost, polls[:0])
    sizes = np.array([(b.reads.size_bytes, b.writes.size_bytes) for b in source.bursts])
    active = [
        (burst.start, burst.end)
        for burst, requests in zip(source.bursts, totals, strict=True)
        if requests.any()
    ]
    for life in lives(active, server):
        visible = life.visible(polls)
        if not len(visible):
            continue
        done, _ = source.ost_requests(ost, np.append(polls[visible], life.begin))
        requests = done[:-1] - done[-1]  # (polls, bursts, reads and writes)
        used = requests > 0
        columns = [
            requests.sum(axis=1),
            np.where(used, sizes, np.iinfo(np.int64).max).min(axis=1) * used.any(axis=1),
            np.where(used, sizes, 0).max(axis=1),
            (requests * sizes).sum(axis=1),
        ]
        counts = np.stack(columns, axis=2).reshape(len(visible), 2 * len(columns))
        yield _sightings(source.job_id, life, polls, visible, counts)


def _sightings(job_id: str, life: Life, polls: Ints, visible: Ints, counts: Ints) -> Sightings:
    return Sightings(job_id, life.begin, visible, life.updated(polls[visible]), counts)


def entries_by_poll(sightings: Iterable[Sightings], poll_count: int) -> list[list[Entry]]:
    """Return the content of each poll, oldest entry first."""
    polls: list[list[Entry]] = [[] for _ in range(poll_count)]
    for life in sightings:
        slowdowns = [None] * len(life.polls) if life.slowdowns is None else life.slowdowns.tolist()
        for poll, updated, counts, slowed in zip(
            life.polls.tolist(),
            life.snapshot_s.tolist(),
            life.counts.tolist(),
            slowdowns,
            strict=True,
        ):
            times = slowed and tuple(slowed)
            polls[poll].append(Entry(life.job_id, life.begin, updated, tuple(counts), times))
    return [sorted(poll, key=_age) for poll in polls]


def _age(entry: Entry) -> tuple[int, str]:
    return entry.begun_s, entry.job_id


def by_client(source: Source, times: Ints, failures_until: int) -> Ints:
    """Return the operations of each client before each of `times`: (times, clients, MDT_KINDS).

    The clients have equal shares, which add up to the operations of the source.
    """
    done = source.mdt_counted(times, failures_until)[:, None, :]
    places = np.arange(len(source.clients))[None, :, None]
    shares: Ints = (done + places) // len(source.clients)
    shares[:, :, RENAME] = shares[:, :, list(RENAMES)].sum(axis=2)
    return shares


def mdt_totals(sources: Iterable[Source], polls: Ints, server: Server) -> Ints:
    """Return the MDT's totals at each poll, over all sources, since the last mount."""
    mounts = np.array(server.mounts, dtype=np.int64)
    moments = np.concatenate([polls, mounts])
    done = np.zeros((len(moments), len(MDT_KINDS)), dtype=np.int64)
    for source in sources:
        during = (moments > source.start) & (moments < source.end)
        if during.any():
            done[during] += source.mdt_counted(moments[during], server.failures_until)
        over = moments >= source.end
        if over.any():
            done[over] += source.mdt_counted(np.array([source.end]), server.failures_until)
    totals, at_mount = done[: len(polls)].copy(), done[len(polls) :]
    for moment, before in zip(mounts.tolist(), at_mount, strict=True):
        totals[polls >= moment] = (done[: len(polls)] - before)[polls >= moment]
    return totals
