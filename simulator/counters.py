"""How job_stats count: entries that live while their source is active, and are polled."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.activity import MDT_KINDS, Source
from simulator.jobs import Ints

CLEANUP_S = 600  # job_cleanup_interval: an entry that idles longer is dropped


@dataclass(frozen=True)
class Entry:
    """A job id's counters as one poll shows them, totals since the entry was created."""

    job_id: str
    snapshot_s: int  # last update
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Life:
    """An entry from its creation to its end: dropped when idle, or zeroed by a remount."""

    begin: int
    until: int  # the last moment at which it is visible
    intervals: tuple[tuple[int, int], ...]

    def visible(self, polls: Ints) -> Ints:
        """Return which polls show it (indices into `polls`)."""
        return np.flatnonzero((polls > self.begin) & (polls <= self.until))

    def updated(self, poll: int) -> int:
        """Return the last update that a poll shows."""
        return max(min(poll, end) for start, end in self.intervals if start < poll)


@dataclass(frozen=True)
class Sightings:
    """What the polls of one target show of one life of one entry."""

    job_id: str
    begin: int
    polls: Ints  # indices, ascending
    snapshot_s: tuple[int, ...]
    counts: Ints  # (polls, counters)


def lives(intervals: Iterable[tuple[int, int]], remounts: Sequence[int]) -> list[Life]:
    """Cut a source's active intervals into the lives of its entry."""
    pieces: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        cuts = [moment for moment in remounts if start < moment < end]
        pieces += zip([start, *cuts], [*cuts, end], strict=True)
    groups: list[list[tuple[int, int]]] = []
    for piece in pieces:
        if groups and _continues(groups[-1], piece[0], remounts):
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return [_life(group, remounts) for group in groups]


def _continues(group: list[tuple[int, int]], start: int, remounts: Sequence[int]) -> bool:
    last = max(end for _, end in group)
    return start - last <= CLEANUP_S and not any(last <= moment <= start for moment in remounts)


def _life(group: list[tuple[int, int]], remounts: Sequence[int]) -> Life:
    begin, last = group[0][0], max(end for _, end in group)
    until = min([last + CLEANUP_S, *(moment - 1 for moment in remounts if moment > begin)])
    return Life(begin, until, tuple(group))


def mdt_sightings(source: Source, polls: Ints, remounts: Sequence[int]) -> Iterator[Sightings]:
    """Yield what the polls of the MDT show of a source; counters are those of MDT_KINDS."""
    if source.job_id is None:
        return
    for life in lives(source.mdt_intervals(), remounts):
        seen = life.visible(polls)
        counts = source.mdt_counts(np.append(polls[seen], life.begin))
        yield _sightings(source.job_id, life, polls, seen, counts[:-1] - counts[-1])


def ost_sightings(source: Source, ost: int, polls: Ints) -> Iterator[Sightings]:
    """Yield what the polls of an OST show of a source.

    Counters: reads, then least, greatest and summed bytes; the same of writes.
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
    for life in lives(active, ()):
        seen = life.visible(polls)
        done, _ = source.ost_requests(ost, np.append(polls[seen], life.begin))
        requests = done[:-1] - done[-1]  # (polls, bursts, reads and writes)
        used = requests > 0
        columns = [
            requests.sum(axis=1),
            np.where(used, sizes, np.iinfo(np.int64).max).min(axis=1) * used.any(axis=1),
            np.where(used, sizes, 0).max(axis=1),
            (requests * sizes).sum(axis=1),
        ]
        counts = np.stack(columns, axis=2).reshape(len(seen), 2 * len(columns))
        yield _sightings(source.job_id, life, polls, seen, counts)


def _sightings(job_id: str, life: Life, polls: Ints, seen: Ints, counts: Ints) -> Sightings:
    updates = tuple(life.updated(int(poll)) for poll in polls[seen])
    return Sightings(job_id, life.begin, seen, updates, counts)


def entries_by_poll(sightings: Iterable[Sightings], poll_count: int) -> list[list[Entry]]:
    """Return what each poll shows, oldest entry first."""
    polls: list[list[tuple[int, Entry]]] = [[] for _ in range(poll_count)]
    for seen in sightings:
        for poll, updated, counts in zip(
            seen.polls.tolist(), seen.snapshot_s, seen.counts.tolist(), strict=True
        ):
            polls[poll].append((seen.begin, Entry(seen.job_id, updated, tuple(counts))))
    return [[entry for _, entry in sorted(poll, key=_age)] for poll in polls]


def _age(aged: tuple[int, Entry]) -> tuple[int, str]:
    return aged[0], aged[1].job_id


def mdt_totals(sources: Iterable[Source], polls: Ints, remounts: Sequence[int]) -> Ints:
    """Return the MDT's own totals at each poll, all sources together, since the last remount."""
    moments = np.concatenate([polls, np.array(remounts, dtype=np.int64)])
    done = np.zeros((len(moments), len(MDT_KINDS)), dtype=np.int64)
    for source in sources:
        during = (moments > source.start) & (moments < source.end)
        done[during] += source.mdt_counts(moments[during])
        done[moments >= source.end] += source.mdt_counts(np.array([source.end]))
    totals = done[: len(polls)]
    before = totals.copy()
    for n, moment in enumerate(remounts):
        totals[polls >= moment] = (before - done[len(polls) + n])[polls >= moment]
    return totals
