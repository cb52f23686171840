"""Flags follow from what is stored: as a job runs, in whatever order its data come."""

from datetime import timedelta
from itertools import permutations
from operator import itemgetter
from random import Random

import pytest
from django.db.models import Min
from django.utils import timezone

from ioportal.flags import evaluation, lifecycle
from ioportal.flags.models import Flag, FlagEvent, JobEvidence, ThresholdSet
from ioportal.flags.thresholds import apply_thresholds
from ioportal.ingest import attribution_stage
from ioportal.ingest.models import DirtyJob, DirtyTrace
from ioportal.jobs import statistics
from ioportal.jobs.models import DirtyEvidence, Job
from ioportal.site.models import Cluster, Server
from ioportal.stages import drain
from ioportal.telemetry import rollups
from tests.logs import Run, at, job_stats, pbs, rpc, sacct

pytestmark = pytest.mark.usefixtures("site")

MDT = "lake-MDT0000"
RUNNING = Run("77", end=None)
MILLION = 1_000_000
ENQUEUES = {"nid": "1@gni", "opcode": 101, "us": (30, 40)}
OPENS = {"nid": "1@gni", "opcode": 35, "us": (7, 9)}
OTHERS = {"nid": "19@gni", "opcode": 101, "us": (90, 95)}
NIDS = ["1@gni", "2@gni"]
RPCS = [ENQUEUES, OPENS, OTHERS]
FIVE_MINUTES = timedelta(minutes=5)
LONG = timedelta(days=8)  # until all flags rest
TOO_MANY = ("metadata-operations", "77")


@pytest.fixture
def jobs(logs, ingest):
    """Load jobs of anvil."""
    return lambda *runs: ingest("sacct", logs(f"s{hash(runs)}", sacct(*runs)), cluster="anvil")


@pytest.fixture
def read(logs, ingest):
    """Load what the MDT showed of job 77 at a time of day: stats."""

    def run(clock, stats):
        entries = {"login1.bash": {"open": 1}}
        if stats is not None:
            entries["77"] = {"getattr": stats}
        text = job_stats(MDT, entries, snapshot=clock)
        return ingest("job_stats", logs(f"read-{clock}", text), at=at(clock).isoformat())

    return run


def thresholds(value, **more):
    """Thresholds for everybody's operations."""
    return ThresholdSet(
        rule="metadata-operations",
        thresholds={"metadata_operations": value},
        reason="we try it",
        set_by="root",
        **more,
    )


def limits_of_hosts(rpcs):
    """Have hosts flagged from so many RPCs on."""
    told = {"reason": "we try it", "set_by": "root"}
    apply_thresholds(ThresholdSet(rule="host-outside-jobs", thresholds={"rpcs": rpcs}, **told))


@pytest.fixture
def send(logs, ingest):
    """Trace so many RPCs of a host without a job, and of others, in a minute after 12:00."""

    def run(server, minute, count, others=0):
        clock = f"12:{minute:02}"
        trace = [rpc(f"{clock}:{second:02}", "15@gni") for second in range(count)]
        trace += [rpc(f"{clock}:{30 + second:02}", "7@tcp", job="") for second in range(others)]
        ingest("rpctrace", logs(f"{server}-{minute}", *trace), server=server)

    return run


def history(flag):
    return [event.kind for event in FlagEvent.objects.filter(flag=flag)]


def test_a_job_is_flagged_while_it_runs_when_its_data_say_so(jobs, read, evaluate):
    jobs(RUNNING)
    read("11:59", None)
    read("12:09", 1_900_000)
    assert TOO_MANY not in evaluate()

    read("12:19", 2_100_000)
    flag = evaluate()[TOO_MANY]

    assert flag.state == Flag.State.OPEN
    assert (flag.since, flag.until) == (at("12:19"), at("12:19"))
    assert flag.numbers["metadata_operations"] == 2_100_000
    assert flag.thresholds == {"metadata_operations": 2_000_000}
    assert "2,100,000 metadata operations in this job" in flag.advice
    assert (flag.owner, flag.job.batch_id, flag.scope) == ("alice", "77", "the rule's own")


