"""Lifecycle of flags: for running and ended jobs, and for data in any order."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db.models import Min

from ioportal.findings import evaluation
from ioportal.findings.cases import triage
from ioportal.findings.flags.flag_texts import severity_reason
from ioportal.findings.models import Case, Flag, FlagEvent, ThresholdSet
from ioportal.findings.thresholds import apply_thresholds
from ioportal.ingest import attribution_stage
from ioportal.ingest.models import DirtyJob, DirtyTrace
from ioportal.jobs import statistics
from ioportal.jobs.models import DirtyEvidence, Job, JobStatistics
from ioportal.site.models import Cluster, Node, Server
from ioportal.telemetry import rollups
from ioportal.telemetry.stage_runs import drain
from tests import untraced
from tests.logs import Run, at, job_stats, rpc

pytestmark = pytest.mark.usefixtures("module_site")

MDT = "lake-MDT0000"
RUNNING = Run("77", end=None)
MILLION = 1_000_000
NIDS = ["1@gni", "2@gni"]
TOO_MANY = ("metadata-operations", "77")


def thresholds(value, **more):
    """Thresholds of a job's metadata operations."""
    return ThresholdSet(
        rule="metadata-operations",
        thresholds={"metadata_operations": value, "capacity_share": 0},
        reason="a test",
        set_by="root",
        **more,
    )


def set_host_threshold(rpcs):
    """Set the threshold of RPCs from hosts outside jobs."""
    audit = {"reason": "a test", "set_by": "root"}
    apply_thresholds(
        ThresholdSet(
            rule="host-outside-jobs", thresholds={"rpcs": rpcs, "capacity_share": 0}, **audit
        )
    )


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

    assert flag.case.state == Case.State.OPEN
    assert (flag.since, flag.until) == (at("12:19"), at("12:19"))
    assert flag.numbers["metadata_operations"] == 2_100_000
    assert flag.threshold == 2_000_000
    assert "2,100,000 metadata operations in this job" in flag.advice
    assert (flag.owner, flag.job.batch_id, flag.scope) == ("alice", "77", "rule defaults")


def test_a_growing_flag_escalates_to_abuse(jobs, read, evaluate, harm):
    jobs(RUNNING)
    harm("77")
    for clock, millions in (("11:59", None), ("12:09", 3), ("12:19", 3.5), ("12:29", 11)):
        read(clock, millions and int(millions * MILLION))
        evaluate()
    flag = evaluate()[TOO_MANY]

    assert flag.value == 11 * MILLION
    assert flag.severity == Flag.Severity.ABUSE  # five times the threshold for long enough
    assert history(flag) == ["opened", "escalated"]
    reason = "5.5 times its threshold, abuse from 5 times on, once it has lasted 5 minutes"
    assert FlagEvent.objects.get(flag=flag, kind="escalated").text.startswith(
        f"Severity raised to abuse: {reason}"
    )
    assert severity_reason(flag).startswith(f"Abuse instead of warning: {reason}")


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


def test_a_job_has_one_pending_row_and_another_for_earlier_windows(db):
    for since in (None, None, at("12:05"), at("12:09"), None, at("11:59"), at("12:05")):
        DirtyEvidence.objects.mark([1, 2], since)

    pending = DirtyEvidence.objects.filter(job_id=2).order_by("pk")
    assert list(pending.values_list("since", flat=True)) == [None, at("12:05"), at("11:59")]


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
    case = Case.objects.get()
    ending = (
        "Below the thresholds again: Metadata RPCs within five minutes 7 RPCs (ends below 8 RPCs)."
    )
    assert (case.state, case.resolution) == ("resolved", ending)
    assert history(flag) == ["opened", "ended"]


def test_secondary_thresholds_are_relaxed_too(send, evaluate):
    values = {"rpcs": 10, "server_share": 0.5, "capacity_share": 0}
    apply_thresholds(
        ThresholdSet(rule="host-outside-jobs", thresholds=values, reason="a test", set_by="root")
    )
    send("mds1", 0, 10)
    opened = set(evaluate())

    send("mds1", 6, 10, others=12)  # a share of 0.45
    assert set(evaluate()) == opened
    send("mds1", 12, 10, others=20)  # a share of 0.33
    assert evaluate() == {}


def test_a_new_episode_of_a_host_is_a_new_flag_of_its_case(send, evaluate):
    set_host_threshold(10)
    for minute, count in ((0, 10), (6, 3), (12, 10)):
        send("mds1", minute, count)
        evaluate()
        evaluate()  # the same data again

    assert [flag.ended_at is None for flag in Flag.objects.order_by("pk")] == [False, True]
    case = Case.objects.get()
    assert [event.kind for event in case.events.all()] == ["opened", "resolved", "reopened"]


def test_a_host_that_continues_after_the_resolution_opens_its_case_again(send, evaluate):
    set_host_threshold(10)
    send("mds1", 0, 10)
    evaluate()
    sam = User.objects.create_user("sam", is_staff=True)
    triage.resolve([Case.objects.get().pk], sam, "User contacted.")

    for minute, state in ((6, "resolved"), (25, "resolved"), (40, "open")):
        send("mds1", minute, 12)
        evaluate()
        assert Case.objects.get().state == state
    assert Flag.objects.count() == 1


