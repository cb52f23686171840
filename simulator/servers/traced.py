"""RPC traces around incidents: the server's activity, and the dumps of its log."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from simulator import site, story, story_storm
from simulator.activity import Source
from simulator.batch.jobs import Job
from simulator.centre import Centre
from simulator.clock import MICROSECONDS, MINUTE_S, iso, local, utc_name
from simulator.formats.releases import counts_failed_opens
from simulator.formats.rpctrace import Version
from simulator.plan import Plan
from simulator.progress import say
from simulator.randomness import stream
from simulator.servers import dumps, mds, server_log, trace
from simulator.servers.dumps import Account
from simulator.servers.server_log import Served

_HANDLING_SHARE = 0.06  # share of requests with an additional Handling line
_DUMPED_TWICE = 400
_LOAD_WINDOW_S = 10
_PAUSE_S = 5  # before and after a ramp of the storm
_DUMPED_AT = 450_000  # requests: then the buffer is full


@dataclass(frozen=True)
class Incident:
    """An interval whose log is stored.

    Args:
        name: subject of the incident.
        begin: epoch second.
        end: epoch second.
        dumped_at: times of additional dumps; a full buffer is always dumped.
        torn: the first dump was cut, and the second one repeats some of its lines.
        suffix: suffix of the files.
    """

    name: str
    begin: int
    end: int
    dumped_at: tuple[int, ...] = ()
    torn: bool = False
    suffix: str = "zst"


CRISIS = Incident(
    "crisis",
    local(2017, 7, 6, "09:45:00"),
    local(2017, 7, 6, "10:00:00"),
    dumped_at=(local(2017, 7, 6, "09:53:00"),),
    torn=True,
    suffix="gz",
)
INCIDENTS = (
    Incident(
        "software on Lustre",
        story.WEEK[0] + 10 * 60 * MINUTE_S,
        story.WEEK[0] + 10 * 60 * MINUTE_S + 5 * MINUTE_S,
    ),
    *(
        Incident(f"storm, ramp {n}", begin - _PAUSE_S, end + _PAUSE_S)
        for n, (begin, end) in enumerate(story_storm.RAMPS, start=1)
    ),
    CRISIS,
    Incident(
        "before the clean-up",
        local(2017, 8, 15, "23:55:00"),
        local(2017, 8, 16, "00:00:00"),
    ),
    Incident("clean environment", local(2017, 8, 18, "01:45:00"), local(2017, 8, 18, "01:50:00")),
    Incident("search path fixed", local(2017, 8, 21, "01:02:00"), local(2017, 8, 21, "01:07:00")),
    Incident("fifteen pilots", local(2017, 9, 19, "10:00:00"), local(2017, 9, 19, "10:10:00")),
    Incident("after the upgrade", local(2017, 10, 17, "10:00:00"), local(2017, 10, 17, "10:10:00")),
)


@dataclass
class Traced:
    """Content of the traces, for the truth file."""

    dumps: dict[str, Account] = field(default_factory=dict)  # by file name
    handled_of_job: Counter[str] = field(
        default_factory=Counter
    )  # sent by its nodes during its run
    handled_of_opcode: Counter[int] = field(default_factory=Counter)
    incidents: list[dict[str, object]] = field(default_factory=list)


@dataclass(frozen=True)
class _Log:
    """The server's log of an incident."""

    incident: Incident
    served: Served
    job_ids: pl.Series  # of each request


def write(plan: Plan, centre: Centre, folder: Path) -> Traced:
    """Write the dumps of all incidents in the run into `folder`."""
    traced = Traced()
    incidents = [each for each in INCIDENTS if plan.holds(each.begin) and plan.holds(each.end)]
    for incident in incidents if plan.trace else []:
        _write(plan, centre, incident, folder, traced)
    return traced


def _write(plan: Plan, centre: Centre, incident: Incident, folder: Path, traced: Traced) -> None:
    chance = stream(plan.seed, f"trace: {incident.name}")
    sources = [
        sender
        for sender in centre.sources
        if sender.start < incident.end and sender.end > incident.begin
    ]
    requests = trace.requests(sources, incident.begin, incident.end, plan.node_count, chance)
    say(f"{incident.name}: serving {len(requests.opcode):,} requests")
    served, source = trace.serve(requests, sources, plan.knee_per_s, chance)
    inside = np.flatnonzero(served.end_us < incident.end * MICROSECONDS)
    served, source = served.take(inside), source[inside]
    conflicts = np.array([sender.blocked_share > 0 for sender in sources] + [False])[source]
    log = _Log(incident, served, _job_ids(sources, source))
    traced.dumps |= _write_dumps(plan, log, chance, folder)
    traced.handled_of_job.update(_by_job(incident, served, centre.of_job))
    codes, counts = np.unique(served.opcode, return_counts=True)
    traced.handled_of_opcode.update(dict(zip(codes.tolist(), counts.tolist(), strict=True)))
    traced.incidents.append(
        {
            "name": incident.name,
            "start": iso(incident.begin),
            "end": iso(incident.end),
            "handled": len(served),
            "main_mean_service_us": _mean_service_us(served),
            "load": _load(incident, served, conflicts),
        }
    )


