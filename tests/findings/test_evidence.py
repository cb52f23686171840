"""Evidence of jobs and flags do not depend on the order in which data arrive."""

from datetime import timedelta
from itertools import permutations
from operator import itemgetter
from random import Random

import pytest

from ioportal.findings import evaluation
from ioportal.findings.models import Flag, JobEvidence, ThresholdSet
from ioportal.findings.thresholds import apply_thresholds
from ioportal.jobs.models import DirtyEvidence, Job
from tests.logs import Run, at, job_stats, pbs, rpc

pytestmark = pytest.mark.usefixtures("module_site")

MDT = "lake-MDT0000"
RUNNING = Run("77", end=None)

ENQUEUES = {"nid": "1@gni", "opcode": 101, "us": (30, 40)}
OPENS = {"nid": "1@gni", "opcode": 35, "us": (7, 9)}
OTHERS = {"nid": "19@gni", "opcode": 101, "us": (90, 95)}
RPCS = [ENQUEUES, OPENS, OTHERS]
FIVE_MINUTES = timedelta(minutes=5)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_evidence_does_not_depend_on_the_order_of_counters(jobs, read, evaluate, seed):
    reads = [("11:59", None)]
    reads += [(f"12:{m:02}", 40_000 * m * (m % 7 + 1)) for m in (1, 2, 3, 4, 5, 7, 9, 14, 15, 25)]
    reads.sort()
    growing, maximum = [], 0
    for clock, stats in reads:
        maximum = max(maximum, stats or 0)
        growing.append((clock, None if stats is None else maximum))
    loads = [lambda args=args: read(*args) for args in growing] + [lambda: jobs(RUNNING)]
    Random(seed).shuffle(loads)  # noqa: S311  (no secret)
    for load in loads:
        load()
        evaluate()
    fields = (
        "peak_operations",
        "peak_operations_at",
        "sustained_operations",
        "sustained_operations_at",
        "peak_stats",
        "peak_stats_at",
        "startup_operations",
        "filesystem",
        "seen_until",
    )
    evidence = JobEvidence.objects.values(*fields).get(job__batch_id="77")

    JobEvidence.objects.all().delete()
    Flag.objects.all().delete()
    jobs(Run("77", end="12:26"))  # evaluated again in one round
    evaluate()

    assert JobEvidence.objects.values(*fields).get(job__batch_id="77") == evidence
    assert evidence["startup_operations"] == dict(growing)["12:05"]
    assert evidence["peak_stats"] == max(
        (last - (first or 0)) * min(1, FIVE_MINUTES / (at(end) - at(start)))
        for n, (start, first) in enumerate(growing)
        for m, (end, last) in enumerate(growing)
        # Within five minutes, or in a single longer interval.
        if n < m and (at(end) - at(start) <= FIVE_MINUTES or m == n + 1)
    )


def test_late_data_that_lowers_a_peak_restores_the_previous_peak(jobs, read, evaluate):
    jobs(Run("77", "11:31", None))
    for clock, stats in (("11:30", None), ("11:40", 5), ("11:45", 50), ("12:00", 60)):
        read(clock, stats)
    read("12:10", 160)  # half of 100, as the interval is ten minutes
    evaluate()
    peak = JobEvidence.objects.values_list("peak_stats", "peak_stats_at")
    assert peak.get(job__batch_id="77") == (50, at("12:10"))

    read("12:04", 100)
    read("12:07", 130)
    evaluate()

    assert peak.get(job__batch_id="77") == (45, at("11:45"))