def test_a_flag_gathers_evidence_and_tells_of_it_when_it_doubles(jobs, read, evaluate):
    jobs(RUNNING)
    for clock, millions in (("11:59", None), ("12:09", 3), ("12:19", 3.5), ("12:29", 11)):
        read(clock, millions and int(millions * MILLION))
        evaluate()
    flag = evaluate()[TOO_MANY]

    assert flag.value == 11 * MILLION
    assert flag.severity == Flag.Severity.ABUSE  # five times the threshold, and it lasted
    assert history(flag) == ["opened", "escalated"]


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_the_data_ends_in_the_same_evidence(jobs, read, evaluate, seed):
    reads = [("11:59", None)]
    reads += [(f"12:{m:02}", 40_000 * m * (m % 7 + 1)) for m in (1, 2, 3, 4, 5, 7, 9, 14, 15, 25)]
    reads.sort()
    growing, most = [], 0
    for clock, stats in reads:
        most = max(most, stats or 0)
        growing.append((clock, None if stats is None else most))
    loads = [lambda one=one: read(*one) for one in growing] + [lambda: jobs(RUNNING)]
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
    found = JobEvidence.objects.values(*fields).get(job__batch_id="77")

    JobEvidence.objects.all().delete()
    Flag.objects.all().delete()
    jobs(Run("77", end="12:26"))  # evaluated anew, all at once
    evaluate()

    assert JobEvidence.objects.values(*fields).get(job__batch_id="77") == found
    assert found["startup_operations"] == dict(growing)["12:05"]
    assert found["peak_stats"] == max(
        (last - (first or 0)) * min(1, FIVE_MINUTES / (at(end) - at(start)))
        for n, (start, first) in enumerate(growing)
        for m, (end, last) in enumerate(growing)
        # In five minutes, or in an interval of its own that is longer.
        if n < m and (at(end) - at(start) <= FIVE_MINUTES or m == n + 1)
    )


def test_a_peak_that_late_data_take_away_gives_way_to_the_one_before(jobs, read, evaluate):
    jobs(Run("77", "11:31", None))
    for clock, stats in (("11:30", None), ("11:40", 5), ("11:45", 50), ("12:00", 60)):
        read(clock, stats)
    read("12:10", 160)  # half of 100 in some five minutes of ten
    evaluate()
    peak = JobEvidence.objects.values_list("peak_stats", "peak_stats_at")
    assert peak.get(job__batch_id="77") == (50, at("12:10"))

    read("12:04", 100)
    read("12:07", 130)
    evaluate()

    assert peak.get(job__batch_id="77") == (45, at("11:45"))


def test_a_job_is_where_it_did_most_within_five_minutes(logs, ingest, evaluate):
    run = Run("77", "11:31", None, nodes="b1")
    ingest("pbs", logs("p", pbs(("S", run))), cluster="birch")
    told = {
        "lake-MDT0000": (("11:30", 0), ("11:45", 300), ("12:00", 600), ("12:15", 900)),
        "pond-MDT0000": (("11:30", 0), ("12:00", 10), ("12:05", 210)),
    }
    for target, reads in told.items():
        for clock, stats in reads:
            text = job_stats(target, {"x": {"open": 1}, "77": {"getattr": stats}}, snapshot=clock)
            ingest("job_stats", logs(f"{target}-{clock}", text), at=at(clock).isoformat())
    evaluate()

    found = JobEvidence.objects.get(job__batch_id="77")
    assert (found.peak_operations, found.filesystem.name) == (200, "pond")


