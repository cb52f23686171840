"""All events at the centre, before they are written to logs."""

from dataclasses import dataclass

import numpy as np

from simulator import background, story, story_storm
from simulator.activity import Source
from simulator.batch import behaviour, campaign, launches, numbers, shared_nodes, workloads
from simulator.batch.jobs import Job, Kind
from simulator.batch.scheduler import DELETED, Scheduler
from simulator.clock import local
from simulator.plan import Plan
from simulator.randomness import stream
from simulator.site import User

_HELD_BACK = 400  # reserved nodes for jobs with fixed starts
_NUMBERS_PER_S = 0.01345  # other systems of the centre use batch numbers, too
_ANALYSIS_NUMBERS_PER_S = 0.004
_ANALYSIS_NUMBER_AT = {local(2017, 1, 1): 318_204}
_BIOLOGIST = User("geneve", 12_260, "BIP112")
_LATE_START = local(2017, 7, 6, "11:10:20")
_POOR_START = local(2017, 7, 7, "08:05:00")  # a quarter of an hour before a gap


@dataclass(frozen=True)
class Centre:
    """All jobs and other load.

    Args:
        jobs: all jobs in order of submission.
        golden: jobs of the reports' listing inside the run, by apid.
        late: a job whose accounting has a separate file; None: outside the run.
        poor: a job that ran mostly while counters were not read; None: outside the run.
        of_job: activity of each started job.
        background_sources: other load.
    """

    jobs: list[Job]
    golden: dict[int, Job]
    late: Job | None
    poor: Job | None
    of_job: dict[Job, Source]
    background_sources: list[Source]

    @property
    def sources(self) -> list[Source]:
        """Return all sources of load, jobs first."""
        return [*self.of_job.values(), *self.background_sources]


def happen(plan: Plan) -> Centre:
    """Simulate the plan's period; the same plan gives the same days."""
    chance = stream(plan.seed, "pilots of the reports")
    golden = campaign.golden_pilots(plan, chance)
    late = _small_files_job(plan, _LATE_START, minutes=92, node_count=32)
    poor = _small_files_job(plan, _POOR_START, minutes=73, node_count=16)
    fixed = [
        *golden.values(),
        *campaign.report_pilots(plan, chance),
        *(job for job in (late, poor, *_storm(plan)) if job),
    ]
    ordinary = workloads.jobs(plan, stream(plan.seed, "submissions"))
    if plan.holds(min(story.WEEK)) and plan.holds(max(story.WEEK) - 1):
        ordinary += campaign.week_jobs(stream(plan.seed, "week"))
    scheduler = Scheduler(
        plan.node_count, _HELD_BACK, plan.start, plan.end, stream(plan.seed, "nodes")
    )
    pilots = scheduler.run(
        ordinary, fixed, campaign.PandaCampaign(plan, stream(plan.seed, "campaign"))
    )
    jobs = sorted([*ordinary, *fixed, *pilots], key=lambda job: job.submitted)
    if plan.stops:
        _delete_running(jobs, plan.end - 1)
    _number(jobs, campaign.NUMBER_AT, _NUMBERS_PER_S)
    launches.add_launches(jobs, golden, plan.end, stream(plan.seed, "launches"))
    analysis = workloads.analysis_jobs(plan, stream(plan.seed, "analysis"))
    shared_nodes.run(analysis, plan.start, plan.end)
    if plan.stops:
        _delete_running(analysis, plan.end - 1)
    _number(analysis, _ANALYSIS_NUMBER_AT, _ANALYSIS_NUMBERS_PER_S)
    jobs = sorted([*jobs, *analysis], key=lambda job: job.submitted)
    behaving = stream(plan.seed, "behaviour")
    of_job = {job: behaviour.source(job, behaving) for job in jobs if job.started is not None}
    background_sources = background.sources(jobs, plan, stream(plan.seed, "background"))
    return Centre(jobs, golden, late, poor, of_job, background_sources)


def _number(jobs: list[Job], anchors: dict[int, int], per_s: float) -> None:
    """Number jobs in order of submission; given numbers are kept."""
    moments = np.array([job.submitted for job in jobs], dtype=np.int64)
    pins = np.array([n for n, job in enumerate(jobs) if job.number], dtype=np.int64)
    for job, number in zip(jobs, numbers.growing(moments, anchors, per_s, pins), strict=True):
        job.number = int(number)


def _delete_running(jobs: list[Job], at: int) -> None:
    """End the jobs that would run longer, as a person does before the machine is stopped."""
    for job in jobs:
        if job.started is not None and job.started < at and (job.ended is None or job.ended > at):
            job.ended, job.exit_status = at, DELETED


def _storm(plan: Plan) -> list[Job]:
    return [story_storm.job()] if plan.holds(story_storm.START) else []


def _small_files_job(plan: Plan, start: int, minutes: int, node_count: int) -> Job | None:
    if not plan.holds(start):
        return None
    return Job(
        number=0,
        user=_BIOLOGIST,
        name="blast_split",
        queue="batch",
        kind=Kind.SMALL_FILES,
        node_count=node_count,
        limit_s=7_200,
        runtime_s=minutes * 60,
        submitted=start - 1_320,
        started=start,
        busy_share=0.41,
    )
