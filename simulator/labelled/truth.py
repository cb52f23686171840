"""The true harm and waste of all jobs, groups and hosts."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.activity import MDT_KINDS, OPEN, OPERATIONS, Source
from simulator.batch.jobs import Ints
from simulator.clock import iso
from simulator.labelled import harm
from simulator.labelled.harm import Harm, Suspect
from simulator.labelled.scene import Scene
from simulator.labelled.service import Service
from simulator.labelled.writing import EXPORTS, FILESYSTEM, MDS

HARMFUL_S = 60.0  # of others' waiting
BORDERLINE_S = (30.0, 120.0)
WASTED, WASTED_SHARE = 100_000, 0.5  # operations that did nothing
_EXPLAINS = 0.5  # of a group's harm: then the part is the subject

_OF_A_USER = ("job", "application", "user")

Case = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """Jobs or a host, as a subject of rules.

    Args:
        kind: job, application (user and job name), user, campaign (project and job name), project,
            or host.
        name: its name.
        senders: indices of its senders.
        parts: groups inside it.
    """

    kind: str
    name: str
    senders: tuple[int, ...]
    parts: "tuple[Group, ...]" = ()


def content(scene: Scene, service: Service) -> dict[str, object]:
    """Return the truth file."""
    roots = list(_groups(scene))
    groups = list(_flat(roots))
    suspects = list(_suspects(scene, groups))
    measured = harm.measure(
        service.server, service.requests, service.served, suspects, _owners(scene)
    )
    harms = dict(zip(groups, measured, strict=True))
    work = _Work.measure(scene, service)
    return {
        "seed": scene.seed,
        "begun": iso(scene.begun),
        "start": iso(scene.opened),
        "end": iso(scene.closed),
        "filesystem": FILESYSTEM,
        "server": MDS,
        "exports": EXPORTS,
        "capacity_per_s": scene.capacity_per_s,
        "discipline": scene.discipline,
        "version": scene.version,
        "has_uids": scene.has_uids,
        "failover": scene.failover and iso(scene.failover),
        "subjects": [
            _subject(scene, group, harms[group], work)
            for group in dict.fromkeys(_subjects(roots, harms))
        ],
        "groups": [_totals(group, harms[group], work) for group in groups],
        "jobs": {
            actor.job.batch_id: {
                "part": actor.role.play.part,
                "user": actor.job.user.name,
                "name": actor.job.name,
                "project": actor.job.user.project,
                "nodes": actor.job.node_count,
                "spoofs": actor.role.spoofs,
                "claims": actor.source.job_id,
                "operations": int(work.operations[n]),
            }
            for n, actor in enumerate(scene.actors)
        },
        "hosts": {host.nid: host.process for host in scene.hosts},
    }


def _groups(scene: Scene) -> Iterator[Group]:
    """Yield all groups from the outside: users, campaigns, projects, with the groups inside."""
    jobs: dict[tuple[str, str], list[int]] = defaultdict(list)
    for n, actor in enumerate(scene.actors):
        jobs[actor.job.user.name, actor.job.name].append(n)
    by_user: dict[str, list[Group]] = defaultdict(list)
    by_campaign: dict[str, list[Group]] = defaultdict(list)
    by_project: dict[str, list[Group]] = defaultdict(list)
    for (user, name), members in sorted(jobs.items()):
        parts = [Group("job", scene.actors[n].job.batch_id, (n,)) for n in members]
        application = Group("application", f"{user} {name}", tuple(members), tuple(parts))
        by_user[user].append(application)
        project = scene.actors[members[0]].job.user.project
        by_campaign[f"{project} {name}"].append(application)
        by_project[project].append(application)
    for kind, outer in (("user", by_user), ("campaign", by_campaign), ("project", by_project)):
        for name, inner in sorted(outer.items()):
            yield Group(kind, name, tuple(n for part in inner for n in part.senders), tuple(inner))
    first = len(scene.actors)
    for n, host in enumerate(scene.hosts):
        yield Group("host", host.nid, (first + n,))


def _suspects(scene: Scene, groups: Sequence[Group]) -> Iterator[Suspect]:
    """Yield each group with the other jobs of its user; a campaign has several users."""
    by_user: dict[str, list[int]] = defaultdict(list)
    for n, actor in enumerate(scene.actors):
        by_user[actor.job.user.name].append(n)
    for group in groups:
        own = group.senders
        if group.kind in _OF_A_USER:
            own = tuple(by_user[scene.actors[own[0]].job.user.name])
        yield Suspect(np.array(group.senders), np.array(own))


def _owners(scene: Scene) -> Ints:
    """Return the number of the user of each sender; each host has its own."""
    names = [actor.job.user.name for actor in scene.actors] + [host.nid for host in scene.hosts]
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _flat(groups: Sequence[Group]) -> Iterator[Group]:
    seen: dict[Group, None] = {}
    for group in groups:
        seen[group] = None
        seen.update(dict.fromkeys(_flat(group.parts)))
    yield from seen


def _subjects(groups: Sequence[Group], harms: Mapping[Group, Harm]) -> Iterator[Group]:
    """Yield the narrowest groups that explain the harm."""
    for group in groups:
        waited_s = harms[group].waited_s
        if group.kind == "project" or (group.kind == "campaign" and len(group.parts) == 1):
            continue
        explains = [part for part in group.parts if harms[part].waited_s >= _EXPLAINS * waited_s]
        # Without any of several parts, a queue may not form: then all of them are the subject.
        if group.parts and (len(explains) == 1 or waited_s < BORDERLINE_S[0]):
            yield from _subjects(group.parts, harms)
        elif waited_s >= BORDERLINE_S[0]:
            yield group


@dataclass(frozen=True)
class _Work:
    """Operations of each sender until the stream ends, and wasted operations."""

    operations: Ints
    wasted: Ints

    @classmethod
    def measure(cls, scene: Scene, service: Service) -> "_Work":
        rows = [_worked(source, scene.closed) for source in service.sources]
        operations, wasted = np.array(rows).T
        return cls(operations, wasted)


def _worked(source: Source, until: int) -> tuple[int, int]:
    moment = np.array([until])
    done = source.mdt_counts(moment)[0]
    opened = source.mdt_counted(moment, 0)[0, OPEN]
    requests, _ = source.ost_requests(0, moment)
    created = done[MDT_KINDS.index("mknod")]  # a file need not be written
    unused = max(int(opened - created - requests.sum()), 0)
    failed = int(done[OPEN] - opened)
    return int(done[OPERATIONS].sum()), failed + 2 * unused  # with its close


def _totals(group: Group, harmed: Harm, work: _Work) -> Case:
    members = list(group.senders)
    operations, wasted = (int(column[members].sum()) for column in (work.operations, work.wasted))
    return {
        "kind": group.kind,
        "name": group.name,
        "harm_s": round(harmed.waited_s, 3),
        "operations": operations,
        "wasted": wasted,
        "is_waste": wasted >= WASTED and wasted >= WASTED_SHARE * operations,
    }


def _subject(scene: Scene, group: Group, harmed: Harm, work: _Work) -> Case:
    members = [n for n in group.senders if n < len(scene.actors)]
    parts: dict[str, int] = defaultdict(int)
    for n in members:
        parts[scene.actors[n].role.play.part] += int(work.operations[n])
    onset = harmed.onset(HARMFUL_S)
    lower, upper = BORDERLINE_S
    return {
        **_totals(group, harmed, work),
        "part": max(parts, key=parts.__getitem__) if parts else "host outside jobs",
        "is_borderline": lower <= harmed.waited_s < upper,
        "onset": None if onset is None else iso(scene.begun + onset),
        "jobs": [scene.actors[n].job.batch_id for n in members],
        "users": sorted({scene.actors[n].job.user.name for n in members}),
    }
