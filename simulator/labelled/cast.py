"""The jobs of a labelled set: each with its play, its user, its nodes and its time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator import site
from simulator.activity import Source
from simulator.batch.jobs import Ints, Job, Kind
from simulator.clock import DAY_S, HOUR_S, MINUTE_S
from simulator.labelled import crowds, heavy
from simulator.labelled.ordinary import ordinary
from simulator.labelled.play import Play, between, later
from simulator.randomness import stream
from simulator.site import User

NODE_COUNT = 12_000
CLIENTS = np.arange(1, NODE_COUNT + 1)  # of the nodes, as in the registered rule
BEFORE_S = 6 * HOUR_S  # of history: enough calm for a baseline
STREAM_S = 30 * MINUTE_S

_STRENGTH = (0.08, 1.5)
_WEAK = (0.001, 0.03)  # in the history
_HEAVY, _HEAVY_BEFORE = 2, 1  # jobs of each kind
_ARRAYS, _CAMPAIGNS, _SPOOFERS, _CLEARED = 3, 1, 2, 2
_CRON_STRENGTH, _TOGETHER_STRENGTH = (0.3, 1.5), (0.5, 1.5)
_JOBS_A_DAY, _NIGHT = 10_000, 0.2  # ordinary jobs; their rate before the stream
_USERS, _PROJECTS = 150, 30
_FIRST_NUMBER = 1_700_000
_FIRST_UID = 20_100
_STARTS_WITHIN_S = 8 * MINUTE_S  # of the stream: long jobs
_SPARE_S = 5 * MINUTE_S  # jobs on a slow server take longer


@dataclass
class Role:
    """A play with its circumstances.

    Args:
        play: the play.
        start: earliest start, seconds after the stream begins.
        user: index of its owner; None: a random user.
        spoofs: sends the id of another user's job.
        is_punctual: starts at this time, and others later if too few nodes are free.
        cleared_s: seconds until its counters are cleared; 0: never.
        nodes: assigned nodes.
    """

    play: Play
    start: int
    user: int | None = None
    spoofs: bool = False
    is_punctual: bool = False
    cleared_s: int = 0
    nodes: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Actor:
    """A job and its demand; its requests may carry the id of another job."""

    job: Job
    role: Role
    source: Source


def actors(
    seed: int, opened: int, capacity_per_s: float, share: float, *, has_uids: bool
) -> list[Actor]:
    """Return all jobs in order of their numbers.

    Args:
        seed: the same seed gives the same jobs.
        opened: start of the stream.
        capacity_per_s: of the server, requests of the usual mix.
        share: size relative to a complete set, 0 to 1.
        has_uids: whether job ids carry the user id.
    """
    roles = list(_roles(stream(seed, "labelled: plays"), capacity_per_s, share))
    _place(roles, stream(seed, "labelled: nodes"))
    return list(_hired(roles, opened, stream(seed, "labelled: people"), has_uids=has_uids))


def _roles(chance: np.random.Generator, capacity_per_s: float, share: float) -> Iterator[Role]:
    def some(count: int) -> int:
        return max(round(count * share), 1)

    for kind in heavy.KINDS:
        for _ in range(some(_HEAVY)):
            play = kind(chance, capacity_per_s, between(chance, *_STRENGTH))
            yield Role(play, _in_stream(chance, play))
        for _ in range(_HEAVY_BEFORE):
            play = kind(chance, capacity_per_s, between(chance, *_WEAK))
            yield Role(play, -int(chance.integers(play.runtime_s, BEFORE_S)))
    yield from _crowds(chance, capacity_per_s, share)
    for _ in range(_SPOOFERS):
        play = heavy.storm(chance, capacity_per_s, between(chance, *_STRENGTH))
        yield Role(play, _in_stream(chance, play), spoofs=True)
    for _ in range(_CLEARED):
        play = heavy.many_files(chance, capacity_per_s, between(chance, *_STRENGTH))
        yield Role(play, _in_stream(chance, play), cleared_s=play.runtime_s // 3)
    per_s = _JOBS_A_DAY / DAY_S * share
    for begin, end, rate in ((-BEFORE_S, 0, _NIGHT * per_s), (0, STREAM_S, per_s)):
        for _ in range(int(rate * (end - begin))):
            yield Role(ordinary(chance), int(chance.integers(begin, end)))


def _in_stream(chance: np.random.Generator, play: Play) -> int:
    """Return a start after which a play ends within the stream, if it is short enough."""
    latest = max(STREAM_S - 5 * MINUTE_S - play.runtime_s, _STARTS_WITHIN_S)
    return int(chance.integers(60, latest))


def _crowds(chance: np.random.Generator, capacity_per_s: float, share: float) -> Iterator[Role]:
    for _ in range(_ARRAYS):
        strength = between(chance, *_STRENGTH)
        plays = list(crowds.array(chance, capacity_per_s * share, strength))
        user, start = int(chance.integers(_USERS)), _in_stream(chance, plays[0])
        for play in plays:
            yield Role(play, start, user)
    for _ in range(_CAMPAIGNS):
        strength = between(chance, *_STRENGTH)
        project, start = int(chance.integers(_PROJECTS)), int(chance.integers(60, _STARTS_WITHIN_S))
        for play in crowds.campaign(chance, capacity_per_s * share, strength):
            user = project + _PROJECTS * int(chance.integers(_USERS // _PROJECTS))
            yield Role(play, start + int(chance.integers(5 * MINUTE_S)), user)
    first, start = int(chance.integers(_USERS)), int(chance.integers(60, STREAM_S - 10 * MINUTE_S))
    cron = crowds.cron_jobs(chance, capacity_per_s * share, between(chance, *_CRON_STRENGTH))
    for n, play in enumerate(cron):
        # At most two of a project.
        yield Role(play, start, (first + n) % _USERS, is_punctual=True)
    play = crowds.large_start(chance)
    yield Role(play, _in_stream(chance, play), is_punctual=True)
    storms = [
        heavy.storm(chance, capacity_per_s, between(chance, *_TOGETHER_STRENGTH)) for _ in range(2)
    ]
    at = max(map(_peak, storms)) + _in_stream(chance, storms[0])
    for play in storms:  # each blocks the server, even without the other
        yield Role(play, at - _peak(play), is_punctual=True)


def _peak(play: Play) -> int:
    """Return when a play sends most requests a second."""
    rates = [sum(burst.mdt.values()) / (burst.end - burst.start) for burst in play.bursts]
    return play.bursts[int(np.argmax(rates))].start


def _place(roles: Sequence[Role], chance: np.random.Generator) -> None:
    """Assign separate nodes to each role, at a later time if none are free.

    Punctual roles come first, then the largest.
    """
    minutes = (BEFORE_S + STREAM_S + 8 * HOUR_S) // MINUTE_S
    is_held = np.zeros((minutes, NODE_COUNT), dtype=bool)
    for role in sorted(roles, key=lambda role: (not role.is_punctual, -role.play.nodes)):
        while True:
            first, last = (
                (moment + BEFORE_S) // MINUTE_S
                for moment in (role.start, role.start + role.play.runtime_s + _SPARE_S)
            )
            free = np.flatnonzero(~is_held[max(first, 0) : last + 1].any(axis=0))
            if len(free) >= role.play.nodes:
                break
            role.start += 3 * MINUTE_S
        at = int(chance.integers(len(free) - role.play.nodes + 1))
        role.nodes = free[at : at + role.play.nodes]
        is_held[max(first, 0) : last + 1, role.nodes] = True


def _hired(
    roles: list[Role], opened: int, chance: np.random.Generator, *, has_uids: bool
) -> Iterator[Actor]:
    users = [User(f"user{n:03d}", _FIRST_UID + n, f"PRJ{n % _PROJECTS:03d}") for n in range(_USERS)]
    weights = chance.dirichlet(np.full(_USERS, 0.5))
    submitted = [role.start - int(chance.integers(5, 900)) for role in roles]
    order = np.argsort(submitted, kind="stable").tolist()
    jobs: dict[int, Job] = {}
    for number, n in enumerate(order, _FIRST_NUMBER):
        role = roles[n]
        index = int(chance.choice(_USERS, p=weights)) if role.user is None else role.user
        jobs[n] = _job(number, users[index], role, opened + submitted[n], opened)
    for n in order:
        claimed = _victim(jobs, n, chance) if roles[n].spoofs else jobs[n]
        suffix = f":{jobs[n].user.uid}" if has_uids else ""
        yield Actor(jobs[n], roles[n], _source(roles[n], f"{claimed.batch_id}{suffix}", opened))


def _job(number: int, user: User, role: Role, submitted: int, opened: int) -> Job:
    play = role.play
    return Job(
        number=number,
        user=user,
        name=play.name,
        queue="batch",
        kind=Kind.SIMULATION,
        node_count=play.nodes,
        limit_s=min(-(-play.runtime_s // HOUR_S) * HOUR_S, DAY_S),
        runtime_s=play.runtime_s,
        submitted=submitted,
        cluster=site.ANALYSIS_CLUSTER,
        started=opened + role.start,
        ended=opened + role.start + play.runtime_s,
        nodes=role.nodes,
        busy_share=play.busy_share,
    )


def _victim(jobs: dict[int, Job], spoofer: int, chance: np.random.Generator) -> Job:
    """Return the job of another user that runs at the same time, if possible."""
    mine = jobs[spoofer]
    others = [job for job in jobs.values() if job.user is not mine.user]
    now = (mine.started or 0) + mine.runtime_s // 2
    same_time = [job for job in others if (job.started or 0) < now < (job.ended or 0)]
    candidates = same_time or others
    return candidates[int(chance.integers(len(candidates)))]


def _source(role: Role, job_id: str, opened: int) -> Source:
    bursts = sorted(role.play.bursts, key=lambda burst: burst.start)
    return Source(
        job_id,
        CLIENTS[role.nodes],
        later(bursts, opened + role.start),
        spread=(1.0,),
        blocked_share=role.play.blocked_share,
    )
