"""The side file that only tests read: causes, labels, faults, knees and what was really done."""

import json

import numpy as np

from simulator import campaign, golden, polls, site
from simulator.activity import MDT_KINDS, OPERATIONS, Source
from simulator.centre import END, START, Centre
from simulator.clock import iso
from simulator.counter_files import Shown
from simulator.crisis import Traced
from simulator.jobs import Ints, Job, Kind


def text(seed: int, centre: Centre, shown: Shown, traced: Traced) -> str:
    """Return the truth as JSON."""
    return json.dumps(
        {
            "seed": seed,
            "start": iso(START),
            "end": iso(END),
            "jobs": [_job(job, centre.of_job.get(job), shown) for job in centre.jobs],
            "processes": _processes(centre, shown),
            "mdt_operations": _by_kind(np.sum([_done(one) for one in centre.sources], axis=0)),
            "causes": _causes(centre),
            "faults": _faults(centre, traced),
            "knees": [traced.knee],
            "trace": {
                "handled_of_job": traced.handled_of_job,
                "handled_of_opcode": traced.handled_of_opcode,
                "load": traced.load,
            },
            "golden": {
                str(apid): {"batch_id": job.batch_id, "extent_us": golden.EXTENT_US}
                for apid, job in centre.golden.items()
            },
        },
        indent=1,
    )


def _job(job: Job, source: Source | None, shown: Shown) -> dict[str, object]:
    facts: dict[str, object] = {
        "batch_id": job.batch_id,
        "label": job.kind.value,
        "user": job.user.name,
        "project": job.user.project,
        "node_count": job.node_count,
        "submitted": iso(job.submitted),
        "started": None if job.started is None else iso(job.started),
        "ended": None if job.ended is None else iso(job.ended),
        "launches": [launch.apid for launch in job.launches],
    }
    if source is None or job.started is None:
        return facts
    done = _done(source)
    return (
        facts
        | {
            "metadata_operations": int(done[OPERATIONS].sum()),
            "operations": _by_kind(done),
            "read_bytes": _bytes(source, 0),
            "write_bytes": _bytes(source, 1),
            "covered_share": round(shown.mdt_reads.covered_share(job.started, job.ended or END), 4),
        }
        | _shown(job.batch_id, shown)
    )


def _processes(centre: Centre, shown: Shown) -> dict[str, dict[str, object]]:
    return {
        source.job_id: {"operations": _by_kind(_done(source))} | _shown(source.job_id, shown)
        for source in centre.others
        if source.job_id is not None
    }


def _shown(job_id: str, shown: Shown) -> dict[str, object]:
    """Return what the files hold of a job id: less than was done where polls missed something."""
    return {
        "shown_operations": _by_kind(
            shown.mdt.get(job_id, np.zeros(len(MDT_KINDS), dtype=np.int64))
        ),
        "shown_read_bytes": shown.read_bytes[job_id],
        "shown_write_bytes": shown.write_bytes[job_id],
        "entry_restarts": shown.restarts[job_id],
        "hidden_restarts": shown.hidden_restarts[job_id],
    }


def _causes(centre: Centre) -> list[dict[str, object]]:
    return [
        {
            "what": "metadata storm",
            "cause": "many 300-node-class pilots start at once, their directories striped widely",
            "server": site.MDS,
            "start": iso(campaign.RESUMED),
            "end": iso(campaign.STOPPED),
            "batch_ids": [job.batch_id for job in centre.jobs if job.kind is Kind.PANDA_CRISIS],
        },
        {
            "what": "mitigation",
            "cause": "pilots stopped, then one at a time",
            "start": iso(campaign.STOPPED),
        },
        {
            "what": "mitigation",
            "cause": "five pilots at a time, working directories striped over one target",
            "start": iso(campaign.MITIGATED),
            "batch_ids": [job.batch_id for job in centre.jobs if job.kind is Kind.PANDA_STRIPED],
        },
    ]


def _faults(centre: Centre, traced: Traced) -> dict[str, object]:
    return {
        "gap": {"start": iso(polls.GAP[0]), "end": iso(polls.GAP[1])},
        "remount": {"target": site.MDT, "at": iso(polls.MDT_REMOUNT)},
        "late_job": centre.late.batch_id,
        "poor_job": centre.poor.batch_id,
        "dumps": {name: vars(account) for name, account in traced.dumps.items()},
    }


def _done(source: Source) -> Ints:
    done: Ints = source.mdt_counts(np.array([END]))[0]
    return done


def _bytes(source: Source, direction: int) -> int:
    """Return the bytes read (0) or written (1) until the logs end, over all OSTs."""
    sizes = [
        (burst.reads.size_bytes, burst.writes.size_bytes)[direction] for burst in source.bursts
    ]
    requests = sum(
        source.ost_requests(ost, np.array([END]))[0][0, :, direction]
        for ost in range(len(site.OSTS))
    )
    return int((requests * np.array(sizes)).sum())


def _by_kind(counts: Ints) -> dict[str, int]:
    return {
        kind: int(count) for kind, count in zip(MDT_KINDS, counts.tolist(), strict=True) if count
    }
