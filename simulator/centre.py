"""What happens at the centre in three days of July 2017, before anything is written down."""

from dataclasses import dataclass

import numpy as np

from simulator import background, behaviour, campaign, polls, site, workloads
from simulator.activity import Source
from simulator.clock import local
from simulator.jobs import Job, Kind
from simulator.launches import add_launches
from simulator.randomness import stream
from simulator.scheduler import Scheduler
from simulator.site import User

START = local(2017, 7, 5)  # the machine opens after maintenance
END = local(2017, 7, 8)
_HELD_BACK = 400  # nodes for the jobs with fixed starts
_FIRST_NUMBER = 3_518_902
_BIOLOGIST = User("geneve", 12_260, "BIP112")


@dataclass(frozen=True)
class Centre:
    """Who did what.

    Args:
        jobs: all jobs in order of submission.
        golden: the jobs of the seeds' listing, by apid.
        crisis: the job of the seeds' first plot.
        late: its accounting comes in a file of its own.
        poor: it ran mostly while nobody read the counters.
        of_job: what each started job did to the filesystem.
        others: what else loads it.
    """

    jobs: list[Job]
    golden: dict[int, Job]
    crisis: Job
    late: Job
    poor: Job
    of_job: dict[Job, Source]
    others: list[Source]

    @property
    def sources(self) -> list[Source]:
        """Return all that loads the filesystem, jobs first."""
        return [*self.of_job.values(), *self.others]


def happen(seed: int) -> Centre:
    """Let the three days pass; the same seed gives the same days."""
    golden = campaign.golden_pilots()
    crisis = campaign.crisis_pilot()
    late = _small_files_job(local(2017, 7, 6, "11:10:20"), minutes=92, node_count=32)
    poor = _small_files_job(polls.GAP[0] - 900, minutes=73, node_count=16)
    fixed = [*golden.values(), crisis, campaign.striped_pilot(), late, poor]
    jobs = workloads.jobs(START, END, stream(seed, "submissions"))
    scheduler = Scheduler(site.NODE_COUNT, _HELD_BACK, START, END, stream(seed, "nodes"))
    pilots = scheduler.run(jobs, fixed, campaign.PandaCampaign(stream(seed, "campaign")))
    jobs = sorted([*jobs, *fixed, *pilots], key=lambda job: job.submitted)
    # Other systems of the centre take numbers, too.
    steps = stream(seed, "batch ids").integers(1, 5, size=len(jobs))
    for job, number in zip(jobs, _FIRST_NUMBER + np.cumsum(steps), strict=True):
        job.number = int(number)
    add_launches(jobs, {job: apid for apid, job in golden.items()}, END, stream(seed, "launches"))
    chance = stream(seed, "behaviour")
    of_job = {job: behaviour.source(job, chance) for job in jobs if job.started is not None}
    others = background.sources(jobs, START, END, stream(seed, "background"))
    return Centre(jobs, golden, crisis, late, poor, of_job, others)


def _small_files_job(start: int, minutes: int, node_count: int) -> Job:
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
