"""Histories of the numbers in flags: the highest charted amount equals the number."""

from datetime import timedelta
from itertools import product
from random import Random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ioportal.findings import history
from ioportal.findings.models import ThresholdSet
from ioportal.findings.thresholds import apply_thresholds
from ioportal.jobs.models import JobStatistics
from ioportal.rules import RULES
from tests.conftest import SITE
from tests.logs import GETATTR, OPEN, Run, at, job_stats, rpc, sacct

JOBS = [str(number) for number in range(80, 92)]
HEAVY, ENQUEUING, NAMED = JOBS[:3]
# Nodes without a job, the second with a forged job id, and an unregistered NID.
LOGIN, FORGING, UNREGISTERED = "15@gni", "16@gni", "5@tcp"
DAY = timedelta(days=1)


def repeat_on_the_days_before():
    """Let similar jobs of several users have the same figures on the three days before."""
    stored = JobStatistics.objects.select_related("job")
    for number, statistics in enumerate([*stored, *stored, *stored]):
        job = statistics.job
        job.pk, job.owner = None, f"user{number % 5}"
        job.submitted_at -= DAY
        job.started_at, job.ended_at = (time - DAY for time in (job.started_at, job.ended_at))
        job.save()
        statistics.pk = job.pk
        statistics.save(force_insert=True)


@pytest.mark.long
def test_the_highest_amount_of_every_history_equals_the_number_in_the_flag(
    ingest_hour, refresh, evaluate
):
    ingest_hour("2.12.5", seed=1)
    refresh()
    repeat_on_the_days_before()
    lower_all_thresholds()

    histories, query_counts = [], {}
    for flag in evaluate().values():
        with CaptureQueriesContext(connection) as queries:
            histories.append((flag, history.for_flag(flag)))
        kind = flag.subject_kind
        query_counts[kind] = max(len(queries), query_counts.get(kind, 0))

    histories = [(flag, measured) for flag, measured in histories if measured]
    for flag, measured in histories:
        assert highest(measured) == pytest.approx(flag.numbers[measured.number]), flag.rule
    # Covered by other tests:
    groups = product(
        ("application", "user", "campaign", "project"), ("metadata_operations", "peak_impact_s")
    )
    jobs = {("job", "peak_impact_s"), ("job", "unexplained_enqueues")}
    hosts = {("host", "operations"), ("host", "process_operations")}
    untested = {*jobs, *hosts, *groups}
    numbers = {(flag.subject_kind, measured.number) for flag, measured in histories}
    assert numbers == history.SOURCES.keys() - untested
    assert query_counts == {"job": 2, "host": 3, "filesystem": 3}
    # Idle processor time has no history; the amount of I/O is charted instead.
    substitutes = {
        (flag.rule, measured.number)
        for flag, measured in histories
        if measured.number != flag.measure
    }
    assert substitutes == {("low-cpu-efficiency", "io_bytes")}


def test_unexplained_enqueues_are_counted_up_to_each_poll(ingest_hour, evaluate):
    ingest_hour("2.15.4", seed=2)
    lower_all_thresholds()

    flag = evaluate()["unexplained-enqueues", ENQUEUING]

    assert history.for_flag(flag).amounts["amount"].to_list()[-1] == flag.value


def test_a_campaign_totals_the_jobs_of_one_day(site, logs, ingest, evaluate):
    jobs = [str(number) for number in range(100, 124)]
    old = Run("70", at("12:00") - DAY, at("12:30") - DAY, submit=at("11:00") - DAY)
    runs = [old, *(Run(job, end=None) for job in jobs)]
    ingest("sacct", logs("sacct", sacct(*runs)), cluster="anvil")

    def read(moment, counters):
        text = job_stats("lake-MDT0000", {"x": {"open": 1}, **counters}, snapshot=moment)
        ingest("job_stats", logs(f"{moment:%d%H%M}", text), at=moment.isoformat())

    for minute in (0, 15, 30):
        read(at(f"12:{minute}") - DAY, {"70": {"getattr": 120_000 * minute}} if minute else {})
    for minute in (0, 20, 30, 40):
        read(at(f"12:{minute}"), {job: {"open": 50_000 * minute} for job in jobs} if minute else {})
        flags = evaluate()
    measured = history.for_flag(flags["campaign", "alice:relax"])

    assert measured.span == (at("12:00") - DAY, at("12:40"))
    assert measured.amounts.rows() == [
        (at("12:00") - DAY, at("13:00") - DAY, 3_600_000),
        (at("12:00"), at("12:40"), 48_000_000),
    ]
    assert flags["campaign", "alice:relax"].value == 48_000_000