def test_a_job_belongs_to_the_filesystem_of_its_peak(logs, ingest, evaluate):
    run = Run("77", "11:31", None, nodes="b1")
    ingest("pbs", logs("p", pbs(("S", run))), cluster="birch")
    reads_by_target = {
        "lake-MDT0000": (("11:30", 0), ("11:45", 300), ("12:00", 600), ("12:15", 900)),
        "pond-MDT0000": (("11:30", 0), ("12:00", 10), ("12:05", 210)),
    }
    paths = []
    for target, reads in reads_by_target.items():
        for clock, stats in reads:
            text = job_stats(target, {"x": {"open": 1}, "77": {"getattr": stats}}, snapshot=clock)
            paths.append(logs(f"{target}-{clock}", text, read_at=at(clock)))
    ingest("job_stats", *paths)
    evaluate()

    evidence = JobEvidence.objects.get(job__batch_id="77")
    assert (evidence.peak_operations, evidence.filesystem.name) == (200, "pond")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_evidence_does_not_depend_on_the_order_of_traces(logs, ingest, jobs, evaluate, seed):
    draw = Random(seed)  # noqa: S311  (no secret)
    records = [  # seconds after noon, server, RPC
        (draw.randrange(1_200), draw.choice(["mds1", "mds2"]), draw.choice(RPCS))
        for _ in range(800)
    ]
    parts = {}
    for second, server, fields in sorted(records, key=itemgetter(0)):
        clock = at("12:00") + timedelta(seconds=second)
        parts.setdefault((server, second // 300), []).append(rpc(clock, **fields))
    loads = [
        lambda server=server, name=f"{server}-{n}", lines=lines: ingest(
            "rpctrace", logs(name, "\n".join(lines)), server=server
        )
        for (server, n), lines in parts.items()
    ]
    loads.append(lambda: jobs(Run("77", nodes="n1", end=None)))
    draw.shuffle(loads)
    for load in loads:
        load()
        evaluate()

    spans = {
        end: [fields for second, _, fields in records if end - 300 <= second // 10 * 10 < end]
        for end in range(10, 1_210, 10)
    }
    enqueues = {end: spans[end].count(ENQUEUES) for end in spans}
    peak = max(enqueues, key=lambda end: enqueues[end])  # the earliest
    others = spans[peak].count(OTHERS)
    evidence = JobEvidence.objects.get(job__batch_id="77")
    assert evidence.peak_locks_s == pytest.approx(enqueues[peak] * 30e-6)
    assert evidence.peak_locks_s_at == at("12:00") + timedelta(seconds=peak)
    assert evidence.lock_share == enqueues[peak] / (enqueues[peak] + spans[peak].count(OPENS))
    assert evidence.lock_ratio == pytest.approx(30 / 90 if others else None)


@pytest.mark.long
@pytest.mark.parametrize("order", list(permutations(("70", "71", "80"))), ids="-".join)
def test_flags_do_not_depend_on_the_order_of_evaluation(jobs, logs, ingest, refresh, order):
    """Two jobs are a campaign until a larger third job starts."""
    values = {"metadata_operations": 1_000_000, "jobs": 2, "largest_share": 0.5}
    apply_thresholds(
        ThresholdSet(rule="campaign", thresholds=values, reason="a test", set_by="root")
    )
    jobs(*(Run(job, end="12:20") for job in ("70", "71")), Run("80", "12:30", "12:50"))
    steps = {"12:00": (0, 0), "12:10": (800, 0), "12:20": (801, 0), "12:30": (801, 0)}
    paths = []
    for clock, (early, late) in {**steps, "12:40": (801, 4_000), "12:50": (801, 5_000)}.items():
        counts = {"70": early, "71": early, "80": late}
        entries = {job: {"getattr": 1_000 * count + 1} for job, count in counts.items()}
        text = job_stats(MDT, entries, snapshot=clock)
        paths.append(logs(f"read-{clock}", text, read_at=at(clock)))
    ingest("job_stats", *paths)
    refresh()
    DirtyEvidence.objects.all().delete()
    for job in order:
        DirtyEvidence.objects.mark([Job.objects.get(batch_id=job).pk])
        evaluation.evaluate_pending()

    assert not Flag.objects.current().filter(rule="campaign").exists()
