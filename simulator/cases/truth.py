"""What everybody truly does, and which label that gives."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simulator.activity import MDT_KINDS, OPERATIONS
from simulator.cases import causes, measures
from simulator.cases.cast import GAP_S, Actor
from simulator.cases.causes import BORDERLINE, Cause, Found, Label, label
from simulator.cases.filesystems import ALL, UNREAD, Filesystem
from simulator.cases.hosts import Host
from simulator.cases.measures import History, Others
from simulator.cases.scene import Scene
from simulator.cases.traffic import Traffic
from simulator.clock import MICROSECONDS, MINUTE_S, iso
from simulator.jobs import Ints

Case = dict[str, Any]

_CAMPAIGN_STEP_S = 10
_UNATTRIBUTED_AFTER_S = 5 * MINUTE_S
_ENOUGH_OTHERS = 20  # jobs, to tell a middle
_COARSE_S = 3_600


def told(scene: Scene, traffic: Mapping[Filesystem, Traffic]) -> dict[str, object]:
    """Return the truth file; of everybody, what is done until the stream ends."""
    actors, hosts = scene.actors, scene.hosts
    done = {
        one: History.of(one.job, one.source, one.filesystem, scene.closed, _COARSE_S)
        for one in actors
    }
    by_trace = _traced(traffic, {host.source for host in hosts})
    cases = [
        *_jobs(done, by_trace, scene.closed),
        *_users(scene, done),
        *_hosts(hosts, by_trace),
        *_filesystems(scene, traffic),
    ]
    return {
        "seed": scene.seed,
        "begun": iso(scene.begun),
        "calm_since": iso(scene.calm_since),
        "start": iso(scene.opened),
        "end": iso(scene.closed),
        "filesystems": [
            {
                "name": one.name,
                "server": one.mds,
                "version": one.version,
                "is_counted": one.is_counted,
                "is_traced": one.is_traced,
                "knee_per_s": scene.knee_per_s if one.is_traced else None,
                "unread": [iso(scene.opened + moment) for moment in GAP_S]
                if one is UNREAD
                else None,
            }
            for one in ALL
        ],
        "cases": [{"id": f"case-{n:04d}"} | case for n, case in enumerate(cases)],
        "jobs": {
            actor.job.batch_id: _totals(actor, done[actor], traffic, by_trace) for actor in actors
        },
    }


def _traced(traffic: Mapping[Filesystem, Traffic], hosts: set[object]) -> dict[object, list[Found]]:
    """Return what the traces could tell of each source."""
    return {
        source: one.found_in(n, is_host=source in hosts)
        for one in traffic.values()
        for n, source in enumerate(one.sources)
    }


def _jobs(
    done: dict[Actor, History], by_trace: dict[object, list[Found]], closed: int
) -> Iterator[Case]:
    of_size: dict[int, list[float]] = defaultdict(list)
    of_name: dict[str, list[float]] = defaultdict(list)
    for actor, history in done.items():
        of_size[_size(actor)].append(history.operations[-1] / actor.job.node_count)
        of_name[actor.job.name].append(history.size_bytes[-1, 0])
    for actor in done:
        others = Others(_middle(of_size[_size(actor)]), _middle(of_name[actor.job.name]))
        found = measures.found_in(actor.job, actor.source, actor.filesystem, others, closed)
        found += by_trace.get(actor.source, [])
        subject = {
            "kind": "job",
            "name": actor.job.batch_id,
            "user": actor.job.user.name,
            "filesystem": actor.filesystem.name,
            "nodes": actor.job.node_count,
            "start": iso(actor.job.started or 0),
            "end": iso(actor.job.ended or 0),
        }
        yield _case(subject, actor.role.play.part, found, fault=actor.role.fault)


def _size(actor: Actor) -> int:
    """Return the class of a job's size: between which powers of two it is."""
    return actor.job.node_count.bit_length()


def _middle(values: list[float]) -> float | None:
    return float(np.median(values)) if len(values) >= _ENOUGH_OTHERS else None