def test_a_host_is_flagged_since_its_last_five_minutes_reached_the_threshold(send, evaluate):
    set_host_threshold(10)
    send("mds1", 0, 10)
    send("mds1", 3, 3)

    [flag] = evaluate().values()

    assert (flag.since, flag.until) == (at("12:00:10"), at("12:03:10"))


def test_the_whole_run_of_an_ended_job_counts_as_duration(jobs, read, evaluate, harm):
    jobs(Run("77", end="12:20"))
    harm("77")
    for clock, stats in (("12:00", 0), ("12:10", 6 * MILLION), ("12:20", 12 * MILLION)):
        read(clock, stats)

    assert evaluate()[TOO_MANY].get_severity_display() == "abuse"


def test_better_data_of_an_ended_job_updates_the_numbers_of_its_flag(flag_job):
    job = flag_job("1")
    [before] = Flag.objects.filter(rule="metadata-operations").values_list("numbers", flat=True)
    JobStatistics.objects.update(duration_s=7_200, metadata_operations=2.5 * MILLION)
    DirtyEvidence.objects.mark([job.pk])
    drain(evaluation.evaluate_pending)
    flag = Flag.objects.get(rule="metadata-operations")

    assert flag.value == flag.numbers["metadata_operations"] == 2.5 * MILLION
    assert flag.numbers["duration_s"] == 2 * before["duration_s"]
    assert "2,500,000 metadata operations in this job" in flag.advice


def test_late_data_of_an_earlier_day_keeps_a_users_latest_flag(jobs, logs, ingest, evaluate):
    values = {"metadata_operations": MILLION, "jobs": 2, "largest_share": 1, "capacity_share": 0}
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
    for clock, operations in (("12:00", 0), ("12:10", 800_000)):
        ingest_counters(at(clock), {job: {"getattr": operations} for job in ("77", "78")})
    flag = evaluate()["campaign", "alice:relax"]

    DirtyEvidence.objects.mark([Job.objects.get(batch_id="70").pk])

    assert evaluate()["campaign", "alice:relax"].pk == flag.pk


def test_changed_thresholds_apply_to_open_flags_immediately(jobs, read, evaluate):
    jobs(RUNNING)
    read("11:59", None)
    read("12:09", 2_100_000)
    flag = evaluate()[TOO_MANY]

    apply_thresholds(thresholds(1_500_000, advice="At most {threshold_metadata_operations:,.0f}."))
    lower = evaluate()[TOO_MANY]
    assert lower == flag
    assert (lower.threshold, lower.scope) == (1_500_000, "everywhere")
    assert lower.advice == "At most 1,500,000."

    apply_thresholds(thresholds(2_200_000))
    assert TOO_MANY not in evaluate()
    assert history(flag) == ["opened", "ended"]


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
    assert flag.case.state == Case.State.SUPPRESSED
    assert flag.suppression_reasons == [
        "Data quality is poor. Only findings on good data are reported."
    ]

    for clock in ("12:20", "12:35", "12:50"):
        read(clock, 2_150_000)

    assert evaluate()[TOO_MANY].case.state == Case.State.OPEN
    assert history(flag) == ["suppressed", "opened"]


def test_cleared_counters_do_not_suppress_an_estimated_impact(logs, evaluate):
    untraced.ingest(logs, cleared_in=5)

    flag = evaluate()["impact", untraced.STORM]

    assert JobStatistics.objects.get(job=flag.job).quality == "partial"
    assert not flag.is_suppressed


def test_a_forwarding_node_is_not_flagged(send, evaluate):
    set_host_threshold(10)
    Node.objects.filter(name="n15").update(forwards=True)

    send("mds1", 0, 10)

    assert evaluate() == {}


def test_a_job_that_ended_when_it_began_does_not_stop_the_evaluation(jobs, read, evaluate):
    jobs(Run("77", "12:05:00", "12:05:00"))
    read("11:59", None)
    read("12:09", 3_000_000)

    evaluate()

    assert not DirtyEvidence.objects.exists()
    flags = Flag.objects.filter(rule="metadata-operations")
    assert [flag.numbers["operations_per_node_hour"] for flag in flags] == [3_600 * 3_000_000]


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
    names = Flag.objects.current().values_list("filesystem__name", flat=True)
    assert sorted(names) == ["lake", "pond"]


def test_live_jobs_and_hosts_are_evaluated_before_a_backlog(jobs, read, send, evaluate):
    set_host_threshold(10)
    jobs(RUNNING)
    read("11:59", None)
    evaluate()
    read("12:09", 2_100_000)
    send("mds1", 0, 10)
    drain(statistics.refresh_statistics)
    drain(rollups.roll_up)
    DirtyEvidence.objects.bulk_create(
        DirtyEvidence(job_id=1_000_000 + n, until=at("11:00") - timedelta(minutes=n))
        for n in range(30_000)
    )  # no such jobs

    evaluation.evaluate_round(100)

    assert DirtyEvidence.objects.count() > 29_000
    rules = set(Flag.objects.current().values_list("rule", flat=True))
    assert rules >= {"metadata-operations", "host-outside-jobs"}


def test_a_slice_includes_some_of_the_oldest_work(db):
    for job in range(1, 41):
        DirtyEvidence.objects.mark([job])

    claimed = [row.job_id for row in DirtyEvidence.objects.claim(8)]

    assert claimed == [1, 2, 35, 36, 37, 38, 39, 40]
    assert DirtyEvidence.objects.count() == 32
