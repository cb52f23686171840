"""The side file for tests: causes, labels, faults, knees and true activity."""

import json

import numpy as np

from simulator import site, story, story_storm
from simulator.activity import MDT_KINDS, OPERATIONS, Source
from simulator.batch.jobs import Ints, Job, Kind
from simulator.batch.payloads import Payloads
from simulator.centre import Centre
from simulator.clock import iso
from simulator.plan import Plan
from simulator.servers import golden, mds, nfs
from simulator.servers.counter_files import FileTotals
from simulator.servers.traced import Traced

_NO_COUNTS = np.zeros(len(MDT_KINDS), dtype=np.int64)


def text(
    plan: Plan, centre: Centre, inside: list[Payloads], totals: FileTotals, around: Traced
) -> str:
    """Return the truth as JSON."""
    panda_jobs = {mine.job: len(mine.panda_id) for mine in inside}
    return json.dumps(
        {
            "seed": plan.seed,
            "start": iso(plan.start),
            "end": iso(plan.end),
            "jobs": [_job(job, plan, centre, panda_jobs, totals) for job in centre.jobs],
            "processes": _processes(plan, centre, totals),
            "mdt_operations": _by_kind(
                np.sum([_done(source, plan.end) for source in centre.sources], axis=0)
            ),
            "story": [_step(step) for step in story.STEPS if plan.holds(step.at)],
            "slots": [{"since": iso(since), "slots": slots} for since, slots in story.SLOTS],
            "week": {"start": iso(story.WEEK[0]), "end": iso(story.WEEK[1])},
            "incidents": _incidents(plan, centre),
            "faults": _faults(plan, centre, around),
            "knees": [
                {
                    "server": site.MDS,
                    "target": site.MDT,
                    "service": mds.MAIN.base,
                    "threads": mds.MAIN.size,
                    "requests_per_s": plan.knee_per_s,
                }
            ],
            "nfs": {"calls_per_payload": nfs.calls_of(1).total},
            "trace": {
                "handled_of_job": around.handled_of_job,
                "handled_of_opcode": around.handled_of_opcode,
                "incidents": around.incidents,
            },
            "golden": {
                str(apid): {"batch_id": job.batch_id, "extent_us": golden.EXTENT_US}
                for apid, job in centre.golden.items()
            },
        }
    )


def _job(
    job: Job, plan: Plan, centre: Centre, panda_jobs: dict[Job, int], totals: FileTotals
) -> dict[str, object]:
    facts: dict[str, object] = {
        "batch_id": job.batch_id,
        "cluster": job.cluster,
        "label": job.label,
        "user": job.user.name,
        "project": job.user.project,
        "node_count": job.node_count,
        "submitted": iso(job.submitted),
        "started": None if job.started is None else iso(job.started),
        "ended": None if job.ended is None else iso(job.ended),
        "launches": [launch.apid for launch in job.launches],
    }
    if job in panda_jobs:
        facts["panda_jobs"] = panda_jobs[job]
    source = centre.of_job.get(job)
    if source is None or job.started is None:
        return facts
    done = _done(source, plan.end)
    return (
        facts
        | {
            "metadata_operations": int(done[OPERATIONS].sum()),
            "operations": _by_kind(done),
            "failed_opens": sum(burst.failed_opens for burst in source.bursts),
            "read_bytes": _bytes(source, 0, plan.end),
            "write_bytes": _bytes(source, 1, plan.end),
            "covered_share": round(
                totals.mdt_reads.covered_share(job.started, job.ended or plan.end), 4
            ),
        }
        | _file_content(job.batch_id, totals)
    )


def _processes(plan: Plan, centre: Centre, totals: FileTotals) -> dict[str, dict[str, object]]:
    return {
        source.job_id: {"operations": _by_kind(_done(source, plan.end))}
        | _file_content(source.job_id, totals)
        for source in centre.background_sources
        if source.job_id is not None
    }


def _file_content(job_id: str, totals: FileTotals) -> dict[str, object]:
    """Return the files' content for a job id: less than its activity where polls missed some."""
    return {
        "polled_operations": _by_kind(totals.mdt.get(job_id, _NO_COUNTS)),
        "polled_read_bytes": totals.read_bytes[job_id],
        "polled_write_bytes": totals.write_bytes[job_id],
        "entry_restarts": totals.restarts[job_id],
        "hidden_restarts": totals.hidden_restarts[job_id],
    }


def _step(step: story.Step) -> dict[str, object]:
    return {
        "key": step.key,
        "at": iso(step.at),
        "what": step.what,
        "dated": step.dated,
        "effects": [
            {
                "metric": effect.metric,
                "before": effect.before,
                "after": effect.after,
                "ratio": round(effect.ratio, 4),
            }
            for effect in step.effects
        ],
    }


def _incidents(plan: Plan, centre: Centre) -> list[dict[str, object]]:
    """Return the incidents that harmed others, with their causes."""
    incidents: list[dict[str, object]] = []
    if plan.holds(story.RESUMED):
        incidents.append(
            {
                "what": "metadata storm",
                "cause": "many large pilots start together, their directories striped widely",
                "server": site.MDS,
                "start": iso(story.RESUMED),
                "end": iso(story.STOPPED),
                "batch_ids": [
                    job.batch_id
                    for job in centre.jobs
                    if job.era and job.era.since == story.RESUMED and job.started
                ],
            }
        )
    if plan.holds(story_storm.START):
        incidents.append(
            {
                "what": "metadata storm",
                "cause": "one job opens more files than the server's capacity allows",
                "server": site.MDS,
                "start": iso(story_storm.RAMPS[0][0]),
                "end": iso(story_storm.RAMPS[-1][1]),
                "batch_ids": [job.batch_id for job in centre.jobs if job.kind is Kind.STORM],
            }
        )
    return incidents


def _faults(plan: Plan, centre: Centre, around: Traced) -> dict[str, object]:
    return {
        "faults": [
            {
                "kind": fault.kind.value,
                "server": fault.server,
                "start": iso(fault.start),
                "end": iso(fault.end),
                "offset_s": fault.offset_s,
                "version": fault.version,
            }
            for fault in plan.faults.every
            if plan.holds(fault.start)
        ],
        "late_job": centre.late.batch_id if centre.late else None,
        "poor_job": centre.poor.batch_id if centre.poor else None,
        "dumps": {name: vars(account) for name, account in around.dumps.items()},
    }


def _done(source: Source, end: int) -> Ints:
    done: Ints = source.mdt_counts(np.array([end]))[0]
    return done


def _bytes(source: Source, direction: int, end: int) -> int:
    """Return the bytes read (0) or written (1) until the logs end, over all OSTs."""
    sizes = [
        (burst.reads.size_bytes, burst.writes.size_bytes)[direction] for burst in source.bursts
    ]
    requests = sum(
        source.ost_requests(ost, np.array([end]))[0][0, :, direction]
        for ost in range(len(site.OSTS))
    )
    return int((requests * np.array(sizes)).sum())


def _by_kind(counts: Ints) -> dict[str, int]:
    return {
        kind: int(count) for kind, count in zip(MDT_KINDS, counts.tolist(), strict=True) if count
    }
