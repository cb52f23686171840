"""A busy job and a harmful job with similar load on metadata servers.

site.toml                      registration
sacct.txt                      accounting
rpctrace/SERVER.log.zst        hours of calm, and the activity of both
truth.json                     labels, and the waiting time that each job causes others

Labels are causes. The harmful job exceeds the capacity of a server while others need it. The busy
job sends at least as many RPCs to a faster server at the same time, or to the same server spread
over a longer time, or when no other job is there. The waiting time caused by a job is the
difference to serving the same requests without its own.
"""

import json
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import polars as pl

from simulator import site
from simulator.batch.jobs import Ints, Job, Kind
from simulator.clock import DAY_S, HOUR_S, MICROSECONDS, MINUTE_S, iso, local
from simulator.formats import sacct, site_toml
from simulator.formats.rpctrace import Version
from simulator.plan import Plan
from simulator.randomness import stream
from simulator.servers import dumps, mds, server_log
from simulator.servers.server_log import Served
from simulator.site import User

SHAPES = ("two servers", "spread out", "alone")
FASTER_MDS = "atlas2-mds2"

_DAY = local(2017, 9, 4)
_CALM_S = 8 * HOUR_S  # enough for a baseline
_AROUND_S = 5 * MINUTE_S  # before the first of both jobs, and after the last
_BETWEEN_S = 10 * MINUTE_S  # the two jobs, on one server
_MOST_BYSTANDERS, _MOST_NODES = 14, 6
_MAX_RPCS = 60_000  # of the harmful job
_FIRST_NUMBER = 1_700_000
_MIXES = (  # of RPCs: stats, opens, creates and deletes
    {mds.LDLM_ENQUEUE: 0.55, mds.MDS_GETATTR: 0.45},
    {mds.LDLM_ENQUEUE: 0.8, mds.MDS_CLOSE: 0.15, mds.MDS_GETATTR: 0.05},
    {mds.MDS_REINT: 0.5, mds.LDLM_ENQUEUE: 0.35, mds.MDS_CLOSE: 0.15},
)
_EVERYDAY = (
    mds.LDLM_ENQUEUE,
    mds.MDS_CLOSE,
    mds.MDS_GETATTR,
    mds.MDS_REINT,
    mds.MDS_GETXATTR,
)


@dataclass(frozen=True)
class _Demand:
    """Requests of a job to a server in ``[start, end)``, epoch seconds, at a steady rate."""

    job: Job
    start: int
    end: int
    rate_per_s: float
    mix: dict[int, float]


@dataclass(frozen=True)
class _Server:
    name: str
    knee_per_s: float
    demands: list[_Demand]


@dataclass(frozen=True)
class _Scene:
    """All activity, before servers process it."""

    seed: int
    shape: str
    version: Version
    start: int  # of the examined interval, after the calm
    end: int
    servers: list[_Server]
    harmful: _Demand
    busy: _Demand


def write(out: Path, *, seed: int) -> None:
    """Write a scenario's files under `out`; the same seed gives the same bytes."""
    scene = _scene(seed)
    (out / "rpctrace").mkdir(parents=True, exist_ok=True)
    (out / "site.toml").write_text(_registration(scene))
    sent: dict[Job, int] = {}
    waited_s: dict[Job, float] = {}
    for server in scene.servers:
        requests = _Requests.draw(server, stream(seed, f"requests to {server.name}"))
        for demand in (scene.harmful, scene.busy):
            if demand in server.demands:
                sent[demand.job] = int((requests.job == demand.job.number).sum())
                waited_s[demand.job] = requests.others_waiting_s(demand.job)
        served, job = requests.served()
        _let_end(server, served, job)
        _write_trace(scene, server, served, job, out / "rpctrace")
    jobs = {demand.job for server in scene.servers for demand in server.demands}
    (out / "sacct.txt").write_text(sacct.text(sorted(jobs, key=lambda job: job.number)))
    (out / "truth.json").write_text(json.dumps(_truth(scene, sent, waited_s)))


