"""Lifecycle of flags: for running and ended jobs, and for data in any order."""

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
from ioportal.stage_runs import drain
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
LONG = timedelta(days=8)  # longer than the expiry of all flags
TOO_MANY = ("metadata-operations", "77")


@pytest.fixture
def jobs(logs, ingest):
    """Ingest jobs of anvil."""
    return lambda *runs: ingest("sacct", logs(f"s{hash(runs)}", sacct(*runs)), cluster="anvil")


@pytest.fixture
def read(logs, ingest):
    """Ingest the MDT's count of stats by job 77 at a time of day; None: no record."""

    def run(clock, stats):
        entries = {"login1.bash": {"open": 1}}
        if stats is not None:
            entries["77"] = {"getattr": stats}
        text = job_stats(MDT, entries, snapshot=clock)
        return ingest("job_stats", logs(f"read-{clock}", text), at=at(clock).isoformat())

    return run


def thresholds(value, **more):
    """Thresholds of a job's metadata operations."""
    return ThresholdSet(
        rule="metadata-operations",
        thresholds={"metadata_operations": value},
        reason="a test",
        set_by="root",
        **more,
    )


def set_host_threshold(rpcs):
    """Set the threshold of RPCs from hosts outside jobs."""
    audit = {"reason": "a test", "set_by": "root"}
    apply_thresholds(ThresholdSet(rule="host-outside-jobs", thresholds={"rpcs": rpcs}, **audit))


@pytest.fixture
def send(logs, ingest):
    """Trace RPCs of a host without a job, and of other hosts, in a minute after 12:00."""

    def run(server, minute, count, others=0):
        clock = f"12:{minute:02}"
        trace = [rpc(f"{clock}:{second:02}", "15@gni") for second in range(count)]
        trace += [rpc(f"{clock}:{30 + second:02}", "7@tcp", job="") for second in range(others)]
        ingest("rpctrace", logs(f"{server}-{minute}", *trace), server=server)

    return run


def history(flag):
    return [event.kind for event in FlagEvent.objects.filter(flag=flag)]


def test_a_running_job_is_flagged_above_the_threshold(jobs, read, evaluate):
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
    assert (flag.owner, flag.job.batch_id, flag.scope) == ("alice", "77", "rule defaults")


def test_a_growing_flag_escalates_to_abuse(jobs, read, evaluate):
    jobs(RUNNING)
    for clock, millions in (("11:59", None), ("12:09", 3), ("12:19", 3.5), ("12:29", 11)):
        read(clock, millions and int(millions * MILLION))
        evaluate()
    flag = evaluate()[TOO_MANY]

    assert flag.value == 11 * MILLION
    assert flag.severity == Flag.Severity.ABUSE  # five times the threshold for long enough
    assert history(flag) == ["opened", "escalated"]


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
    for target, reads in reads_by_target.items():
        for clock, stats in reads:
            text = job_stats(target, {"x": {"open": 1}, "77": {"getattr": stats}}, snapshot=clock)
            ingest("job_stats", logs(f"{target}-{clock}", text), at=at(clock).isoformat())
    evaluate()

    evidence = JobEvidence.objects.get(job__batch_id="77")
    assert (evidence.peak_operations, evidence.filesystem.name) == (200, "pond")


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


def test_an_ended_job_marks_only_changed_windows_of_other_jobs(logs, ingest, jobs, evaluate):
    jobs(Run("77", nodes="n1", end=None), Run("78", "09:00", "12:30", nodes="n2"))
    ingest("rpctrace", logs("t", "\n".join(rpc("12:20", nid) for nid in NIDS)), server="mds1")
    evaluate()
    running, ended = (Job.objects.get(batch_id=batch_id) for batch_id in ("77", "78"))
    span = {"start": at("12:20"), "end": at("12:21")}
    DirtyTrace.objects.create(server=Server.objects.get(name="mds1"), **span)
    DirtyJob.objects.create(job=ended, start=at("09:00"), end=at("12:30"), node_ids=[])

    drain(attribution_stage.attribute_pending)

    pending = DirtyEvidence.objects.values_list("job_id").annotate(Min("since"))
    assert dict(pending) == {running.pk: at("12:20"), ended.pk: at("08:55")}


