"""Writes the logs of today's centre continuously, under one folder.

rpctrace.log       the debug log of the MDS; rotated, and removed after a while
job_stats.txt, md_stats.txt, exports.txt, squeue.txt, sacct.txt
                   current output of commands: replaced as a whole
OSS.txt            the same of the OSTs of a server (job_stats), each minute
pbs/202611         accounting of a local month of the machine, which grows
panda/NUMBER.json  PanDA jobs of a pilot that ended
truth.jsonl        intervals and effects of special jobs, for tests only
state.json         progress of the writer

A second is written after it has ended. A later run continues: the pause in between is counted and
accounted for, but not traced. `past` writes the hours before the first run.
"""

import json
import signal
from collections.abc import Callable, Iterable
from dataclasses import asdict, astuple, dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from time import time

import numpy as np
import polars as pl

from simulator import site, story
from simulator.activity import MDT_KINDS
from simulator.batch import payloads
from simulator.batch.jobs import Job
from simulator.clock import HOUR_S, MICROSECONDS, MINUTE_S, iso, utc_name
from simulator.formats import exports, job_stats, md_stats, panda, pbs, rpctrace, sacct, squeue
from simulator.formats.rpctrace import Version
from simulator.progress import say
from simulator.randomness import stream
from simulator.servers import counters, mds, polls, server_log, trace
from simulator.servers.counters import Entry, Server, Sightings
from simulator.servers.polls import What
from simulator.servers.server_log import Served
from simulator.today import Today

PRINTED_AHEAD_S = 2  # counters stay in a file until they are polled, and show that time
_AT_ONCE_S = MINUTE_S  # of the pause, per step
_PRINTED_EVERY_S = 5
_EXPORTED_S = 6 * HOUR_S  # sacct reports jobs that ended within this time
_PINGING_NODES = 8
_ROTATED_BYTES = 64_000_000
_ROTATED_KEPT_S = 3 * MINUTE_S  # time for agents to read a log to its end


@dataclass
class State:
    """Progress of the writer, and values that cannot be derived from it."""

    seed: int
    pace: int
    begun: int
    opened: int
    until: int
    totals: list[int] = field(default_factory=lambda: [0] * len(MDT_KINDS))  # of the whole MDT
    clients: dict[str, list[int]] = field(default_factory=dict)  # the same by NID

    @classmethod
    def load(cls, folder: Path, seed: int, pace: int) -> "State":
        """Return the state of a folder's last run, or the state before the first."""
        path = folder / "state.json"
        now = int(time())
        if not path.exists():
            return cls(seed, pace, begun=now, opened=now, until=now)
        state = cls(**json.loads(path.read_text()))
        if state.opened == state.until:  # only the hours before the first run are written
            state.opened = now
        return state


def run(folder: Path, *, seed: int, pace: int) -> None:
    """Write until SIGTERM or SIGINT.

    Args:
        folder: output folder.
        seed: seed of the first run; later runs use the stored one.
        pace: speed of jobs and storms as a multiple of real time; later runs use the stored
            one.
    """
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    folder.mkdir(parents=True, exist_ok=True)
    live = Live(folder, State.load(folder, seed, pace))
    say(f"writing logs to {folder}")
    while not stop.is_set():
        now = int(time())
        while live.until < now and not stop.is_set():
            live.write(min(now, live.until + _AT_ONCE_S))
        stop.wait(live.until + 1 - time())


