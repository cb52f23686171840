"""The RPC trace around the start of the crisis: what the server did, and the dumps of its log."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from simulator import dumps, mds, server_log, site, trace
from simulator.centre import Centre
from simulator.clock import MICROSECONDS, local, utc_name
from simulator.dumps import Account
from simulator.jobs import Job
from simulator.progress import say
from simulator.randomness import stream
from simulator.server_log import Served

BEGIN = local(2017, 7, 6, "09:45:00")
SECOND_DUMP = local(2017, 7, 6, "09:53:00")
END = local(2017, 7, 6, "10:00:00")
_HANDLING_SHARE = 0.06  # of the requests have their Handling line besides
_DUMPED_TWICE = 400
_LOAD_WINDOW_S = 10


@dataclass(frozen=True)
class Traced:
    """What the trace holds, for the truth file."""

    dumps: dict[str, Account]  # by file name
    handled_of_job: dict[str, int]  # by batch id: sent by its nodes while it ran
    handled_of_opcode: dict[int, int]
    knee: dict[str, object]
    load: list[dict[str, float]]


def write(seed: int, centre: Centre, folder: Path) -> Traced:
    """Write the dumps of the trace into `folder`."""
    chance = stream(seed, "trace of the crisis")
    asked = trace.requests(centre.sources, BEGIN, END, chance)
    say(f"serving {len(asked.opcode):,} requests")
    served, source = trace.serve(asked, centre.sources, chance)
    inside = np.flatnonzero(served.end_us < END * MICROSECONDS)
    served, source = served.take(inside), source[inside]
    conflicts = np.array([one.blocked_share > 0 for one in centre.sources] + [False])[source]
    return Traced(
        dumps=_write_dumps(seed, served, chance, folder),
        handled_of_job=_by_job(served, centre.of_job),
        handled_of_opcode=dict(
            zip(*(c.tolist() for c in np.unique(served.opcode, return_counts=True)), strict=True)
        ),
        knee=_knee(served),
        load=_load(served, conflicts),
    )


def _write_dumps(
    seed: int, served: Served, chance: np.random.Generator, folder: Path
) -> dict[str, Account]:
    records = server_log.records(served, seed, chance, handling_share=_HANDLING_SHARE)
    names = server_log.names(seed)
    folder.mkdir(parents=True, exist_ok=True)
    second = pl.col("time_us") >= SECOND_DUMP * MICROSECONDS
    accounts = {}
    for begin, mine, twice, cut in (
        (BEGIN, ~second, 0, True),
        (SECOND_DUMP, second, _DUMPED_TWICE, False),
    ):
        path = folder / f"{site.MDS}.{utc_name(begin)}.log.gz"
        part = records.filter(mine)
        say(f"writing {path.name}: {len(part):,} records")
        accounts[path.name] = dumps.write(part, names, chance, path, twice=twice, cut=cut)
    return accounts


def _by_job(served: Served, jobs: Iterable[Job]) -> dict[str, int]:
    """Count the requests from each job's nodes while it held them."""
    counts = {}
    for job in jobs:
        started = max(job.started or 0, BEGIN) * MICROSECONDS
        ended = min(job.ended or END, END) * MICROSECONDS
        if started < ended:
            holds = np.zeros(len(site.NIDS), dtype=bool)
            holds[job.nodes] = True
            first, after = np.searchsorted(served.end_us, (started, ended))
            counts[job.batch_id] = int(holds[served.client[first:after]].sum())
    return counts


def _knee(served: Served) -> dict[str, object]:
    """Return the load that the main service cannot exceed, with the crisis' mix of requests."""
    crisis = (served.thread < mds.MAIN.size) & (served.end_us >= SECOND_DUMP * MICROSECONDS)
    mean_s = float(served.service_us[crisis].mean()) / MICROSECONDS
    return {
        "server": site.MDS,
        "service": mds.MAIN.base,
        "threads": mds.MAIN.size,
        "mean_service_us": round(mean_s * MICROSECONDS, 1),
        "requests_per_s": round(mds.MAIN.size / mean_s, 1),
    }


def _load(served: Served, conflicts: NDArray[np.bool_]) -> list[dict[str, float]]:
    """Return, per 10 s, the main service's load and how long requests without conflicts waited."""
    main = served.thread < mds.MAIN.size
    window = (served.end_us // MICROSECONDS - BEGIN) // _LOAD_WINDOW_S
    rows = []
    for n in range((END - BEGIN) // _LOAD_WINDOW_S):
        here = main & (window == n)
        others = here & ~conflicts
        busy_us = served.service_us[here].sum()
        rows.append(
            {
                "start": BEGIN + n * _LOAD_WINDOW_S,
                "requests_per_s": round(float(here.sum()) / _LOAD_WINDOW_S, 1),
                "busy_threads": round(float(busy_us) / _LOAD_WINDOW_S / MICROSECONDS, 3),
                "others_mean_wait_us": round(float(served.wait_us[others].mean()), 1),
            }
        )
    return rows
