"""Polls the servers' counters and writes what they show, one file per poll and server."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from simulator import counters, polls, site
from simulator.activity import MDT_KINDS, RENAME, RENAMES, Source
from simulator.clock import MICROSECONDS, utc_name
from simulator.counters import Sightings
from simulator.formats import job_stats, md_stats
from simulator.jobs import Ints
from simulator.randomness import stream

_REMOUNTS = (polls.MDT_REMOUNT,)
_READ_LASTS_US = 43_017  # from job_stats to md_stats of one poll
_READ_SUM, _WRITE_SUM = 3, 7  # of the counters of counters.ost_sightings
# Operations since the MDT was mounted, long before the first poll; renames come below.
_BEFORE = {
    "open": 3_184_513_192,
    "close": 1_523_124_002,
    "mknod": 213_417_505,
    "link": 1_659_183,
    "unlink": 221_645_527,
    "mkdir": 16_733_108,
    "rmdir": 15_900_212,
    "samedir_rename": 33_870_450,
    "crossdir_rename": 2_410_034,
    "getattr": 2_804_551_870,
    "setattr": 94_114_205,
    "getxattr": 301_920_118,
    "setxattr": 120_043,
    "statfs": 88_901_450,
    "sync": 5_120_334,
}


@dataclass
class Shown:
    """What the files hold of each job id; sums over the lives of its entries."""

    mdt_reads: polls.Schedule
    mdt: dict[str, Ints] = field(default_factory=dict)  # by MDT_KINDS
    read_bytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    write_bytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    restarts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    # Of `restarts` on the MDT, those that no counter tells: each grew beyond its last value between
    # two neighbouring polls.
    hidden_restarts: dict[str, int] = field(default_factory=lambda: defaultdict(int))


def write(seed: int, sources: list[Source], start: int, end: int, out: Path) -> Shown:
    """Write job_stats of every target and md_stats of the MDT below `out`."""
    reads = polls.schedule(start, end, stream(seed, f"polls of {site.MDS}"))
    shown = Shown(reads)
    _write_job_stats_of_mdt(sources, reads.moments, out / "job_stats" / site.MDT, shown)
    _write_md_stats(sources, reads.moments, out / "md_stats" / site.MDT)
    for oss, osts in site.OSTS_OF_OSS.items():
        moments = polls.schedule(start, end, stream(seed, f"polls of {oss}")).moments
        dumps = [
            _job_stats_of_ost(ost, list(_ost_sightings(sources, ost, moments, shown)), moments)
            for ost in osts
        ]
        _write_polls(out / "job_stats" / oss, moments, map("".join, zip(*dumps, strict=True)))
    return shown


def _write_job_stats_of_mdt(
    sources: Iterable[Source], moments: Ints, folder: Path, shown: Shown
) -> None:
    sightings = []
    for source in sources:
        mine = list(counters.mdt_sightings(source, moments, _REMOUNTS))
        _account_mdt(mine, shown)
        sightings += mine
    entries = counters.entries_by_poll(sightings, len(moments))
    _write_polls(folder, moments, (job_stats.mdt(site.MDT, poll) for poll in entries))


def _write_md_stats(sources: Iterable[Source], moments: Ints, folder: Path) -> None:
    totals = counters.mdt_totals(sources, moments, _REMOUNTS)
    before = np.array([_BEFORE.get(kind, 0) for kind in MDT_KINDS])
    before[RENAME] = before[list(RENAMES)].sum()
    totals[moments < polls.MDT_REMOUNT] += before
    _write_polls(
        folder,
        moments,
        (
            md_stats.mdt(site.MDT, moment * MICROSECONDS + _READ_LASTS_US, total)
            for moment, total in zip(moments.tolist(), totals.tolist(), strict=True)
        ),
    )


def _job_stats_of_ost(ost: str, sightings: Iterable[Sightings], moments: Ints) -> list[str]:
    return [job_stats.ost(ost, poll) for poll in counters.entries_by_poll(sightings, len(moments))]


def _account_mdt(sightings: list[Sightings], shown: Shown) -> None:
    """Add up what the polls show of one source."""
    seen = [life for life in sightings if len(life.polls)]
    for life in seen:
        before = shown.mdt.get(life.job_id, np.zeros(len(MDT_KINDS), dtype=np.int64))
        shown.mdt[life.job_id] = before + life.counts[-1]
    for last, following in pairwise(seen):
        shown.restarts[last.job_id] += 1
        neighbours = following.polls[0] == last.polls[-1] + 1
        if neighbours and bool((following.counts[0] >= last.counts[-1]).all()):
            shown.hidden_restarts[last.job_id] += 1


def _ost_sightings(
    sources: Iterable[Source], ost: str, moments: Ints, shown: Shown
) -> Iterator[Sightings]:
    """Yield what the polls of an OST show, and add it up."""
    for source in sources:
        for life in counters.ost_sightings(source, site.OSTS.index(ost), moments):
            if len(life.polls):
                shown.read_bytes[life.job_id] += int(life.counts[-1, _READ_SUM])
                shown.write_bytes[life.job_id] += int(life.counts[-1, _WRITE_SUM])
                yield life


def _write_polls(folder: Path, moments: Ints, texts: Iterable[str]) -> None:
    """Write one file per poll; its name and its time of change are the time of the read."""
    folder.mkdir(parents=True, exist_ok=True)
    for moment, text in zip(moments.tolist(), texts, strict=True):
        path = folder / f"{utc_name(moment)}.txt"
        path.write_text(text)
        os.utime(path, (moment, moment))