def _job_ids(sources: list[Source], source: NDArray[np.int64]) -> pl.Series:
    carried = pl.Series([sender.job_id or "" for sender in sources] + [""])
    return carried.gather(source)


def _write_dumps(
    plan: Plan, log: _Log, chance: np.random.Generator, folder: Path
) -> dict[str, Account]:
    folder.mkdir(parents=True, exist_ok=True)
    incident, served = log.incident, log.served
    lustre = plan.faults.version_at(site.MDS, incident.begin)
    version = Version.V2_8 if counts_failed_opens(lustre) else Version.V2_15
    names = server_log.names(plan.seed)
    accounts = {}
    for number, (first, after) in enumerate(_cuts(incident, served)):
        begin = incident.begin if not first else int(served.end_us[first] // MICROSECONDS)
        records = server_log.records(
            served.take(np.arange(first, after)),
            plan.seed,
            chance,
            handling_share=_HANDLING_SHARE,
            job_ids=log.job_ids[first:after] if version is Version.V2_15 else None,
            clock_offset_s=plan.faults.clock_offset_s(site.MDS, incident.begin),
        )
        path = folder / f"{site.MDS}.{utc_name(begin)}.log.{incident.suffix}"
        accounts[path.name] = dumps.write(
            records,
            names,
            chance,
            path,
            twice=_DUMPED_TWICE if incident.torn and number == 1 else 0,
            cut=incident.torn and number == 0,
            version=version,
        )
    return accounts


def _cuts(incident: Incident, served: Served) -> list[tuple[int, int]]:
    """Return the rows of each dump: the first, and the end (exclusive)."""
    dumped_us = np.array(incident.dumped_at, dtype=np.int64) * MICROSECONDS
    edges = [0, *np.searchsorted(served.end_us, dumped_us).tolist(), len(served)]
    if not incident.dumped_at:
        edges = [*range(0, len(served), _DUMPED_AT), len(served)]
    return list(pairwise(edges))


def _by_job(incident: Incident, served: Served, jobs: Iterable[Job]) -> dict[str, int]:
    """Count the requests from each job's nodes during its allocation."""
    counts = {}
    for job in jobs:
        started = max(job.started or 0, incident.begin) * MICROSECONDS
        ended = min(job.ended or incident.end, incident.end) * MICROSECONDS
        if started < ended:
            holds = np.zeros(len(site.NIDS), dtype=bool)
            holds[job.clients] = True
            first, after = np.searchsorted(served.end_us, (started, ended))
            counts[job.batch_id] = int(holds[served.client[first:after]].sum())
    return counts


def _mean_service_us(served: Served) -> float:
    main = served.thread < mds.MAIN.size
    return round(float(served.service_us[main].mean()), 1)


def _load(
    incident: Incident, served: Served, conflicts: NDArray[np.bool_]
) -> list[dict[str, float]]:
    """Return, per 10 s, the main service's load and the mean wait of requests without conflicts."""
    main = served.thread < mds.MAIN.size
    window = (served.end_us // MICROSECONDS - incident.begin) // _LOAD_WINDOW_S
    rows = []
    for n in range((incident.end - incident.begin) // _LOAD_WINDOW_S):
        first, after = np.searchsorted(window, (n, n + 1))
        here = first + np.flatnonzero(main[first:after])
        unblocked = here[~conflicts[here]]
        if not len(unblocked):
            continue
        busy_us = served.service_us[here].sum()
        rows.append(
            {
                "start": incident.begin + n * _LOAD_WINDOW_S,
                "requests_per_s": round(float(len(here)) / _LOAD_WINDOW_S, 1),
                "busy_threads": round(float(busy_us) / _LOAD_WINDOW_S / MICROSECONDS, 3),
                "others_mean_wait_us": round(float(served.wait_us[unblocked].mean()), 1),
            }
        )
    return rows
