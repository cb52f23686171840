"""The PanDA campaign: pilots that fill idle nodes, according to the story."""

from collections.abc import Iterator

import numpy as np

from simulator import story
from simulator.batch import week
from simulator.batch.jobs import Demand, Job, Kind
from simulator.clock import HOUR_S, local, midnight
from simulator.plan import Plan
from simulator.site import PANDA
from simulator.story import Era

_SUBMITS_EVERY_S = 115
_WAITED_S = 611  # the jobs in the reports
_DAY_BEGINS = 10 * HOUR_S  # of the operators
_ALWAYS = (
    story.PAUSED,
    local(2017, 7, 7, "06:00:00"),
)  # around the crisis they work without pauses
_OPERATIONS_SPREAD = (0.95, 1.05)
_GB = 10**9

# The jobs in the reports: their batch ids (0: unknown), starts, ends and nodes.
_SHOWN = (
    (0, local(2017, 7, 6, "09:52:55"), local(2017, 7, 6, "15:57:31"), 300),
    (0, local(2017, 7, 6, "23:26:16"), local(2017, 7, 7, "00:03:47"), 300),
    (3_567_126, local(2017, 8, 15, "23:56:11"), local(2017, 8, 16, "01:01:16"), 350),
    (3_570_319, local(2017, 8, 18, "01:46:04"), local(2017, 8, 18, "02:58:22"), 350),
    (3_573_737, local(2017, 8, 21, "01:02:42"), local(2017, 8, 21, "02:16:04"), 350),
)
# Their numbers by submission time; all other jobs are numbered around them.
NUMBER_AT = {start - _WAITED_S: number for number, start, _, _ in _SHOWN if number}
# The jobs of the two launches of the reports' listing: apid, start, end, nodes (see `golden`).
_LISTED = (
    (9_205_355, local(2017, 7, 5, "14:31:02"), local(2017, 7, 5, "16:12:40"), 62),
    (9_205_593, local(2017, 7, 5, "14:38:48"), local(2017, 7, 5, "16:31:15"), 300),
)


class PandaCampaign:
    """Submits a pilot whenever fewer are present than its operators allow."""

    def __init__(self, plan: Plan, rng: np.random.Generator) -> None:
        self._rng = rng
        self._day_s = plan.campaign_hours * HOUR_S
        self._last = 0  # time of the last submission

    def next_job(self, now: int, present: int) -> Job | None:
        """Return a new pilot, or None while the `present` ones are enough."""
        if now - self._last < _SUBMITS_EVERY_S or not self._works(now):
            return None
        if present >= story.slots_at(now):
            return None
        self._last = now
        era = story.era_at(now)
        return pilot(
            era,
            node_count=int(self._rng.choice(era.sizes)),
            runtime_s=int(self._rng.integers(*era.runtime_s)),
            submitted=now,
            rng=self._rng,
            delete_at=story.STOPPED if era.since == story.RESUMED else None,
        )

    def _works(self, now: int) -> bool:
        if week.QUIET[0] <= now < week.QUIET[1]:
            return False
        if _ALWAYS[0] <= now < _ALWAYS[1]:
            return True
        since_morning = (now - midnight(now) - _DAY_BEGINS) % (24 * HOUR_S)
        return since_morning < self._day_s


def pilot(
    era: Era,
    *,
    node_count: int,
    runtime_s: int,
    submitted: int,
    rng: np.random.Generator,
    demand: Demand | None = None,
    started: int | None = None,
    delete_at: int | None = None,
) -> Job:
    """Return a job of the campaign; with `started` it starts at that time."""
    failed = rng.random() < era.failing / 3  # most failures are of single payloads
    return Job(
        number=0,
        user=PANDA,
        name="atlas_pilot",
        queue="batch",
        kind=Kind.PANDA,
        node_count=node_count,
        limit_s=era.limit_s,
        runtime_s=runtime_s,
        submitted=submitted,
        era=era,
        demand=demand or _demand(era, node_count, rng),
        started=started,
        delete_at=delete_at,
        exit_status=1 if failed and started is None else 0,
        busy_share=0.55 if era.conflicts else 0.82,
    )


def week_jobs(rng: np.random.Generator) -> list[Job]:
    """Return the jobs of the table's week."""
    era = story.era_at(story.WEEK[0])
    return [
        pilot(
            era,
            node_count=row.node_count,
            runtime_s=row.runtime_s,
            submitted=row.submitted,
            rng=rng,
            demand=row.demand,
        )
        for row in week.jobs(rng)
    ]


def golden_pilots(plan: Plan, rng: np.random.Generator) -> dict[int, Job]:
    """Return the jobs of the two launches of the listing inside the run, by apid."""
    return {
        apid: _pilot_of_report(start, end, nodes, rng)
        for apid, start, end, nodes in _LISTED
        if plan.holds(start)
    }


def report_pilots(plan: Plan, rng: np.random.Generator) -> Iterator[Job]:
    """Yield the jobs whose opens and closes are in the reports, inside the run."""
    for number, start, end, nodes in _SHOWN:
        if plan.holds(start):
            job = _pilot_of_report(start, end, nodes, rng)
            job.number = number
            yield job


def _pilot_of_report(start: int, end: int, nodes: int, rng: np.random.Generator) -> Job:
    return pilot(
        story.era_at(start),
        node_count=nodes,
        runtime_s=end - start,
        submitted=start - _WAITED_S,
        rng=rng,
        started=start,
    )


def _demand(era: Era, nodes: int, rng: np.random.Generator) -> Demand:
    mine = rng.uniform(*_OPERATIONS_SPREAD)
    return Demand(
        opens=round(era.operations.opens * nodes * mine),
        closes=round(era.operations.closes * nodes * mine),
        cost=era.operations.cost * mine,
        read_bytes=round(era.input_gb * nodes * _GB * rng.uniform(0.9, 1.1)),
        write_bytes=round(era.output_gb * nodes * _GB * rng.uniform(0.9, 1.1)),
    )
