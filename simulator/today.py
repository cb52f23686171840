"""The centre of today: small and endless.

All activity follows from the seed and the time alone, so that repeated queries and queries after
a pause give the same result. Jobs of the analysis cluster and pilots on a few nodes of the machine
arrive at a steady pace. At intervals one job overloads the metadata server, and another one is busy
and harmless.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from simulator import background, site, story
from simulator.activity import Burst, Source
from simulator.batch import behaviour, campaign, workloads
from simulator.batch.jobs import Job, Kind
from simulator.clock import DAY_S, MINUTE_S
from simulator.plan import Plan
from simulator.randomness import stream
from simulator.site import User

LASTS_S = 60 * DAY_S  # period of activity outside jobs
PILOT_EVERY_S = 10 * MINUTE_S
KNEE_PER_S = 6_000.0  # of the metadata server: low, so that it is reached with little load
_MACHINE_NODES = 48  # of the machine, in use
_JOB_EVERY_S = 2 * MINUTE_S
_NODES_EACH = 8  # reserved for each job, in turn from the first node on
_SPECIAL_NODES = 40  # the last nodes of the analysis cluster, for special jobs
_JOBS_AT_ONCE = (site.ANALYSIS_NODE_COUNT - _SPECIAL_NODES) // _NODES_EACH
_LONGEST_S = 95 * MINUTE_S  # before its nodes are assigned to another job
_PILOTS_AT_ONCE = _MACHINE_NODES // _NODES_EACH
_LONGEST_PILOT_S = (_PILOTS_AT_ONCE - 1) * PILOT_EVERY_S
_STEADY_SHARE = 0.2  # relative to the steady load of the busy centre
_WAITS_S = (3, 40)
_FIRST_NUMBER, _NUMBERS_PER_JOB = 1_600_000, 4
_FIRST_PILOT, _NUMBERS_PER_PILOT = 7_500_000, 9

_STORM_EVERY_S = 20 * MINUTE_S
_FIRST_STORM_S = 3 * MINUTE_S  # after the start
_BUSY_AFTER_S = 10 * MINUTE_S  # a storm's onset
# Operations per second, each for an equal part of the time.
_STORM_RATES = (6_700, 6_900, 6_800, 6_800, 6_400, 6_700, 6_400, 6_600, 6_700, 6_300, 5_500, 3_000)
_STORM_LASTS_S = 3 * MINUTE_S
# Factors of the rates, of each storm and of each of its parts: a storm stays above the knee.
_STRENGTHS, _UNEVENNESS = (0.97, 1.3), (0.97, 1.03)
_STORM_MIX = {"open": 0.46, "getattr": 0.43, "close": 0.08, "getxattr": 0.03}
_BUSY_RATES = (1_100,)
_BUSY_LASTS_S = 6 * MINUTE_S
_BUSY_MIX = {"getattr": 0.7, "getxattr": 0.2, "open": 0.05, "close": 0.05}
_BEFORE_S, _AFTER_S = 45, 20  # of a special job's run, before and after the event


@dataclass(frozen=True)
class Event:
    """An event in the truth file: the activity of one job in ``[onset, end)``."""

    job: Job
    onset: int
    end: int
    rates: tuple[int, ...]
    mix: dict[str, float]

    def source(self) -> Source:
        """Return the job as seen by the filesystem."""
        edges = np.linspace(self.onset, self.end, len(self.rates) + 1).astype(int).tolist()
        return Source(
            self.job.batch_id,
            self.job.clients,
            tuple(
                Burst(
                    begin,
                    end,
                    {kind: int(rate * share * (end - begin)) for kind, share in self.mix.items()},
                )
                for begin, end, rate in zip(edges[:-1], edges[1:], self.rates, strict=True)
            ),
        )


@dataclass(frozen=True, eq=False)
class _Act:
    """The repeated activity of a special job."""

    kind: Kind
    first_s: int
    lasts_s: int
    rates: tuple[int, ...]
    mix: dict[str, float]
    casts: tuple[tuple[User, str], ...]  # users and job names, in turn
    first_node: int
    number: int  # last digits of its jobs' numbers


_ACTS = (
    _Act(
        Kind.STORM,
        _FIRST_STORM_S,
        _STORM_LASTS_S,
        _STORM_RATES,
        _STORM_MIX,
        (
            (User("wuxian", 13_818, "CSC200"), "unpack_all"),
            (User("sarkisov", 10_699, "ENG103"), "uq_sweep"),
            (User("nkemelu", 13_105, "MAT049"), "screening"),
        ),
        site.ANALYSIS_NODE_COUNT - _SPECIAL_NODES,
        1,
    ),
    _Act(
        Kind.SCANNER,
        _FIRST_STORM_S + _BUSY_AFTER_S,
        _BUSY_LASTS_S,
        _BUSY_RATES,
        _BUSY_MIX,
        (
            (User("fmoreau", 11_087, "CLI115"), "find_stale"),
            (User("annikab", 13_377, "GEO022"), "catalogue"),
        ),
        site.ANALYSIS_NODE_COUNT - _SPECIAL_NODES // 2,
        2,
    ),
)


class Today:
    """All activity of the centre.

    Args:
        seed: the same seed gives the same days.
        begun: epoch second; start of the activity.
        opened: epoch second; start of special jobs.
        pace: speed of jobs as a multiple of real time.
    """

    def __init__(self, seed: int, begun: int, opened: int, pace: int) -> None:
        self.begun = begun
        self.plan = Plan(
            seed,
            begun,
            begun + LASTS_S,
            node_count=_MACHINE_NODES,
            knee_per_s=KNEE_PER_S,
        )
        self._seed = seed
        self._opened = opened
        self._pace = pace
        self._job = lru_cache(maxsize=4_096)(self._analysis_job)
        self._pilot = lru_cache(maxsize=512)(self._new_pilot)
        self._event = lru_cache(maxsize=64)(self._new_event)
        self._source = lru_cache(maxsize=4_096)(self._new_source)

    @cached_property
    def _background(self) -> list[Source]:
        return background.sources(
            (), self.plan, stream(self._seed, "today: background"), _STEADY_SHARE
        )

    def jobs(self, start: int, end: int) -> list[Job]:
        """Return the jobs that waited or ran in ``[start, end)``, by submission."""
        candidates: list[Job] = [
            *(self._job(n) for n in self._turns(start, end, _JOB_EVERY_S, _LONGEST_S)),
            *(self._pilot(n) for n in self._turns(start, end, PILOT_EVERY_S, _LONGEST_PILOT_S)),
            *(event.job for event in self.events(start, end)),
        ]
        there = [job for job in candidates if job.submitted < end and (job.ended or end) > start]
        return sorted(there, key=lambda job: job.submitted)

    def events(self, start: int, end: int) -> Iterator[Event]:
        """Yield the events of special jobs whose runs overlap ``[start, end)``."""
        every_s = _STORM_EVERY_S // self._pace
        for act in _ACTS:
            first = self._opened + act.first_s // self._pace
            run_s = act.lasts_s // self._pace + _BEFORE_S + _AFTER_S
            turns = range(
                max((start - first - run_s) // every_s, 0), (end - first + _BEFORE_S) // every_s + 1
            )
            for n in turns:
                yield self._event(act, n)

    def sources(self, start: int, end: int) -> list[Source]:
        """Return all sources of load in ``[start, end)``."""
        events = {event.job: event for event in self.events(start, end)}
        mine = [
            events[job].source() if job in events else self._source(job)
            for job in self.jobs(start, end)
        ]
        return [*mine, *self._background]

    def _turns(self, start: int, end: int, every_s: int, longest_s: int) -> Iterable[int]:
        """Return numbers of jobs that may be present; before the start they are negative."""
        every_s, longest_s = every_s // self._pace, longest_s // self._pace + _WAITS_S[1]
        return range((start - longest_s - self.begun) // every_s, (end - self.begun) // every_s + 1)

    def _analysis_job(self, n: int) -> Job:
        chance = self._chance("job", n)
        job = workloads.analysis_job(self.begun + n * _JOB_EVERY_S // self._pace, chance)
        job.number = _FIRST_NUMBER + _NUMBERS_PER_JOB * n
        job.runtime_s = min(job.runtime_s, _LONGEST_S) // self._pace
        return self._run(job, n % _JOBS_AT_ONCE, chance)

    def _new_pilot(self, n: int) -> Job:
        chance = self._chance("pilot", n)
        submitted = self.begun + n * PILOT_EVERY_S // self._pace
        era = story.era_at(submitted)
        runtime_s = min(int(chance.integers(*era.runtime_s)), _LONGEST_PILOT_S) // self._pace
        job = campaign.pilot(
            era, node_count=_NODES_EACH, runtime_s=runtime_s, submitted=submitted, rng=chance
        )
        job.number = _FIRST_PILOT + _NUMBERS_PER_PILOT * n
        return self._run(job, n % _PILOTS_AT_ONCE, chance)

    def _run(self, job: Job, place: int, chance: np.random.Generator) -> Job:
        job.started = job.submitted + int(chance.integers(*_WAITS_S))
        job.ended = job.started + job.runtime_s
        job.nodes = np.arange(job.node_count) + place * _NODES_EACH
        return job

    def _new_event(self, act: _Act, n: int) -> Event:
        onset = self._opened + (act.first_s + n * _STORM_EVERY_S) // self._pace
        user, name = act.casts[n % len(act.casts)]
        end = onset + act.lasts_s // self._pace
        started = onset - _BEFORE_S
        turn = (started - self.begun) // (_JOB_EVERY_S // self._pace)
        job = Job(
            number=_FIRST_NUMBER + _NUMBERS_PER_JOB * turn + act.number,
            user=user,
            name=name,
            queue="batch",
            kind=act.kind,
            node_count=_NODES_EACH,
            limit_s=3_600,
            runtime_s=end - started + _AFTER_S,
            submitted=started - _WAITS_S[1],
            cluster=site.ANALYSIS_CLUSTER,
            started=started,
            ended=end + _AFTER_S,
            nodes=np.arange(_NODES_EACH) + act.first_node,
            busy_share=0.2,
        )
        chance = self._chance(act.kind.value, n)
        strengths = chance.uniform(*_STRENGTHS) * chance.uniform(*_UNEVENNESS, len(act.rates))
        rates = tuple((strengths * act.rates).astype(int).tolist())
        return Event(job, onset, end, rates, act.mix)

    def _new_source(self, job: Job) -> Source:
        return behaviour.source(job, self._chance(f"behaviour on {job.cluster}", job.number))

    def _chance(self, purpose: str, number: int) -> np.random.Generator:
        return stream(self._seed, f"today: {purpose} {number}")