def test_the_chart_of_a_running_job_ends_at_the_flags_latest_data(
    site, logs, ingest, evaluate, settings
):
    settings.STATISTICS_INTERVAL = timedelta(hours=1)  # its statistics stay at 12:00
    ingest("sacct", logs("sacct", sacct(Run("77", end=None))), cluster="anvil")
    for clock, operations in (("12:00", 1), ("12:05", 2), ("12:10", 900_000)):
        text = job_stats("lake-MDT0000", {"77": {"getattr": operations}}, snapshot=at(clock))
        ingest("job_stats", logs(clock, text), at=at(clock).isoformat())
        flags = evaluate()
    flag = flags["metadata-rate", "77"]

    assert (flag.job.known_until, flag.until) == (at("12:00"), at("12:10"))
    assert history.for_flag(flag).span == (at("12:00"), at("12:10"))


def highest(measured):
    return measured.amounts["amount"].max()


def lower_all_thresholds():
    """Set thresholds that any activity exceeds."""
    for rule in RULES:
        thresholds = {
            name: threshold.maximum if threshold.is_ceiling else max(threshold.minimum, 1e-6)
            for name, threshold in rule.thresholds.items()
        }
        apply_thresholds(
            ThresholdSet(rule=rule.code, thresholds=thresholds, reason="a test", set_by="root")
        )


@pytest.fixture
def ingest_hour(register, logs, ingest):
    """Ingest counters and traces of an hour with jobs and hosts outside jobs."""

    def load(version, seed):
        random = Random(seed)  # noqa: S311  (no secret)
        register(SITE.replace("2.12.5", version))
        runs = [Run(job, nodes="n[1-2]", node_count=2, cpu="00:00:10") for job in JOBS]
        ingest("sacct", logs("sacct", sacct(*runs)), cluster="anvil")
        reads = []
        for number, (moment, on_mdt, on_osts) in enumerate(_reads(random)):
            for target, counters in (("lake-MDT0000", on_mdt), ("lake-OST0000", on_osts)):
                text = job_stats(target, {"x": {"getattr": 1}, **counters}, snapshot=moment)
                reads.append(logs(f"{target}-{number}", text, read_at=moment))
        ingest("job_stats", *reads)
        ingest("rpctrace", logs("trace", *_traced(random)), server="mds1")

    return load


def _reads(random):
    """Yield polls: the time and the counters of an MDT and of an OST."""
    counted = {job: [0] * 7 for job in JOBS}
    yield at("11:58"), {}, {}
    for minute in range(3, 66, 7):
        for job, counts in counted.items():
            maximum = 2_000 if job == HEAVY else 3
            for n in range(len(counts)):
                counts[n] += random.randint(maximum // 2, maximum)
        yield (
            at(f"12:{minute:02}") + timedelta(seconds=random.randint(0, 59)),
            {
                job: {"open": 3 * a + b, "close": a, "mknod": c, "unlink": d, "getattr": e}
                for job, (a, b, c, d, e, _, _) in counted.items()
            },
            {
                job: {"read_bytes": (f, 700 * f), "write_bytes": (g, 300 * g)}
                for job, (*_, f, g) in counted.items()
            },
        )


def _traced(random):
    """Yield RPCs in order; RPCs outside jobs start near the end of the hour."""
    for second in range(5, 3_600, 10):
        moment = at("12:00") + timedelta(seconds=second)
        yield rpc(moment, job=HEAVY, us=(random.randint(5_000, 9_000), 9_100))
        yield from (rpc(moment, job=ENQUEUING) for _ in range(random.randint(1, 3)))
        if second > 2_600:  # job ids are evaluated ten minutes later
            yield rpc(moment, FORGING, GETATTR, job=NAMED)
        if second > 3_300:
            yield rpc(moment, LOGIN, GETATTR, job="")
            yield from (
                rpc(moment, UNREGISTERED, OPEN, job="") for _ in range(random.randint(1, 3))
            )
