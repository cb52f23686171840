"""The PanDA jobs inside the campaign's batch jobs: mostly one per node, 15 to 350 in each."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from simulator.batch.jobs import Ints, Job
from simulator.clock import local
from simulator.site import CORES_PER_NODE

FEWEST, MOST = 15, 350
# PanDA's numbers increase worldwide; one of them is given.
_KNOWN_ID, _KNOWN_AT = 3_558_462_700, local(2017, 8, 1)
_IDS_PER_S = 20.0
_FIRST_TASK, _FIRST_TASK_AT = 9_862_144, local(2016, 10, 17)
_TASK_LASTS_S = 3 * 86_400  # then the campaign continues with the next task
_TASK_STEP = 1_733
_LAUNCHED_AFTER_S = (16, 40)  # from the batch job's start
_ENDS_BEFORE_S = 12  # before the batch job's end: the last payload
_RUN_SPREAD = 0.06  # some payloads end earlier
_VALIDATION_SPREAD = 0.12
_DOWNLOAD_S = 35  # stage-in from a remote site
_UPLOAD_S = 1  # stage-out within Lustre
_FROM_RAM_DISK = 0.8  # share of stage-outs from the RAM disk that take a second; others take less
_CPU_S_PER_EVENT = 450
_MEMORY_KB = 650_000  # of a core's process, without memory shared by all processes
_SHARED_KB = 1_400_000
_SWAPPING = 0.02  # share of payloads
FAILED_WITH = 1_201  # pilot error: killed by the batch system


@dataclass(frozen=True)
class Payloads:
    """The PanDA jobs of one batch job; arrays of shape (n,)."""

    job: Job
    panda_id: Ints
    task: int
    created: int
    started: Ints
    ended: Ints
    node: Ints  # number of the node that each runs on
    cores: int  # of each
    failed: Ints  # 1: it failed
    cpu_s: Ints
    validation_s: Ints
    copy_in_s: Ints
    copy_out_s: Ints
    events: Ints
    max_pss_kb: Ints
    max_swap_kb: Ints


def of_jobs(jobs: Iterable[Job], rng: np.random.Generator) -> list[Payloads]:
    """Return the payloads of all pilots that have ended, in order of their creation."""
    pilots = [job for job in jobs if job.era and job.started and job.ended]
    counts = [min(max(job.node_count, FEWEST), MOST) for job in pilots]
    steps = rng.integers(1, 4, size=sum(counts))
    lowest = np.repeat([_first_id(job.submitted) for job in pilots], counts) - np.cumsum(steps)
    ids = np.maximum.accumulate(lowest) + np.cumsum(steps)
    payloads, first = [], 0
    for job, count in zip(pilots, counts, strict=True):
        payloads.append(_of_job(job, ids[first : first + count], rng))
        first += count
    return payloads


def _first_id(moment: int) -> int:
    return _KNOWN_ID + round((moment - _KNOWN_AT) * _IDS_PER_S)


def _of_job(job: Job, ids: Ints, rng: np.random.Generator) -> Payloads:
    count = len(ids)
    job_start, job_end, era = job.started or 0, job.ended or 0, job.era
    if era is None:
        raise ValueError(f"job {job.batch_id} is not a pilot")
    started = job_start + rng.integers(*_LAUNCHED_AFTER_S, size=count)
    last = max(job_end - _ENDS_BEFORE_S, job_start + _LAUNCHED_AFTER_S[1] + 1)
    lengths = (last - started) * (1 - np.abs(rng.normal(0, _RUN_SPREAD, size=count)).clip(0, 0.5))
    ended = started + np.maximum(lengths, 1).astype(np.int64)
    ended[0] = last
    failed = (rng.random(count) < era.failing) | (job.exit_status != 0)
    cores = max(CORES_PER_NODE * job.node_count // count, 1)
    validation = era.validation_s * (1 + _VALIDATION_SPREAD * rng.normal(size=count)).clip(0.5, 1.5)
    busy = job.busy_share * rng.uniform(0.95, 1.05, size=count)
    copy_in = (
        rng.integers(era.copy_in_s[0], era.copy_in_s[1] + 1, size=count)
        if era.copy_in_s[1]
        else rng.poisson(_DOWNLOAD_S, size=count)
    )
    cpu_s = ((ended - started) * cores * busy).astype(np.int64)
    details = rng.spawn(1)[0]  # a separate stream: other values do not depend on these
    copy_out = (
        (details.random(count) < _FROM_RAM_DISK).astype(np.int64)
        if era.copy_in_s[1]
        else np.full(count, _UPLOAD_S)
    )
    memory = _SHARED_KB + cores * _MEMORY_KB * details.uniform(0.9, 1.1, size=count)
    swapping = details.random(count) < _SWAPPING
    return Payloads(
        job,
        ids,
        _FIRST_TASK + (job.submitted - _FIRST_TASK_AT) // _TASK_LASTS_S * _TASK_STEP,
        job.submitted - 1_800,
        started,
        ended,
        job.nodes[np.arange(count) % job.node_count],
        cores,
        failed.astype(np.int64),
        cpu_s,
        np.rint(np.minimum(validation, ended - started)).astype(np.int64),
        copy_in,
        np.where(failed, 0, copy_out),
        np.where(failed, 0, cpu_s // _CPU_S_PER_EVENT),
        memory.astype(np.int64),
        np.where(swapping, details.integers(1_000, 500_000, size=count), 0),
    )