class Live:
    """All files; each call writes the events since the last call."""

    def __init__(self, folder: Path, state: State) -> None:
        self._folder = folder
        self._state = state
        self._today = Today(state.seed, state.begun, state.opened, state.pace)
        self._trace = _Trace(folder / "rpctrace.log", self._today, state.seed)
        is_first = state.until == state.begun
        self._exported_from = state.until
        self._traced_from = state.until if is_first else int(time())

    @property
    def until(self) -> int:
        """End of the written interval."""
        return self._state.until

    def write(self, now: int) -> None:
        """Write all events up to a given time."""
        since = self._state.until
        if now > self._traced_from:
            self._trace.write(max(since, self._traced_from), now)
        self._account(since, now)
        self._write_truth(since, now)
        self._count(since, now)
        # Printed just before the full seconds at which commands are polled.
        is_due = (now + 1) // _PRINTED_EVERY_S > (since + 1) // _PRINTED_EVERY_S
        self._state.until = now
        if is_due and now > time() - _AT_ONCE_S:
            texts = self.printed()
            if now % MINUTE_S < _PRINTED_EVERY_S:
                texts |= self.printed_by_osts()
            for name, text in texts.items():
                _replace(self._folder / f"{name}.txt", text)
        self.save()

    def save(self) -> None:
        """Store the progress, from which a later run continues."""
        _replace(self._folder / "state.json", json.dumps(asdict(self._state)))

    def _account(self, since: int, now: int) -> None:
        """Write the records of pilots in the batch system and PanDA."""
        present = self._today.jobs(since - 1, now)  # with jobs that ended at `since`
        pilots = [job for job in present if job.cluster == site.CLUSTER]
        (self._folder / "pbs").mkdir(exist_ok=True)
        for month, text in pbs.monthly_files(pilots, now, since).items():
            with (self._folder / "pbs" / month).open("a") as file:
                file.write(text)
        (self._folder / "panda").mkdir(exist_ok=True)
        ended = [job for job in pilots if since <= (job.ended or now) < now]
        for inside in payloads.of_jobs(ended, stream(self._state.seed, f"payloads {since}")):
            records = (record for _, record in panda.records(inside))
            path = self._folder / "panda" / f"{inside.job.number}.json"
            _replace(path, panda.text(records))

    def _write_truth(self, since: int, now: int) -> None:
        """Write the effects of special jobs."""
        with (self._folder / "truth.jsonl").open("a") as file:
            for event in self._today.events(since, now):
                if since <= event.onset < now:
                    entry = {
                        "kind": event.job.kind.value,
                        "cluster": event.job.cluster,
                        "job": event.job.batch_id,
                        "user": event.job.user.name,
                        "onset": iso(event.onset),
                        "end": iso(event.end),
                    }
                    file.write(json.dumps(entry) + "\n")

    def _count(self, since: int, now: int) -> None:
        """Add the MDT's operations to the totals of the MDT and of each client."""
        since, now = since + PRINTED_AHEAD_S, now + PRINTED_AHEAD_S
        moments = np.array([since, now])
        for source in self._today.sources(since, now):
            before, after = counters.by_client(source, moments, story.UPGRADED)
            gained = after - before
            self._state.totals = (self._state.totals + gained.sum(axis=0)).tolist()
            for client, counts in zip(source.clients.tolist(), gained.tolist(), strict=True):
                nid = site.NIDS[client]
                earlier = self._state.clients.get(nid, [0] * len(MDT_KINDS))
                self._state.clients[nid] = [a + b for a, b in zip(earlier, counts, strict=True)]

    def printed(self) -> dict[str, str]:
        """Return the current output of commands, by file name."""
        now = self._state.until
        plan, polled = self._today.plan, now + PRINTED_AHEAD_S
        version = plan.faults.version_at(site.MDS, now)
        entries = self._entries(counters.mdt_sightings)
        whole = md_stats.mdt(
            site.MDT,
            polled * MICROSECONDS,
            self._state.totals,
            version=version,
            mounted_s=self._state.begun,
        )
        clients = exports.mdt(
            site.MDT,
            polled * MICROSECONDS,
            self._state.clients,
            version=version,
            mounted_s=self._state.begun,
        )
        there = [
            job
            for job in self._today.jobs(min(self._since_export(now), now - 1), now)
            if job.cluster == site.ANALYSIS_CLUSTER
        ]
        waiting = [job for job in there if not _is_over(job, now)]
        return {
            "job_stats": job_stats.mdt(site.MDT, entries, version=version),
            "md_stats": whole,
            "exports": clients,
            "squeue": squeue.text(waiting, now),
            "sacct": sacct.text(job for job in there if _is_over(job, now)),
        }

    def printed_by_osts(self) -> dict[str, str]:
        """Return the current job_stats of the OSTs, by server."""
        return {
            oss: "".join(
                job_stats.ost(
                    ost,
                    self._entries(partial(counters.ost_sightings, ost=site.OSTS.index(ost))),
                )
                for ost in osts
            )
            for oss, osts in site.OSTS_OF_OSS.items()
        }

    def _entries(self, sightings_of: Callable[..., Iterable[Sightings]]) -> list[Entry]:
        """Return the content of a target's job_stats."""
        polled = self._state.until + PRINTED_AHEAD_S
        server = Server(polls.kept_s(self._today.plan, What.MDT), failures_until=story.UPGRADED)
        [entries] = counters.entries_by_poll(
            (
                sightings
                for source in self._today.sources(polled - server.kept_s, polled)
                for sightings in sightings_of(source, polls=np.array([polled]), server=server)
            ),
            1,
        )
        return entries

    def _since_export(self, now: int) -> int:
        """Return the start of sacct's interval: for an hour after a pause it includes the pause."""
        if now - self._traced_from < HOUR_S:
            return min(self._exported_from, now - _EXPORTED_S)
        return now - _EXPORTED_S