def _users(scene: Scene, done: dict[Actor, History]) -> Iterator[Case]:
    jobs_of: dict[str, list[Actor]] = defaultdict(list)
    for actor in done:
        jobs_of[actor.job.user.name].append(actor)
    times = np.arange(scene.begun, scene.closed + 1, _CAMPAIGN_STEP_S)
    for user, mine in sorted(jobs_of.items()):
        small = [
            actor
            for actor in mine
            if done[actor].operations[-1] < causes.OPERATIONS and not actor.role.fault
        ]
        submitted = np.sort([actor.job.submitted for actor in small])
        total = np.zeros(len(times), dtype=np.int64)
        if len(small) >= causes.SUBMISSIONS:
            for actor in small:
                total += _counted(actor, times)
        submissions = np.searchsorted(submitted, times, side="right")
        found = measures.found(
            Cause.CAMPAIGN,
            times,
            total / causes.CAMPAIGN * (submissions >= causes.SUBMISSIONS),
            {"operations": total, "submissions": submissions},
        )
        part = "campaign" if user.startswith("campaigner") else "anybody"
        yield _case({"kind": "user", "name": user, "jobs": len(mine)}, part, [found])


def _counted(actor: Actor, times: Ints) -> Ints:
    counts: Ints = actor.source.mdt_counts(times)[:, OPERATIONS].sum(axis=1)
    return counts


def _hosts(hosts: Sequence[Host], by_trace: dict[object, list[Found]]) -> Iterator[Case]:
    """Yield hosts and processes, each by what is worst on any filesystem."""
    told: dict[tuple[str, bool], dict[Cause, Found]] = defaultdict(dict)
    for host in hosts:
        worst = told[host.name, host.is_process]
        for one in by_trace.get(host.source, []):
            worst[one.cause] = max(one, worst.get(one.cause, one), key=lambda each: each.ratio)
    for (name, is_process), worst in told.items():
        if name:
            kind = "process" if is_process else "host"
            yield _case({"kind": kind, "name": name}, "outside any job", worst.values())


def _filesystems(scene: Scene, traffic: Mapping[Filesystem, Traffic]) -> Iterator[Case]:
    strangers = {host.source for host in scene.hosts if not host.name}
    for one in ALL:
        found = []
        if one in traffic:
            sources, line = traffic[one].sources, traffic[one].queue
            is_strange = np.array([source in strangers for source in sources])[line.source]
            rpcs = np.cumsum(is_strange)
            share = rpcs / np.arange(1, len(rpcs) + 1)
            times = line.ready_us // MICROSECONDS
            settled = times >= scene.opened + _UNATTRIBUTED_AFTER_S
            found = [
                measures.found(
                    Cause.UNATTRIBUTED,
                    times,
                    share / causes.UNATTRIBUTED * settled,
                    {"share": share, "rpcs": rpcs},
                )
            ]
        yield _case({"kind": "filesystem", "name": one.name}, "filesystem", found)


def _case(subject: Case, part: str, found: Iterable[Found], *, fault: str = "") -> Case:
    held = sorted(found, key=lambda one: -one.ratio)
    given = Label.BAD_DATA if fault else label(held)
    return {
        "label": given,
        "part": part,
        "causes": [_shown(one) for one in held if one.ratio >= BORDERLINE[0]],
        "near": {one.cause: round(one.ratio, 3) for one in held if one.ratio < BORDERLINE[0]},
        "subject": subject,
        "expected_quality": "below good" if fault else "good",
        "fault": fault,
    }


def _shown(one: Found) -> Case:
    return {
        "cause": one.cause,
        "is_borderline": one.ratio < BORDERLINE[1],
        "ratio": round(one.ratio, 4),
        "onset": iso(one.onset) if one.onset else None,
        "amounts": one.amounts,
    }


def _totals(
    actor: Actor,
    history: History,
    traffic: Mapping[Filesystem, Traffic],
    by_trace: dict[object, list[Found]],
) -> Case:
    waiting = [
        one.amounts["others_waiting_s"]
        for one in by_trace.get(actor.source, [])
        if one.cause is Cause.HARM
    ]
    rpcs = None
    if actor.source in by_trace:
        one = traffic[actor.filesystem]
        rpcs = int(one.counts()[list(one.sources).index(actor.source)])
    return {
        "part": actor.role.play.part,
        "operations": {
            kind: int(count)
            for kind, count in zip(MDT_KINDS, history.by_kind[-1].tolist(), strict=True)
            if count
        },
        "failed_opens": int(history.failed[-1]),
        "reads": int(history.requests[-1, 0]),
        "read_bytes": int(history.size_bytes[-1, 0]),
        "writes": int(history.requests[-1, 1]),
        "write_bytes": int(history.size_bytes[-1, 1]),
        "rpcs": rpcs,
        "others_waiting_s": waiting[0] if waiting else None,
    }