@pytest.mark.parametrize("seed", range(2))
def test_any_order_of_traces_ends_in_the_same_evidence(logs, ingest, jobs, evaluate, seed):
    draw = Random(seed)  # noqa: S311  (no secret)
    records = [  # seconds from noon, server, whether it is an enqueue of the job, or another RPC
        (draw.randrange(1_200), draw.choice(["mds1", "mds2"]), draw.choice(RPCS))
        for _ in range(800)
    ]
    parts = {}
    for second, server, told in sorted(records, key=itemgetter(0)):
        clock = at("12:00") + timedelta(seconds=second)
        parts.setdefault((server, second // 300), []).append(rpc(clock, **told))
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
        end: [told for second, _, told in records if end - 300 <= second // 10 * 10 < end]
        for end in range(10, 1_210, 10)
    }
    enqueues = {end: spans[end].count(ENQUEUES) for end in spans}
    most = max(enqueues, key=lambda end: enqueues[end])  # the first of them
    others = spans[most].count(OTHERS)
    found = JobEvidence.objects.get(job__batch_id="77")
    assert found.peak_locks_s == pytest.approx(enqueues[most] * 30e-6)
    assert found.peak_locks_s_at == at("12:00") + timedelta(seconds=most)
    assert found.lock_share == enqueues[most] / (enqueues[most] + spans[most].count(OPENS))
    assert found.lock_ratio == pytest.approx(30 / 90 if others else None)


def test_a_job_that_ends_has_no_other_judged_anew_by_its_whole_run(logs, ingest, jobs, evaluate):
    jobs(Run("77", nodes="n1", end=None), Run("78", "09:00", "12:30", nodes="n2"))
    ingest("rpctrace", logs("t", "\n".join(rpc("12:20", nid) for nid in NIDS)), server="mds1")
    evaluate()
    one, other = (Job.objects.get(batch_id=batch_id) for batch_id in ("77", "78"))
    span = {"start": at("12:20"), "end": at("12:21")}
    DirtyTrace.objects.create(server=Server.objects.get(name="mds1"), **span)
    DirtyJob.objects.create(job=other, start=at("09:00"), end=at("12:30"), node_ids=[])

    drain(attribution_stage.attribute_pending)

    pending = DirtyEvidence.objects.values_list("job_id").annotate(Min("since"))
    assert dict(pending) == {one.pk: at("12:20"), other.pk: at("08:55")}


def test_all_that_is_pending_of_a_job_is_judged_at_once(jobs, read, evaluate):
    jobs(RUNNING)
    read("11:59", None)
    read("12:09", 2_100_000)
    evaluate()
    job = Job.objects.get(batch_id="77")
    for since in (None, at("12:05"), at("11:59"), None):
        DirtyEvidence.objects.mark([job.pk], since)

    assert [evaluation.evaluate_pending(limit=1) for _ in range(2)] == [1, 0]


def test_an_open_flag_stays_down_to_a_share_of_its_limit(send, evaluate):
    limits_of_hosts(10)
    send("mds1", 0, 10)
    [flag] = evaluate().values()

    send("mds1", 6, 8)
    assert list(evaluate().values()) == [flag]

    send("mds1", 12, 7)
    assert evaluate() == {}
    flag.refresh_from_db()
    assert (flag.state, flag.resolution) == ("resolved", "Below the thresholds again.")
    assert history(flag) == ["opened", "resolved"]


def test_an_open_flag_stays_down_to_a_share_of_the_other_limits_too(send, evaluate):
    told = {"rpcs": 10, "server_share": 0.5}
    apply_thresholds(
        ThresholdSet(rule="host-outside-jobs", thresholds=told, reason="we try it", set_by="root")
    )
    send("mds1", 0, 10)
    opened = set(evaluate())

    send("mds1", 6, 10, others=12)  # (0.45 of all)
    assert set(evaluate()) == opened
    send("mds1", 12, 10, others=20)  # (0.33)
    assert evaluate() == {}


def test_what_is_muted_stays_so_until_its_time_whatever_becomes_of_it(send, evaluate):
    limits_of_hosts(10)
    send("mds1", 0, 10)
    [flag] = evaluate().values()
    until = timezone.now() + LONG
    Flag.objects.filter(pk=flag.pk).update(state="muted", muted_until=until)

    for minute, count in ((6, 3), (12, 10)):
        send("mds1", minute, count)
        [found] = evaluate().values()
        assert (found.pk, found.state) == (flag.pk, "muted")
    lifecycle.expire(until + LONG, at("23:00"))

    flag.refresh_from_db()
    assert (flag.state, history(flag)) == ("open", ["opened", "reopened"])


def test_a_run_that_is_over_has_lasted(jobs, read, evaluate):
    jobs(Run("77", end="12:20"))
    for clock, stats in (("12:00", 0), ("12:10", 6 * MILLION), ("12:20", 12 * MILLION)):
        read(clock, stats)

    assert evaluate()[TOO_MANY].get_severity_display() == "abuse"


def test_late_data_of_another_day_say_nothing_of_a_users_newest_one(jobs, logs, ingest, evaluate):
    told = {"metadata_operations": 1_000, "jobs": 2, "largest_share": 1}
    apply_thresholds(
        ThresholdSet(rule="campaign", thresholds=told, reason="we try it", set_by="root")
    )
    before = timedelta(days=2)
    old = Run("70", at("12:00") - before, at("12:30") - before, submit=at("11:00") - before)
    jobs(old, RUNNING, Run("78", end=None))

    def counted(moment, entries):
        text = job_stats(MDT, {"x": {"open": 1}, **entries}, snapshot=moment)
        ingest("job_stats", logs(f"{moment:%d%H%M}", text), at=moment.isoformat())

    for clock, operations in (("12:00", 0), ("12:10", 3), ("12:20", 6), ("12:30", 9)):
        counted(at(clock) - before, {"70": {"getattr": operations}})
    for clock, operations in (("12:00", 0), ("12:10", 800)):
        counted(at(clock), {job: {"getattr": operations} for job in ("77", "78")})
    flag = evaluate()["campaign", "alice"]

    DirtyEvidence.objects.mark([Job.objects.get(batch_id="70").pk])

    assert evaluate()["campaign", "alice"].pk == flag.pk


def test_limits_that_are_changed_hold_at_once_for_open_flags(jobs, read, evaluate):
    jobs(RUNNING)
    read("11:59", None)
    read("12:09", 2_100_000)
    flag = evaluate()[TOO_MANY]

    apply_thresholds(thresholds(1_500_000, advice="At most {threshold_metadata_operations:,.0f}."))
    lower = evaluate()[TOO_MANY]
    assert lower == flag
    assert (lower.thresholds, lower.scope) == ({"metadata_operations": 1_500_000}, "everywhere")
    assert lower.advice == "At most 1,500,000."

    apply_thresholds(thresholds(2_200_000))
    assert TOO_MANY not in evaluate()
    assert history(flag) == ["opened", "resolved"]


def test_limits_of_a_queue_go_before_those_of_everybody(jobs, read, evaluate):
    anvil = Cluster.objects.get(name="anvil")
    apply_thresholds(thresholds(5 * MILLION))
    apply_thresholds(thresholds(1 * MILLION, cluster=anvil, queue="debug"))
    apply_thresholds(thresholds(2 * MILLION, cluster=anvil, queue="batch"))
    jobs(RUNNING)
    read("11:59", None)
    read("12:09", 2_100_000)

    assert evaluate()[TOO_MANY].scope == "cluster anvil, queue batch"


def test_a_rule_that_is_off_somewhere_flags_nobody_there(jobs, read, evaluate):
    apply_thresholds(thresholds(MILLION, is_on=False, cluster=Cluster.objects.get(name="anvil")))
    jobs(RUNNING)
    read("11:59", None)
    read("12:09", 2_100_000)

    assert TOO_MANY not in evaluate()


def test_nobody_is_blamed_by_bad_data_until_they_are_good(jobs, read, evaluate):
    jobs(Run("77", end="13:00"))
    read("11:59", None)
    read("12:05", 2_100_000)
    read("13:05", 2_200_000)
    flag = evaluate()[TOO_MANY]
    assert flag.state == Flag.State.SUPPRESSED
    assert flag.suppression_reasons == [
        "Data quality is poor. Only findings on good data are reported."
    ]

    for clock in ("12:20", "12:35", "12:50"):
        read(clock, 2_150_000)

    assert evaluate()[TOO_MANY].state == Flag.State.OPEN
    assert history(flag) == ["suppressed", "opened"]


def test_what_somebody_resolved_is_opened_again_only_when_it_is_twice_as_bad(jobs, read, evaluate):
    jobs(RUNNING)
    read("11:59", None)
    read("12:09", 2_100_000)
    flag = evaluate()[TOO_MANY]
    Flag.objects.filter(pk=flag.pk).update(
        state="resolved", resolution="Told.", resolved_by="bob", resolved_at=at("12:10")
    )
    read("12:19", 4_100_000)
    assert TOO_MANY not in evaluate()

    read("12:29", 4_300_000)

    assert evaluate()[TOO_MANY].pk != flag.pk


def test_what_rests_is_opened_again_only_when_there_is_news_of_it(jobs, read, evaluate):
    def judged_again():
        """Judge all that is there, and let rest what ended long before the newest data."""
        for job in Job.objects.all():
            DirtyEvidence.objects.mark([job.pk])
        evaluate()
        lifecycle.expire(timezone.now(), at("13:00") + LONG)
        flags = Flag.objects.filter(rule=TOO_MANY[0]).order_by("pk")
        return [(flag.state, flag.suppression_reasons == []) for flag in flags]

    jobs(Run("77", end="12:30"))
    read("12:00", 0)
    read("12:30", 3 * MILLION)
    assert judged_again() == [("resolved", False)]  # (what was done from 12:20 on is not known)
    assert judged_again() == [("resolved", False)]

    read("12:10", MILLION)
    read("12:20", 2 * MILLION)
    assert judged_again() == [("resolved", False), ("resolved", True)]
    assert judged_again() == [("resolved", False), ("resolved", True)]


def test_a_host_is_judged_by_what_it_sends_to_each_filesystem(send, evaluate):
    limits_of_hosts(5)
    send("mds1", 0, 6)
    send("pond-mds", 0, 2)
    [of_lake] = evaluate().values()
    assert (of_lake.filesystem.name, of_lake.value) == ("lake", 6)

    send("pond-mds", 1, 2)
    assert list(evaluate().values()) == [of_lake]

    send("pond-mds", 2, 4)
    evaluate()
    names = Flag.objects.unresolved().values_list("filesystem__name", flat=True)
    assert sorted(names) == ["lake", "pond"]


@pytest.mark.parametrize("order", list(permutations(("70", "71", "80"))), ids="-".join)
def test_the_order_of_evaluation_does_not_change_what_is_flagged(
    jobs, logs, ingest, refresh, order
):
    """Two jobs are a campaign until the larger third one begins."""
    told = {"metadata_operations": 1_000, "jobs": 2, "largest_share": 0.5}
    apply_thresholds(
        ThresholdSet(rule="campaign", thresholds=told, reason="we try it", set_by="root")
    )
    jobs(*(Run(job, end="12:20") for job in ("70", "71")), Run("80", "12:30", "12:50"))
    steps = {"12:00": (0, 0), "12:10": (800, 0), "12:20": (801, 0), "12:30": (801, 0)}
    for clock, (early, late) in {**steps, "12:40": (801, 4_000), "12:50": (801, 5_000)}.items():
        entries = {"70": {"getattr": early + 1}, "71": {"getattr": early + 1}}
        text = job_stats(MDT, entries | {"80": {"getattr": late + 1}}, snapshot=clock)
        ingest("job_stats", logs(f"read-{clock}", text), at=at(clock).isoformat())
    refresh()
    DirtyEvidence.objects.all().delete()
    for job in order:
        DirtyEvidence.objects.mark([Job.objects.get(batch_id=job).pk])
        evaluation.evaluate_pending()

    assert not Flag.objects.unresolved().filter(rule="campaign").exists()


def test_live_jobs_and_hosts_are_evaluated_before_a_backlog(jobs, read, send, evaluate):
    limits_of_hosts(10)
    jobs(RUNNING)
    read("11:59", None)
    evaluate()
    DirtyEvidence.objects.mark(range(1_000_000, 1_001_000))  # (jobs that are gone)
    read("12:09", 2_100_000)
    send("mds1", 0, 10)
    drain(statistics.refresh_statistics)
    drain(rollups.roll_up)

    evaluation.evaluate_round()

    assert DirtyEvidence.objects.count() > 300
    rules = set(Flag.objects.unresolved().values_list("rule", flat=True))
    assert rules >= {"metadata-operations", "host-outside-jobs"}


def test_a_share_of_each_slice_is_the_oldest_work(db):
    DirtyEvidence.objects.mark(range(1, 41))

    claimed = [row.job_id for row in DirtyEvidence.objects.claim(8)]

    assert claimed == [1, 2, 35, 36, 37, 38, 39, 40]
    assert DirtyEvidence.objects.count() == 32
