"""The cast: jobs, each with its play, its user, its nodes and its time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from simulator import site
from simulator.activity import Source
from simulator.batch.jobs import Ints, Job, Kind
from simulator.cases import abuse, causes, harmless
from simulator.cases.causes import BORDERLINE, Cause
from simulator.cases.filesystems import UNREAD, Filesystem
from simulator.cases.play import Play, between, later, phase, shares
from simulator.clock import DAY_S, HOUR_S, MINUTE_S
from simulator.randomness import stream
from simulator.site import User

NODE_COUNT = 8_000
BEFORE_S, CALM_S = 20 * HOUR_S, 14 * HOUR_S
STREAM_S = 90 * MINUTE_S
GAP_S = (1_500, 2_900)  # after the stream begins: counters of the unread filesystem are not read

_POSITIVES = 5  # for each cause
_BORDERLINES = 2
_NEAR_MISSES = 2
_NEAR_MISS = (0.12, 0.45)
_UPPER = {  # of a positive amount
    Cause.OPERATIONS: 10.0,
    Cause.RATE: 7.0,
    Cause.START_UP: 7.0,
    Cause.STATS: 6.0,
    Cause.OUTLIER: 2.6,
    Cause.CHURN: 5.0,
}
_LOWER = {Cause.OUTLIER: 1.6}
_MOST_UNCOUNTED = 1.8  # failed look-ups in a trace are one line each
_BEFORE_JOBS, _BEFORE_HEAVY = 1_650, 135
_STREAM_JOBS, _STREAM_HEAVY = 85, 36
_CALM_JOBS, _BYSTANDERS = 175, 48
_USERS = 150
_FIRST_STORM_S = 600
_FIRST_NUMBER = 1_700_000
_CAMPAIGNS, _CAMPAIGN = 2, (1.3, 1.45)
_CAMPAIGN_BEFORE, _CAMPAIGN_STREAM = 24, 9  # jobs
_CAMPAIGN_SHARE_BEFORE, _CAMPAIGN_MOST_BEFORE = 0.72, 0.92  # the threshold is crossed in the stream


@dataclass
class Role:
    """A play with its circumstances.

    Args:
        play: the play.
        start: earliest start, seconds after the stream begins.
        user: owner of the job; None: any user.
        fault: defect of its data.
        reset_s: seconds until its counters are cleared; 0: never.
        neighbour: the role that shares its nodes, without job ids.
        nodes: assigned nodes.
    """

    play: Play
    start: int
    user: str | None = None
    fault: str = ""
    reset_s: int = 0
    neighbour: "Role | None" = None
    nodes: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def end(self) -> int:
        """Return the end of the role."""
        return self.start + self.play.runtime_s


@dataclass(frozen=True, eq=False)
class Actor:
    """A job and its activity."""

    job: Job
    role: Role
    source: Source

    @property
    def filesystem(self) -> Filesystem:
        """Return the filesystem of its activity."""
        return self.role.play.filesystem


def actors(seed: int, opened: int, knee_per_s: float, share: float) -> list[Actor]:
    """Return all jobs in order of their numbers.

    Args:
        seed: the same seed gives the same jobs.
        opened: start of the stream.
        knee_per_s: capacity of the small server, requests per second.
        share: size relative to a complete set, 0 to 1.
    """
    roles = list(_roles(stream(seed, "cases: plays"), knee_per_s, share))
    _place(roles, stream(seed, "cases: nodes"))
    return list(_hired(roles, opened, stream(seed, "cases: people")))


def _roles(chance: np.random.Generator, knee_per_s: float, share: float) -> Iterator[Role]:
    def some(count: int) -> int:
        return max(round(count * share), 1)

    yield from _storms(chance, knee_per_s, some(_POSITIVES))
    yield from _abuse(chance, some)
    yield from _unread(chance)
    yield from _cleared(chance)
    yield from _campaigns(chance)
    yield from _crowds(chance)
    for n in range(some(_STREAM_HEAVY)):
        play = harmless.HEAVY[n % len(harmless.HEAVY)](chance)
        yield Role(play, _any_time(chance, play))
    without_trace = [play for play in harmless.HEAVY if play is not harmless.busy]
    for n in range(some(_BEFORE_HEAVY)):
        play = without_trace[n % len(without_trace)](chance)
        yield Role(play, -int(chance.integers(play.runtime_s // 2, BEFORE_S)))
    for _ in range(some(_BEFORE_JOBS)):
        play = harmless.ordinary(chance)
        yield Role(play, -int(chance.integers(play.runtime_s // 2, BEFORE_S)))
    for _ in range(some(_STREAM_JOBS)):
        yield Role(harmless.ordinary(chance), int(chance.integers(-1_500, STREAM_S - 300)))
    for _ in range(some(_CALM_JOBS)):
        play = harmless.bystander(chance, 0.15, 0.4)
        yield Role(play, -int(chance.integers(play.runtime_s, CALM_S)))
    for _ in range(_BYSTANDERS):  # a smaller set has as many potentially affected jobs
        play = harmless.bystander(chance, 0.3, 2.0)
        yield Role(play, int(chance.integers(0, STREAM_S - 600)))


def _any_time(chance: np.random.Generator, play: Play) -> int:
    """Return a start after which a play ends within the stream, if it is short enough."""
    return int(chance.integers(60, max(STREAM_S - 90 - play.runtime_s, 61)))


def _abuse(chance: np.random.Generator, some: Callable[[int], int]) -> Iterator[Role]:
    for cause, plays in abuse.OF_COUNTERS.items():
        for play in plays:
            upper = _UPPER.get(cause, 8.0)
            upper = min(upper, _MOST_UNCOUNTED) if play is abuse.uncounted_look_ups else upper
            amounts = [
                *(
                    between(chance, _LOWER.get(cause, 1.4), upper)
                    for _ in range(some(_POSITIVES) if len(plays) == 1 else some(3))
                ),
                *(
                    between(chance, *BORDERLINE)
                    for _ in range(some(_BORDERLINES) if len(plays) == 1 else 1)
                ),
                *(between(chance, *_NEAR_MISS) for _ in range(some(_NEAR_MISSES))),
            ]
            for amount in amounts:
                chosen = play(chance, amount)
                yield Role(chosen, _any_time(chance, chosen))


def _storms(chance: np.random.Generator, knee_per_s: float, count: int) -> Iterator[Role]:
    """Yield storms of the small server, with lock contention between them."""
    loads = [*(chance.uniform(1.0, 1.08) for _ in range(count)), chance.uniform(0.2, 0.98)]
    slots = np.linspace(_FIRST_STORM_S, STREAM_S - 200, len(loads) + 2).astype(int)[:-1].tolist()
    amounts = [*(between(chance, 1.5, 6) for _ in range(count)), between(chance, *BORDERLINE)]
    # The last slot has two jobs that share nodes and send no ids.
    for slot, load in zip(slots, chance.permutation(loads).tolist(), strict=False):
        storm = abuse.harm(chance, load, knee_per_s)
        yield Role(storm, slot - abuse.quiet_s(storm))
    for slot, amount in zip(slots, chance.permutation(amounts).tolist(), strict=False):
        yield Role(abuse.locks(chance, amount), slot + 160)
    storm = abuse.harm(chance, 1.04, knee_per_s)
    first = Role(storm, slots[-1] - abuse.quiet_s(storm), fault=_SHARED)
    yield first
    yield Role(
        _like(harmless.bystander(chance, 1, 3), storm), first.start, fault=_SHARED, neighbour=first
    )
    calm = Role(harmless.bystander(chance, 1, 3), int(chance.integers(600, 2_000)), fault=_SHARED)
    yield calm
    other = _like(harmless.bystander(chance, 1, 3), calm.play)
    yield Role(other, calm.start, fault=_SHARED, neighbour=calm)


_SHARED = "shares its nodes, and sends no job id"
_GAP = "its counters are not read for a while"
_CLEARED = "its counters were cleared"


def _like(play: Play, other: Play) -> Play:
    """Return a play on as many nodes as another, with at most its duration."""
    runtime_s = min(play.runtime_s, other.runtime_s)
    bursts = tuple(burst for burst in play.bursts if burst.end <= runtime_s)
    return replace(play, nodes=other.nodes, runtime_s=runtime_s, bursts=bursts)


def _unread(chance: np.random.Generator) -> Iterator[Role]:
    """Yield jobs that run while the counters of their filesystem are not read."""
    plays = [
        abuse.too_many(chance, between(chance, 1.5, 4)),
        abuse.churn(chance, between(chance, 1.5, 4)),
        abuse.small_writes(chance, between(chance, 1.5, 4)),
        harmless.ordinary(chance),
        harmless.large_reads(chance),
        harmless.search(chance),
    ]
    for play in plays:
        start = GAP_S[0] - int(chance.integers(60, 300))
        yield Role(replace(play, filesystem=UNREAD), start, fault=_GAP)


def _cleared(chance: np.random.Generator) -> Iterator[Role]:
    """Yield jobs whose counters are cleared during their run."""
    plays = [
        abuse.too_many(chance, between(chance, 1.5, 4)),
        abuse.small_writes(chance, between(chance, 1.5, 4)),
        abuse.churn(chance, between(chance, 1.5, 4)),
        harmless.large_reads(chance),
        harmless.large(chance),
    ]
    for play in plays:
        reset_s = play.runtime_s // 4
        yield Role(play, _any_time(chance, play), fault=_CLEARED, reset_s=reset_s)


def _campaigns(chance: np.random.Generator) -> Iterator[Role]:
    """Yield jobs of users who submit many, each below the definition of abuse."""
    amounts = [
        *(chance.uniform(*_CAMPAIGN) for _ in range(_CAMPAIGNS)),
        between(chance, *BORDERLINE),
        between(chance, *_NEAR_MISS),
    ]
    for n, amount in enumerate(amounts):
        whole = causes.CAMPAIGN * amount
        before = min(whole * _CAMPAIGN_SHARE_BEFORE, causes.CAMPAIGN * _CAMPAIGN_MOST_BEFORE)
        for count, total, first, last in (
            (_CAMPAIGN_BEFORE, before, -BEFORE_S + 2 * HOUR_S, -HOUR_S),
            (_CAMPAIGN_STREAM, whole - before, 60, STREAM_S - 50 * MINUTE_S),
        ):
            parts = chance.dirichlet(np.full(count, 40.0)) * total
            for operations in parts.tolist():
                yield Role(
                    _member(chance, operations), int(chance.integers(first, last)), f"campaigner{n}"
                )


def _member(chance: np.random.Generator, operations: float) -> Play:
    runtime_s = int(chance.integers(42, 48)) * MINUTE_S
    mix = {"open": 0.36, "close": 0.3, "getattr": 0.3, "mknod": 0.04}
    return Play(
        "one of a campaign",
        "pilot.sh",
        16,
        runtime_s,
        tuple(phase(chance, 20, runtime_s - 30, shares(operations, mix))),
        busy_share=chance.uniform(0.6, 0.9),
    )


def _crowds(chance: np.random.Generator) -> Iterator[Role]:
    """Yield the jobs of users who submit many small ones."""
    for n in range(3):
        for _ in range(30):
            start = int(chance.integers(-BEFORE_S // 2, STREAM_S - 15 * MINUTE_S))
            yield Role(harmless.small_job(chance), start, f"arrays{n}")


def _place(roles: Sequence[Role], chance: np.random.Generator) -> None:
    """Assign separate nodes to each role, at a later time if none are free."""
    minutes = (BEFORE_S + STREAM_S + 8 * HOUR_S) // MINUTE_S
    is_held = np.zeros((minutes, NODE_COUNT), dtype=bool)
    for role in roles:
        if role.neighbour:
            role.start, role.nodes = role.neighbour.start, role.neighbour.nodes
            continue
        while True:
            first, last = (
                (moment + BEFORE_S + HOUR_S) // MINUTE_S for moment in (role.start, role.end)
            )
            free = np.flatnonzero(~is_held[first : last + 2].any(axis=0))
            if len(free) >= role.play.nodes:
                break
            role.start += 3 * MINUTE_S
        at = int(chance.integers(len(free) - role.play.nodes + 1))
        role.nodes = free[at : at + role.play.nodes]
        is_held[first : last + 2, role.nodes] = True


def _hired(roles: list[Role], opened: int, chance: np.random.Generator) -> Iterator[Actor]:
    users = {
        name: User(name, 20_000 + n, f"PRJ{n % 30:03d}")
        for n, name in enumerate(
            [
                *(f"user{n:03d}" for n in range(_USERS)),
                *{role.user: 0 for role in roles if role.user},
            ]
        )
    }
    anybody = list(users)[:_USERS]
    waited = [(role.start - int(chance.integers(5, 900)), role) for role in roles]
    for number, (submitted, role) in enumerate(
        sorted(waited, key=lambda pair: pair[0]), _FIRST_NUMBER
    ):
        play = role.play
        job = Job(
            number=number,
            user=users[role.user or str(chance.choice(anybody))],
            name=play.name,
            queue="batch",
            kind=Kind.SIMULATION,
            node_count=play.nodes,
            limit_s=min(-(-play.runtime_s // HOUR_S) * HOUR_S, DAY_S),
            runtime_s=play.runtime_s,
            submitted=opened + submitted,
            cluster=site.ANALYSIS_CLUSTER,
            cores_per_node=site.CORES_PER_NODE // (2 if role.fault == _SHARED else 1),
            started=opened + role.start,
            ended=opened + role.end,
            nodes=role.nodes,
            busy_share=play.busy_share,
        )
        source = Source(
            job_id=None if role.fault == _SHARED else job.batch_id,
            clients=role.nodes + 1,  # as in the registered rule
            bursts=later(play.bursts, opened + role.start),
            spread=(1.0,),
            blocked_share=play.blocked_share,
            in_flight=play.in_flight,
        )
        yield Actor(job, role, source)
