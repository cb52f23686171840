"""Polls the servers' counters and writes one file per poll and server."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from simulator import site
from simulator.activity import MDT_KINDS, RENAME, RENAMES, Source
from simulator.batch.jobs import Ints
from simulator.clock import MICROSECONDS, utc_name
from simulator.faults import Kind
from simulator.formats import job_stats, md_stats
from simulator.formats.releases import counts_failed_opens
from simulator.plan import Plan
from simulator.progress import say
from simulator.randomness import stream
from simulator.servers import counters, polls
from simulator.servers.counters import NEVER, Entry, Server, Sightings
from simulator.servers.polls import What

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
class FileTotals:
    """Content of the files by job id, summed over the lives of its entries."""

    mdt_reads: polls.Schedule
    mdt: dict[str, Ints] = field(default_factory=dict)  # by MDT_KINDS
    read_bytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    write_bytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    restarts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    # Restarts that no counter shows, on any target: each counter exceeds its last value between
    # two neighbouring polls.
    hidden_restarts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    files: int = 0


def write(plan: Plan, sources: list[Source], out: Path) -> FileTotals:
    """Write job_stats of every target and md_stats of the MDT below `out`."""
    file_totals = FileTotals(_schedule(plan, What.MDT, site.MDS))
    say("counters of the MDT by job")
    _write_job_stats_of_mdt(plan, sources, out / "job_stats" / site.MDT, file_totals)
    say("counters of the whole MDT")
    _write_md_stats(plan, sources, out / "md_stats" / site.MDT, file_totals)
    for oss, osts in site.OSTS_OF_OSS.items():
        say(f"counters of {oss}")
        moments = _schedule(plan, What.OSTS, oss).moments
        server = _server(plan, What.OSTS, oss)
        dumps = [
            _entries(list(_ost_sightings(sources, ost, moments, server, file_totals)), moments)
            for ost in osts
        ]
        texts = (
            "".join(job_stats.ost(ost, entries) for ost, entries in zip(osts, read, strict=True))
            for read in zip(*dumps, strict=True)
        )
        _write_polls(out / "job_stats" / oss, moments, texts, file_totals)
    return file_totals


def _schedule(plan: Plan, what: What, server: str) -> polls.Schedule:
    return polls.schedule(plan, what, server, stream(plan.seed, f"polls of {server}"))


def _server(plan: Plan, what: What, name: str) -> Server:
    upgrades = [
        fault.start
        for fault in plan.faults.matching(Kind.UPGRADE, name)
        if not counts_failed_opens(fault.version)
    ]
    return Server(polls.kept_s(plan, what), plan.faults.mounts(name), min(upgrades, default=NEVER))


def _write_job_stats_of_mdt(
    plan: Plan, sources: Iterable[Source], folder: Path, file_totals: FileTotals
) -> None:
    moments = file_totals.mdt_reads.moments
    server = _server(plan, What.MDT, site.MDS)
    sightings = []
    for source in sources:
        mine = list(counters.mdt_sightings(source, moments, server))
        _account_mdt(mine, file_totals)
        sightings += mine
    texts = (
        job_stats.mdt(
            site.MDT,
            entries,
            version=plan.faults.version_at(site.MDS, moment),
            clock_offset_s=plan.faults.clock_offset_s(site.MDS, moment),
        )
        for moment, entries in zip(moments.tolist(), _entries(sightings, moments), strict=True)
    )
    _write_polls(folder, moments, texts, file_totals)


def _write_md_stats(
    plan: Plan, sources: Iterable[Source], folder: Path, file_totals: FileTotals
) -> None:
    moments = _schedule(plan, What.WHOLE_MDT, site.MDS).moments
    server = _server(plan, What.MDT, site.MDS)
    totals = counters.mdt_totals(sources, moments, server)
    before = np.array([_BEFORE.get(kind, 0) for kind in MDT_KINDS])
    before[RENAME] = before[list(RENAMES)].sum()
    totals[moments < min(server.mounts, default=NEVER)] += before
    texts = (
        md_stats.mdt(
            site.MDT,
            (moment + plan.faults.clock_offset_s(site.MDS, moment)) * MICROSECONDS + _READ_LASTS_US,
            total,
            version=plan.faults.version_at(site.MDS, moment),
            mounted_s=max((at for at in server.mounts if at <= moment), default=plan.start),
        )
        for moment, total in zip(moments.tolist(), totals.tolist(), strict=True)
    )
    _write_polls(folder, moments, texts, file_totals)


def _entries(sightings: Iterable[Sightings], moments: Ints) -> list[list[Entry]]:
    return counters.entries_by_poll(sightings, len(moments))


def _account_mdt(lives: list[Sightings], file_totals: FileTotals) -> None:
    """Add the content of the polls of one source."""
    for life in lives:
        before = file_totals.mdt.get(life.job_id, np.zeros(len(MDT_KINDS), dtype=np.int64))
        file_totals.mdt[life.job_id] = before + life.counts[-1]
    if lives:
        file_totals.restarts[lives[0].job_id] += len(lives) - 1
        file_totals.hidden_restarts[lives[0].job_id] += _hidden_restarts(lives)


def _hidden_restarts(lives: list[Sightings]) -> int:
    """Count the lives that counters do not distinguish from the one before."""
    return sum(
        bool(
            following.polls[0] == last.polls[-1] + 1
            and (following.counts[0] >= last.counts[-1]).all()
        )
        for last, following in pairwise(lives)
    )


def _ost_sightings(
    sources: Iterable[Source], ost: str, moments: Ints, server: Server, file_totals: FileTotals
) -> Iterator[Sightings]:
    """Yield the content of an OST's polls, and add it to the totals."""
    for source in sources:
        mine = list(counters.ost_sightings(source, site.OSTS.index(ost), moments, server))
        for life in mine:
            file_totals.read_bytes[life.job_id] += int(life.counts[-1, _READ_SUM])
            file_totals.write_bytes[life.job_id] += int(life.counts[-1, _WRITE_SUM])
        if mine:
            file_totals.hidden_restarts[mine[0].job_id] += _hidden_restarts(mine)
        yield from mine


def _write_polls(
    folder: Path, moments: Ints, texts: Iterable[str], file_totals: FileTotals
) -> None:
    """Write one file per poll; its name and its modification time are the time of the read."""
    folder.mkdir(parents=True, exist_ok=True)
    for moment, text in zip(moments.tolist(), texts, strict=True):
        path = folder / f"{utc_name(moment)}.txt"
        path.write_text(text)
        os.utime(path, (moment, moment))
        file_totals.files += 1