def test_all_pending_rows_of_a_job_are_claimed_together(jobs, read, evaluate):
    jobs(RUNNING)
    read("11:59", None)
    read("12:09", 2_100_000)
    evaluate()
    job = Job.objects.get(batch_id="77")
    for since in (None, at("12:05"), at("11:59"), None):
        DirtyEvidence.objects.mark([job.pk], since)

    assert [evaluation.evaluate_pending(limit=1) for _ in range(2)] == [1, 0]


def test_an_open_flag_resolves_below_the_relaxed_threshold(send, evaluate):
    set_host_threshold(10)
    send("mds1", 0, 10)
    [flag] = evaluate().values()

    send("mds1", 6, 8)
    assert list(evaluate().values()) == [flag]

    send("mds1", 12, 7)
    assert evaluate() == {}
    flag.refresh_from_db()
    assert (flag.state, flag.resolution) == ("resolved", "Below the thresholds again.")
    assert history(flag) == ["opened", "resolved"]


def test_secondary_thresholds_are_relaxed_too(send, evaluate):
    values = {"rpcs": 10, "server_share": 0.5}
    apply_thresholds(
        ThresholdSet(rule="host-outside-jobs", thresholds=values, reason="a test", set_by="root")
    )
    send("mds1", 0, 10)
    opened = set(evaluate())

    send("mds1", 6, 10, others=12)  # a share of 0.45
    assert set(evaluate()) == opened
    send("mds1", 12, 10, others=20)  # a share of 0.33
    assert evaluate() == {}


def test_a_muted_flag_stays_muted_until_its_end_time(send, evaluate):
    set_host_threshold(10)
    send("mds1", 0, 10)
    [flag] = evaluate().values()
    until = timezone.now() + LONG
    Flag.objects.filter(pk=flag.pk).update(state="muted", muted_until=until)

    for minute, count in ((6, 3), (12, 10)):
        send("mds1", minute, count)
        [muted] = evaluate().values()
        assert (muted.pk, muted.state) == (flag.pk, "muted")
    lifecycle.expire(until + LONG, at("23:00"))

    flag.refresh_from_db()
    assert (flag.state, history(flag)) == ("open", ["opened", "reopened"])


def test_the_whole_run_of_an_ended_job_counts_as_duration(jobs, read, evaluate):
    jobs(Run("77", end="12:20"))
    for clock, stats in (("12:00", 0), ("12:10", 6 * MILLION), ("12:20", 12 * MILLION)):
        read(clock, stats)

    assert evaluate()[TOO_MANY].get_severity_display() == "abuse"


def test_late_data_of_an_earlier_day_keeps_a_users_latest_flag(jobs, logs, ingest, evaluate):
    values = {"metadata_operations": 1_000, "jobs": 2, "largest_share": 1}
    apply_thresholds(
        ThresholdSet(rule="campaign", thresholds=values, reason="a test", set_by="root")
    )
    before = timedelta(days=2)
    old = Run("70", at("12:00") - before, at("12:30") - before, submit=at("11:00") - before)
    jobs(old, RUNNING, Run("78", end=None))

    def ingest_counters(moment, entries):
        text = job_stats(MDT, {"x": {"open": 1}, **entries}, snapshot=moment)
        ingest("job_stats", logs(f"{moment:%d%H%M}", text), at=moment.isoformat())

    for clock, operations in (("12:00", 0), ("12:10", 3), ("12:20", 6), ("12:30", 9)):
        ingest_counters(at(clock) - before, {"70": {"getattr": operations}})
    for clock, operations in (("12:00", 0), ("12:10", 800)):
        ingest_counters(at(clock), {job: {"getattr": operations} for job in ("77", "78")})
    flag = evaluate()["campaign", "alice"]

    DirtyEvidence.objects.mark([Job.objects.get(batch_id="70").pk])

    assert evaluate()["campaign", "alice"].pk == flag.pk


def test_changed_thresholds_apply_to_open_flags_immediately(jobs, read, evaluate):
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


def test_thresholds_of_a_queue_override_site_thresholds(jobs, read, evaluate):
    anvil = Cluster.objects.get(name="anvil")
    apply_thresholds(thresholds(5 * MILLION))
    apply_thresholds(thresholds(1 * MILLION, cluster=anvil, queue="debug"))
    apply_thresholds(thresholds(2 * MILLION, cluster=anvil, queue="batch"))
    jobs(RUNNING)
    read("11:59", None)
    read("12:09", 2_100_000)

    assert evaluate()[TOO_MANY].scope == "cluster anvil, queue batch"