class _Cast:
    """Creates jobs, each on separate nodes."""

    def __init__(self, chance: np.random.Generator, nodes: Ints, begun: int) -> None:
        self._chance = chance
        self._begun = begun
        self._numbers = count(_FIRST_NUMBER)
        self._nodes = iter(nodes)

    def job(self, kind: Kind, node_count: int) -> Job:
        """Return a new job, present from the beginning on."""
        number = next(self._numbers)
        return Job(
            number=number,
            user=User(f"user{number % 100:02d}", 20_000 + number % 100, f"PRJ{number % 10:03d}"),
            name=kind.value,
            queue="batch",
            kind=kind,
            node_count=node_count,
            limit_s=DAY_S,
            runtime_s=0,
            submitted=self._begun - MINUTE_S,
            cluster=site.ANALYSIS_CLUSTER,
            started=self._begun - MINUTE_S // 2,
            nodes=np.sort([next(self._nodes) for _ in range(node_count)]),
        )

    def bystanders(self, knee_per_s: float, times: list[tuple[int, int]]) -> list[_Demand]:
        """Return jobs with little activity in the calm, and more in the given intervals."""
        chance = self._chance
        some = int(chance.integers(2, _MOST_BYSTANDERS + 1))
        shares = chance.dirichlet(np.full(some, 3.0))
        calm_per_s = chance.uniform(1.5, 2.5)
        open_per_s = min(knee_per_s / 12, chance.uniform(10, 120))
        demands = []
        for share in shares:
            mine = self.job(Kind.ANALYSIS, int(chance.integers(1, _MOST_NODES + 1)))
            weights = 0.1 + chance.dirichlet(np.ones(len(_EVERYDAY))) * (1 - 0.1 * len(_EVERYDAY))
            mix = dict(zip(_EVERYDAY, weights.tolist(), strict=True))
            opened = self._begun + _CALM_S
            demands.append(_Demand(mine, self._begun, opened, calm_per_s * share, mix))
            demands += [_Demand(mine, *time, open_per_s * share, mix) for time in times]
        return demands


def _scene(seed: int) -> _Scene:
    chance = stream(seed, "scenario")
    nodes = chance.permutation(site.ANALYSIS_NODE_COUNT)
    begun = _DAY + seed * DAY_S + int(chance.integers(12)) * HOUR_S
    cast = _Cast(chance, nodes, begun)
    opened = begun + _CALM_S
    shape = SHAPES[seed % len(SHAPES)]
    knee_per_s = float(np.exp(chance.uniform(np.log(400), np.log(1_600))))
    harmful_mix, busy_mix = (_MIXES[n] for n in chance.integers(len(_MIXES), size=2))
    harmful_per_s = chance.uniform(1, 1.15) * _capacity_per_s(knee_per_s, harmful_mix)
    harmful_s = min(int(chance.integers(40, 150)), int(_MAX_RPCS / harmful_per_s))
    rpcs = harmful_per_s * harmful_s * chance.uniform(1.05, 1.6)  # of the busy job
    load = chance.uniform(0.03, 0.12)  # of the busy job's server while others are there
    busy_s = harmful_s
    if shape != "two servers":
        part = load if shape == "spread out" else chance.uniform(0.5, 1.2)
        busy_s = round(rpcs / (part * _capacity_per_s(knee_per_s, busy_mix)))
    harmful_at = busy_at = opened + _AROUND_S
    if shape != "two servers" and chance.random() < 1 / 2:
        busy_at = harmful_at + harmful_s + _BETWEEN_S
    elif shape != "two servers":
        harmful_at = busy_at + busy_s + _BETWEEN_S
    storm = cast.job(Kind.STORM, int(chance.integers(1, 33)))
    scanner = cast.job(Kind.SCANNER, int(chance.integers(1, 33)))
    harmful = _Demand(storm, harmful_at, harmful_at + harmful_s, harmful_per_s, harmful_mix)
    busy = _Demand(scanner, busy_at, busy_at + busy_s, rpcs / busy_s, busy_mix)
    end = max(harmful.end, busy.end) + _AROUND_S
    times = [(opened, end)]
    if shape == "alone":
        times = [(opened, busy.start - MINUTE_S), (busy.end + MINUTE_S, end)]
    servers = [_Server(site.MDS, knee_per_s, [harmful, *cast.bystanders(knee_per_s, times)])]
    if shape == "two servers":
        faster = knee_per_s * busy.rate_per_s / (load * _capacity_per_s(knee_per_s, busy_mix))
        servers.append(_Server(FASTER_MDS, faster, [busy, *cast.bystanders(faster, times)]))
    else:
        servers[0].demands.append(busy)
    version = Version.V2_15 if chance.random() < 1 / 2 else Version.V2_8
    return _Scene(seed, shape, version, opened, end, servers, harmful, busy)


def _capacity_per_s(knee_per_s: float, mix: dict[int, float]) -> float:
    """Return the capacity of a server for a mix, in RPCs per second."""
    return knee_per_s * mds.MAIN_MEAN_US / mds.mean_work_us(mix)


