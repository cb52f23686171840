"""The true activity of all subjects, and the resulting labels."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simulator.activity import MDT_KINDS, OPERATIONS
from simulator.batch.jobs import Ints
from simulator.cases import causes, measures
from simulator.cases.cast import GAP_S, Actor
from simulator.cases.causes import BORDERLINE, Cause, Label, Occurrence, label
from simulator.cases.filesystems import ALL, UNREAD, Filesystem
from simulator.cases.hosts import Host
from simulator.cases.measures import History, SimilarJobs
from simulator.cases.scene import Scene
from simulator.cases.traffic import Traffic
from simulator.clock import MICROSECONDS, MINUTE_S, iso

Case = dict[str, Any]

_CAMPAIGN_STEP_S = 10
_UNATTRIBUTED_AFTER_S = 5 * MINUTE_S
_ENOUGH_JOBS = 20  # for a median
_COARSE_S = 3_600


def content(scene: Scene, traffic: Mapping[Filesystem, Traffic]) -> dict[str, object]:
    """Return the truth file, with activity until the stream ends."""
    actors, hosts = scene.actors, scene.hosts
    done = {
        actor: History.follow(actor.job, actor.source, actor.filesystem, scene.closed, _COARSE_S)
        for actor in actors
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
                "name": filesystem.name,
                "server": filesystem.mds,
                "version": filesystem.version,
                "is_counted": filesystem.is_counted,
                "is_traced": filesystem.is_traced,
                "knee_per_s": scene.knee_per_s if filesystem.is_traced else None,
                "unread": [iso(scene.opened + moment) for moment in GAP_S]
                if filesystem is UNREAD
                else None,
            }
            for filesystem in ALL
        ],
        "cases": [{"id": f"case-{n:04d}"} | case for n, case in enumerate(cases)],
        "jobs": {
            actor.job.batch_id: _totals(actor, done[actor], traffic, by_trace) for actor in actors
        },
    }


def _traced(
    traffic: Mapping[Filesystem, Traffic], hosts: set[object]
) -> dict[object, list[Occurrence]]:
    """Return the causes in the traces by source."""
    return {
        source: server.occurrences(n, is_host=source in hosts)
        for server in traffic.values()
        for n, source in enumerate(server.sources)
    }


def _jobs(
    done: dict[Actor, History], by_trace: dict[object, list[Occurrence]], closed: int
) -> Iterator[Case]:
    of_size: dict[int, list[float]] = defaultdict(list)
    of_name: dict[str, list[float]] = defaultdict(list)
    for actor, history in done.items():
        of_size[_size(actor)].append(history.operations[-1] / actor.job.node_count)
        of_name[actor.job.name].append(history.size_bytes[-1, 0])
    for actor in done:
        similar = SimilarJobs(_median(of_size[_size(actor)]), _median(of_name[actor.job.name]))
        occurrences = measures.occurrences(
            actor.job, actor.source, actor.filesystem, similar, closed
        )
        occurrences += by_trace.get(actor.source, [])
        subject = {
            "kind": "job",
            "name": actor.job.batch_id,
            "user": actor.job.user.name,
            "filesystem": actor.filesystem.name,
            "nodes": actor.job.node_count,
            "start": iso(actor.job.started or 0),
            "end": iso(actor.job.ended or 0),
        }
        yield _case(subject, actor.role.play.part, occurrences, fault=actor.role.fault)


def _size(actor: Actor) -> int:
    """Return a job's size class, bounded by powers of two."""
    return actor.job.node_count.bit_length()


def _median(values: list[float]) -> float | None:
    return float(np.median(values)) if len(values) >= _ENOUGH_JOBS else None


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
        campaign = measures.occurrence(
            Cause.CAMPAIGN,
            times,
            total / causes.CAMPAIGN * (submissions >= causes.SUBMISSIONS),
            {"operations": total, "submissions": submissions},
        )
        part = "campaign" if user.startswith("campaigner") else "anybody"
        yield _case({"kind": "user", "name": user, "jobs": len(mine)}, part, [campaign])


def _counted(actor: Actor, times: Ints) -> Ints:
    counts: Ints = actor.source.mdt_counts(times)[:, OPERATIONS].sum(axis=1)
    return counts


def _hosts(hosts: Sequence[Host], by_trace: dict[object, list[Occurrence]]) -> Iterator[Case]:
    """Yield hosts and processes, filesystem by its highest ratio on any filesystem."""
    by_name: dict[tuple[str, bool], dict[Cause, Occurrence]] = defaultdict(dict)
    for host in hosts:
        worst = by_name[host.name, host.is_process]
        for cause in by_trace.get(host.source, []):
            worst[cause.cause] = max(cause, worst.get(cause.cause, cause), key=_ratio)
    for (name, is_process), worst in by_name.items():
        if name:
            kind = "process" if is_process else "host"
            yield _case({"kind": kind, "name": name}, "outside any job", worst.values())


def _filesystems(scene: Scene, traffic: Mapping[Filesystem, Traffic]) -> Iterator[Case]:
    strangers = {host.source for host in scene.hosts if not host.name}
    for filesystem in ALL:
        occurrences = []
        if filesystem in traffic:
            sources, line = traffic[filesystem].sources, traffic[filesystem].queue
            is_strange = np.array([source in strangers for source in sources])[line.source]
            rpcs = np.cumsum(is_strange)
            share = rpcs / np.arange(1, len(rpcs) + 1)
            times = line.ready_us // MICROSECONDS
            settled = times >= scene.opened + _UNATTRIBUTED_AFTER_S
            occurrences = [
                measures.occurrence(
                    Cause.UNATTRIBUTED,
                    times,
                    share / causes.UNATTRIBUTED * settled,
                    {"share": share, "rpcs": rpcs},
                )
            ]
        yield _case({"kind": "filesystem", "name": filesystem.name}, "filesystem", occurrences)


def _ratio(occurrence: Occurrence) -> float:
    return occurrence.ratio


def _case(subject: Case, part: str, occurrences: Iterable[Occurrence], *, fault: str = "") -> Case:
    by_ratio = sorted(occurrences, key=_ratio, reverse=True)
    given = Label.BAD_DATA if fault else label(by_ratio)
    return {
        "label": given,
        "part": part,
        "causes": [_description(cause) for cause in by_ratio if cause.ratio >= BORDERLINE[0]],
        "near": {
            cause.cause: round(cause.ratio, 3) for cause in by_ratio if cause.ratio < BORDERLINE[0]
        },
        "subject": subject,
        "expected_quality": "below good" if fault else "good",
        "fault": fault,
    }


def _description(occurrence: Occurrence) -> Case:
    return {
        "cause": occurrence.cause,
        "is_borderline": occurrence.ratio < BORDERLINE[1],
        "ratio": round(occurrence.ratio, 4),
        "onset": iso(occurrence.onset) if occurrence.onset else None,
        "amounts": occurrence.amounts,
    }


def _totals(
    actor: Actor,
    history: History,
    traffic: Mapping[Filesystem, Traffic],
    by_trace: dict[object, list[Occurrence]],
) -> Case:
    waiting = [
        cause.amounts["others_waiting_s"]
        for cause in by_trace.get(actor.source, [])
        if cause.cause is Cause.HARM
    ]
    rpcs = None
    if actor.source in by_trace:
        server = traffic[actor.filesystem]
        rpcs = int(server.counts()[list(server.sources).index(actor.source)])
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