class _Trace:
    """The debug log of the MDS."""

    def __init__(self, path: Path, today: Today, seed: int) -> None:
        self._path = path
        self._today = today
        self._seed = seed
        self._names = server_log.names(seed)
        self._threads = mds.Threads()
        self._under_way: tuple[Served, pl.Series] | None = None

    def write(self, since: int, now: int) -> None:
        """Write the requests whose service ended in ``[since, now)``."""
        chance = stream(self._seed, f"today: trace {since}")
        sources = self._today.sources(since, now)
        requests = trace.requests(sources, since, now, _PINGING_NODES, chance, bin_s=1)
        served, source = trace.serve(
            requests, sources, self._today.plan.knee_per_s, chance, threads=self._threads
        )
        job_ids = pl.Series([sender.job_id or "" for sender in sources] + [""]).gather(source)
        if self._under_way:
            served, job_ids = _together(self._under_way, (served, job_ids))
        count = int(np.searchsorted(served.end_us, now * MICROSECONDS))
        over, rest = np.arange(count), np.arange(count, len(served))
        self._under_way = served.take(rest), job_ids[count:]
        records = server_log.records(
            served.take(over), self._seed, chance, handling_share=0, job_ids=job_ids[:count]
        )
        with self._path.open("ab") as file:
            rpctrace.write(rpctrace.lines(records, self._names, Version.V2_15), file)
        if self._path.stat().st_size > _ROTATED_BYTES:
            self._rotate(now)

    def _rotate(self, now: int) -> None:
        self._path.rename(self._path.with_name(f"{self._path.name}-{utc_name(now)}"))
        for path in self._path.parent.glob(f"{self._path.name}-*"):
            if path.stat().st_mtime < time() - _ROTATED_KEPT_S:
                path.unlink()


def _together(
    earlier: tuple[Served, pl.Series], later: tuple[Served, pl.Series]
) -> tuple[Served, pl.Series]:
    """Join requests, in order of their ends."""
    columns = zip(astuple(earlier[0]), astuple(later[0]), strict=True)
    served = Served(*map(np.concatenate, columns))
    order = np.argsort(served.end_us, kind="stable")
    return served.take(order), pl.concat([earlier[1], later[1]]).gather(order)


def _is_over(job: Job, now: int) -> bool:
    return job.ended is not None and job.ended <= now


def _replace(path: Path, text: str) -> None:
    """Replace a file as a whole: readers get the old or the new one."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.replace(path)