def test_a_rule_switched_off_for_a_cluster_flags_no_jobs_in_it(jobs, read, evaluate):
    apply_thresholds(thresholds(MILLION, is_on=False, cluster=Cluster.objects.get(name="anvil")))
    jobs(RUNNING)
    read("11:59", None)
    read("12:09", 2_100_000)

    assert TOO_MANY not in evaluate()


def test_a_flag_is_suppressed_until_its_data_quality_is_good(jobs, read, evaluate):
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


def test_a_flag_resolved_by_a_user_reopens_at_twice_its_value(jobs, read, evaluate):
    jobs(RUNNING)
    read("11:59", None)
    read("12:09", 2_100_000)
    flag = evaluate()[TOO_MANY]
    Flag.objects.filter(pk=flag.pk).update(
        state="resolved", resolution="User contacted.", resolved_by="bob", resolved_at=at("12:10")
    )
    read("12:19", 4_100_000)
    assert TOO_MANY not in evaluate()

    read("12:29", 4_300_000)

    assert evaluate()[TOO_MANY].pk != flag.pk


def test_an_expired_flag_reopens_only_for_new_evidence(jobs, read, evaluate):
    def evaluate_and_expire():
        """Evaluate all jobs, expire old flags and return the flags."""
        for job in Job.objects.all():
            DirtyEvidence.objects.mark([job.pk])
        evaluate()
        lifecycle.expire(timezone.now(), at("13:00") + LONG)
        flags = Flag.objects.filter(rule=TOO_MANY[0]).order_by("pk")
        return [(flag.state, flag.suppression_reasons == []) for flag in flags]

    jobs(Run("77", end="12:30"))
    read("12:00", 0)
    read("12:30", 3 * MILLION)
    assert evaluate_and_expire() == [("resolved", False)]  # suppressed for its data quality
    assert evaluate_and_expire() == [("resolved", False)]

    read("12:10", MILLION)
    read("12:20", 2 * MILLION)
    assert evaluate_and_expire() == [("resolved", False), ("resolved", True)]
    assert evaluate_and_expire() == [("resolved", False), ("resolved", True)]


def test_a_host_is_evaluated_for_each_filesystem(send, evaluate):
    set_host_threshold(5)
    send("mds1", 0, 6)
    send("pond-mds", 0, 2)
    [lake_flag] = evaluate().values()
    assert (lake_flag.filesystem.name, lake_flag.value) == ("lake", 6)

    send("pond-mds", 1, 2)
    assert list(evaluate().values()) == [lake_flag]

    send("pond-mds", 2, 4)
    evaluate()
    names = Flag.objects.unresolved().values_list("filesystem__name", flat=True)
    assert sorted(names) == ["lake", "pond"]


@pytest.mark.parametrize("order", list(permutations(("70", "71", "80"))), ids="-".join)
def test_flags_do_not_depend_on_the_order_of_evaluation(jobs, logs, ingest, refresh, order):
    """Two jobs are a campaign until a larger third job starts."""
    values = {"metadata_operations": 1_000, "jobs": 2, "largest_share": 0.5}
    apply_thresholds(
        ThresholdSet(rule="campaign", thresholds=values, reason="a test", set_by="root")
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
    set_host_threshold(10)
    jobs(RUNNING)
    read("11:59", None)
    evaluate()
    DirtyEvidence.objects.mark(range(1_000_000, 1_001_000))  # no such jobs
    read("12:09", 2_100_000)
    send("mds1", 0, 10)
    drain(statistics.refresh_statistics)
    drain(rollups.roll_up)

    evaluation.evaluate_round()

    assert DirtyEvidence.objects.count() > 300
    rules = set(Flag.objects.unresolved().values_list("rule", flat=True))
    assert rules >= {"metadata-operations", "host-outside-jobs"}


def test_a_slice_includes_some_of_the_oldest_work(db):
    DirtyEvidence.objects.mark(range(1, 41))

    claimed = [row.job_id for row in DirtyEvidence.objects.claim(8)]

    assert claimed == [1, 2, 35, 36, 37, 38, 39, 40]
    assert DirtyEvidence.objects.count() == 32
