"""How flags' numbers came about over time: what is charted ends, or is highest, at the number."""

from datetime import timedelta
from random import Random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ioportal.analysis.rules import RULES
from ioportal.flags import history
from ioportal.flags.models import ThresholdSet
from ioportal.flags.thresholds import apply_thresholds
from tests.conftest import SITE
from tests.logs import GETATTR, OPEN, Run, at, job_stats, rpc, sacct

JOBS = [str(number) for number in range(80, 92)]
HEAVY, ENQUEUING = JOBS[:2]
LOGIN, NOBODY = "15@gni", "5@tcp"  # a node without a job, and no node at all
DAY = timedelta(days=1)


def test_every_history_is_highest_at_the_number_that_was_found(a_day_of, evaluate):
    a_day_of("2.12.5", seed=1)
    everybody_is_flagged()

    found, asked = [], {}
    for flag in evaluate().values():
        with CaptureQueriesContext(connection) as queries:
            found.append((flag, history.for_flag(flag)))
        asked[flag.subject_kind] = max(len(queries), asked.get(flag.subject_kind, 0))

    found = [(flag, measured) for flag, measured in found if measured]
    for flag, measured in found:
        assert highest(measured) == pytest.approx(flag.numbers[measured.number]), flag.rule
    elsewhere = {("job", "peak_impact_s"), ("job", "unexplained_enqueues")}  # other tests
    numbers = {(flag.subject_kind, measured.number) for flag, measured in found}
    assert numbers == history.SOURCES.keys() - elsewhere
    # When processors idled is not known, but when there was much input and output.
    assert asked == {"job": 2, "user": 3, "host": 3, "filesystem": 3}
    others = {
        (flag.rule, measured.number) for flag, measured in found if measured.number != flag.measure
    }
    assert others == {("low-cpu-efficiency", "io_bytes")}


def test_look_ups_that_nothing_explains_are_taken_from_the_trace_by_each_read(a_day_of, evaluate):
    a_day_of("2.15.4", seed=2)
    everybody_is_flagged()

    flag = evaluate()["unexplained-enqueues", ENQUEUING]

    assert history.for_flag(flag).amounts["amount"].to_list()[-1] == flag.value


def test_a_campaign_is_what_ran_within_a_day_and_jobs_leave_it(site, logs, ingest, evaluate):
    jobs = [str(number) for number in range(100, 124)]
    old = Run("70", at("12:00") - DAY, at("12:30") - DAY, submit=at("11:00") - DAY)
    runs = [old, *(Run(job, end=None) for job in jobs)]
    ingest("sacct", logs("sacct", sacct(*runs)), cluster="anvil")

    def read(moment, told):
        text = job_stats("lake-MDT0000", {"x": {"open": 1}, **told}, snapshot=moment)
        ingest("job_stats", logs(f"{moment:%d%H%M}", text), at=moment.isoformat())

    for minute in (0, 15, 30):
        read(at(f"12:{minute}") - DAY, {"70": {"getattr": 120_000 * minute}} if minute else {})
    for minute in (0, 20, 30, 40):
        read(at(f"12:{minute}"), {job: {"open": 50_000 * minute} for job in jobs} if minute else {})
        flags = evaluate()
    measured = history.for_flag(flags["campaign", "alice"])

    assert measured.span == (at("12:20") - DAY, at("12:40"))
    assert measured.amounts.rows()[1:] == [
        (at("12:15") - DAY, at("12:30") - DAY, 3_600_000),
        (at("12:30") - DAY, at("12:20"), 3_600_000 + 24_000_000),
        (at("12:20"), at("12:30"), 36_000_000),
        (at("12:30"), at("12:40"), 48_000_000),
    ]
    assert flags["campaign", "alice"].value == 48_000_000


def test_a_job_that_runs_is_drawn_as_far_as_it_was_flagged(site, logs, ingest, evaluate, settings):
    settings.STATISTICS_INTERVAL = timedelta(hours=1)  # so that its figures stop at 12:00
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


def everybody_is_flagged():
    """Put thresholds in force that whoever does anything is over."""
    for rule in RULES:
        thresholds = {
            name: threshold.maximum if threshold.is_ceiling else max(threshold.minimum, 1e-6)
            for name, threshold in rule.thresholds.items()
        }
        apply_thresholds(
            ThresholdSet(rule=rule.code, thresholds=thresholds, reason="we try it", set_by="root")
        )


@pytest.fixture
def a_day_of(register, logs, ingest):
    """Load an hour of jobs, and of others, as it was counted and traced."""

    def load(version, seed):
        random = Random(seed)  # noqa: S311  (no secret)
        register(SITE.replace("2.12.5", version))
        runs = [Run(job, nodes="n[1-2]", node_count=2, cpu="00:00:10") for job in JOBS]
        ingest("sacct", logs("sacct", sacct(*runs)), cluster="anvil")
        for number, (moment, on_mdt, on_osts) in enumerate(_reads(random)):
            for target, told in (("lake-MDT0000", on_mdt), ("lake-OST0000", on_osts)):
                text = job_stats(target, {"x": {"getattr": 1}, **told}, snapshot=moment)
                ingest("job_stats", logs(f"{target}-{number}", text), at=moment.isoformat())
        ingest("rpctrace", logs("trace", *_traced(random)), server="mds1")

    return load


def _reads(random):
    """Yield some moments, and what had been counted by then on an MDT and on an OST."""
    counted = {job: [0] * 7 for job in JOBS}
    yield at("11:58"), {}, {}
    for minute in range(3, 66, 7):
        for job, counts in counted.items():
            most = 2_000 if job == HEAVY else 3
            for n in range(len(counts)):
                counts[n] += random.randint(most // 2, most)
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
    """Yield RPCs in order: ever more of those that are no job's."""
    for second in range(5, 3_600, 10):
        moment = at("12:00") + timedelta(seconds=second)
        yield rpc(moment, job=HEAVY, us=(random.randint(5_000, 9_000), 9_100))
        yield from (rpc(moment, job=ENQUEUING) for _ in range(random.randint(1, 3)))
        if second > 3_300:
            yield rpc(moment, LOGIN, GETATTR, job="")
            yield from (rpc(moment, NOBODY, OPEN, job="") for _ in range(random.randint(1, 3)))