@dataclass(frozen=True)
class _Requests:
    """Requests to a server; arrays of shape (n,), in order of `ready_us`."""

    knee_per_s: float
    ready_us: Ints
    dispatch_us: Ints
    idle_us: Ints  # service time on an idle server
    opcode: Ints
    client: Ints
    job: Ints  # job number

    @classmethod
    def draw(cls, server: _Server, chance: np.random.Generator) -> "_Requests":
        """Draw the requests of all demands."""
        parts = [_drawn(demand, chance) for demand in server.demands]
        arrival_us, opcode, client, job = (
            np.concatenate(part) for part in zip(*parts, strict=True)
        )
        dispatch_us = mds.dispatch_times(len(arrival_us), chance)
        idle_us = mds.service_times(opcode, chance)
        columns = (arrival_us + dispatch_us, dispatch_us, idle_us, opcode, client, job)
        order = np.argsort(columns[0], kind="stable")
        return cls(server.knee_per_s, *(column[order] for column in columns))

    def served(self) -> tuple[Served, Ints]:
        """Return the server's records in order of the ends, and the job of each request."""
        service_us, run = self._run()
        end_us = run.start_us + service_us
        served = Served(
            end_us=end_us,
            service_us=service_us,
            wait_us=run.start_us - run.sent_us + self.dispatch_us,
            opcode=self.opcode,
            client=self.client,
            thread=run.thread,
        )
        by_end = np.argsort(end_us, kind="stable")
        return served.take(by_end), self.job[by_end]

    def others_waiting_s(self, job: Job) -> float:
        """Return the time that others' requests save without the job's requests."""
        other_rows = np.flatnonzero(self.job != job.number)
        without = _Requests(
            self.knee_per_s,
            *(
                column[other_rows]
                for column in (
                    self.ready_us,
                    self.dispatch_us,
                    self.idle_us,
                    self.opcode,
                    self.client,
                    self.job,
                )
            ),
        )
        saved_us = self._took_us()[other_rows].sum() - without._took_us().sum()
        return float(saved_us / MICROSECONDS)

    def _run(self) -> tuple[Ints, mds.Run]:
        service_us = mds.under_pressure(self.ready_us, self.idle_us, self.opcode, self.knee_per_s)
        return service_us, mds.serve(self.ready_us, service_us, self.opcode)

    def _took_us(self) -> Ints:
        service_us, run = self._run()
        return run.start_us - run.sent_us + service_us


def _drawn(demand: _Demand, chance: np.random.Generator) -> tuple[Ints, ...]:
    size = chance.poisson(demand.rate_per_s * (demand.end - demand.start))
    shares = np.array(list(demand.mix.values()))
    return (
        chance.integers(demand.start * MICROSECONDS, demand.end * MICROSECONDS, size=size),
        chance.choice(list(demand.mix), p=shares / shares.sum(), size=size),
        chance.choice(demand.job.clients, size),
        np.full(size, demand.job.number),
    )


def _let_end(server: _Server, served: Served, job: Ints) -> None:
    """Set each job's end after its last request is answered."""
    for sender in {demand.job for demand in server.demands}:
        last_us = served.end_us[job == sender.number].max(initial=0)
        sender.ended = int(last_us // MICROSECONDS) + MINUTE_S


def _write_trace(scene: _Scene, server: _Server, served: Served, job: Ints, folder: Path) -> None:
    chance = stream(scene.seed, f"log of {server.name}")
    carried = pl.Series(job).cast(pl.String) if scene.version is Version.V2_15 else None
    records = server_log.records(served, scene.seed, chance, handling_share=0, job_ids=carried)
    path = folder / f"{server.name}.log.zst"
    dumps.write(records, server_log.names(scene.seed), chance, path, version=scene.version)


def _registration(scene: _Scene) -> str:
    text = site_toml.text(Plan(node_count=1, trace=False))  # (the other machine is idle)
    servers = [server.name for server in scene.servers if server.name != site.MDS]
    return "\n".join([text, *(site_toml.server(name) for name in servers)])


def _truth(scene: _Scene, sent: dict[Job, int], waited_s: dict[Job, float]) -> dict[str, object]:
    return {
        "seed": scene.seed,
        "shape": scene.shape,
        "filesystem": site.FILESYSTEM,
        "start": iso(scene.start),
        "end": iso(scene.end),
        "knees": {server.name: server.knee_per_s for server in scene.servers},
        "jobs": {
            label: {
                "job": demand.job.batch_id,
                "onset": iso(demand.start),
                "end": iso(demand.end),
                "nodes": demand.job.node_count,
                "rpcs": sent[demand.job],
                "others_waiting_s": round(waited_s[demand.job], 3),
            }
            for label, demand in (("harmful", scene.harmful), ("busy", scene.busy))
        },
    }
