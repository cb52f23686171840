"""Storage of accounting records: precedence is independent of the order of arrival."""

from dataclasses import replace
from itertools import permutations

import pytest

from ioportal.ingest.models import OwnerConflict
from ioportal.jobs.models import Allocation, DirtyStatistics, Job, Launch
from tests import contents
from tests.logs import Run, alps, at, finishing, pbs, sacct, starting

pytestmark = pytest.mark.usefixtures("module_site")

BY_PBS = Run("815", nodes="b1,b2", node_count=2, cores=32, cpu="10:00:00", user="bob")
BY_SLURM = Run("77", nodes="n[1-2]", node_count=2, cores=64, cpu="1-00:00:00", name="relax|2")


@pytest.fixture
def account(logs, ingest):
    """Load accounting files one by one."""

    def load(form, cluster, *texts):
        for number, text in enumerate(texts):
            ingest(form, logs(f"{form}-{number}", text), cluster=cluster)

    return load


@pytest.mark.parametrize("order", list(permutations("QSE")))
def test_records_of_a_pbs_job_may_arrive_in_any_order(account, order):
    account("pbs", "birch", *(pbs((kind, BY_PBS)) for kind in order))

    job = Job.objects.get()
    assert (job.batch_id, job.owner, job.project, job.queue, job.name) == (
        "815", "bob", "PHY12", "batch", "relax",
    )  # fmt: skip
    assert (job.submitted_at, job.started_at, job.ended_at) == (
        at("11:00"),
        at("12:00"),
        at("13:00"),
    )
    assert (job.state, job.exit_status, job.node_count, job.core_count) == ("completed", 0, 2, 32)
    assert job.cpu_s == 10 * 3_600
    assert sorted(allocation.node.name for allocation in Allocation.objects.all()) == ["b1", "b2"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_exports_of_a_slurm_job_may_arrive_in_any_order(account, order):
    pending = replace(BY_SLURM, start=None, end=None, nodes="None assigned", cpu="00:00:00")
    running = replace(BY_SLURM.running(), cpu="00:00:00")
    exports = [sacct(pending), sacct(running), sacct(BY_SLURM)]

    account("sacct", "anvil", *(exports[number] for number in order))

    job = Job.objects.get()
    assert (job.state, job.started_at, job.ended_at) == ("completed", at("12:00"), at("13:00"))
    assert (job.name, job.cpu_s, job.core_count, job.node_count) == ("relax|2", 86_400, 64, 2)
    assert sorted(allocation.node.name for allocation in Allocation.objects.all()) == ["n1", "n2"]


def test_a_pending_job_has_no_allocation(account):
    account("pbs", "birch", pbs(("Q", BY_PBS)))

    assert Job.objects.get().state == "pending"
    assert not Allocation.objects.exists()


def test_a_running_job_has_an_allocation(account):
    account("pbs", "birch", pbs(("S", BY_PBS)))

    job = Job.objects.get()
    assert (job.state, job.ended_at) == ("running", None)
    assert Allocation.objects.count() == 2


def test_jobs_with_the_same_id_differ_in_submit_time(account):
    again = replace(BY_SLURM, submit="20:00", start="21:00", end="22:00", user="carol")

    account("sacct", "anvil", sacct(BY_SLURM, again), sacct(again, BY_SLURM))

    assert [(job.owner, job.started_at) for job in Job.objects.order_by("started_at")] == [
        ("alice", at("12:00")),
        ("carol", at("21:00")),
    ]


def test_repeated_records_in_a_file_are_a_single_job(account):
    account("sacct", "anvil", sacct(BY_SLURM, BY_SLURM, BY_SLURM.running()))

    assert Job.objects.count() == 1
    assert Job.objects.get().records.count() == 3


def test_steps_are_launches_of_their_job(account):
    step = replace(BY_SLURM, batch_id="77.0", start="12:01", end="12:30", nodes="n2", node_count=1)

    account("sacct", "anvil", sacct(BY_SLURM, step))

    launch = Launch.objects.get()
    assert (launch.name, launch.job.batch_id, launch.nodes) == ("77.0", "77", "n2")
    assert (launch.started_at, launch.ended_at) == (at("12:01"), at("12:30"))
    # The nodes of the job record take precedence.
    assert Allocation.objects.count() == 2


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_launch_is_merged_from_its_start_and_end(account, order):
    files = [
        ("alps", alps(starting(9205593, "815", "12:01", "2-3", 2))),
        ("alps", alps(finishing(9205593, "815", "12:59"))),
        ("pbs", pbs(("E", BY_PBS))),
    ]
    for number in order:
        form, text = files[number]
        account(form, "birch", text + "\n" * number)

    launch = Launch.objects.get()
    assert (launch.started_at, launch.ended_at) == (at("12:01"), at("12:59"))
    assert (launch.node_count, launch.nodes) == (2, "nid[00002-00003]")
    assert (launch.exit_status, launch.exit_signal) == (0, 0)
    assert launch.job == Job.objects.get()


def test_a_job_whose_launch_moves_to_a_later_job_has_its_recorded_node_count(account):
    first = Run("815", nodes="b1", node_count=1)
    later = replace(first, submit="11:30", start="12:10")
    launch = starting(9205593, "815", "12:15", "2-3", 2)

    account("pbs", "birch", pbs(("E", first)))
    account("alps", "birch", alps(launch))
    assert Job.objects.get().node_count == 3
    account("pbs", "birch", pbs(("E", later)) + "\n")

    counts = Job.objects.order_by("submitted_at").values_list("node_count", flat=True)
    assert list(counts) == [1, 3]


def test_a_syslog_without_the_daylight_saving_change_is_corrected(account):
    ended_an_hour_early = finishing(9205593, "815", "11:30")

    account("alps", "birch", alps(starting(9205593, "815", "12:01", "2-3", 2), ended_an_hour_early))

    assert Launch.objects.get().ended_at == at("12:30")


def test_other_jobs_in_an_export_change_nothing(account):
    account("sacct", "anvil", sacct(BY_SLURM))
    before = contents.rows("jobs_job", "jobs_allocation")

    account("sacct", "anvil", "\n" + sacct(replace(BY_SLURM, batch_id="78", nodes="n9")))

    after = contents.rows("jobs_job", "jobs_allocation")
    assert set(before["jobs_job"]) < set(after["jobs_job"])
    assert set(before["jobs_allocation"]) < set(after["jobs_allocation"])


def test_a_job_in_the_repeated_hour_is_stored_once(account):
    """On 2017-11-05 at 02:00 clocks in New York went back; only line heads use local time."""
    head = "11/05/2017 01:30:00;{};77.sdb;user=a ctime=1509850000 start=1509859000 exec_host=b1/0"

    account("pbs", "birch", head.format("S"), head.format("E") + " end=1509863400 Exit_status=0")

    job = Job.objects.get()
    assert (job.ended_at - job.started_at).total_seconds() == 4_400


CORRECTED = replace(BY_SLURM, project="other", nodes="n[3-4]")


def facts():
    job = Job.objects.get()
    nodes = sorted(allocation.node.name for allocation in Allocation.objects.all())
    return job.owner, job.project, nodes


def test_the_later_record_of_equal_times_is_stored(account):
    account("sacct", "anvil", sacct(BY_SLURM), sacct(CORRECTED))

    assert facts() == ("alice", "other", ["n3", "n4"])


def test_repeated_facts_are_no_change(account):
    account("sacct", "anvil", sacct(BY_SLURM))
    DirtyStatistics.objects.all().delete()

    account("sacct", "anvil", sacct(BY_SLURM) + "\n")

    assert not DirtyStatistics.objects.exists()


def test_a_job_is_not_taken_over_by_a_record_of_another_owner(account):
    taken = replace(BY_SLURM, user="mallory", project="evil", end="14:00")

    account("sacct", "anvil", sacct(BY_SLURM), sacct(taken))

    assert facts() == ("alice", "PHY12", ["n1", "n2"])
    assert Job.objects.get().ended_at == at("14:00")
    conflict = OwnerConflict.objects.get()
    assert (conflict.job.owner, conflict.reported_owner) == ("alice", "mallory")
    assert conflict.segment.name.endswith("sacct-1")


def test_the_first_owner_in_a_file_stays(account):
    account("sacct", "anvil", sacct(BY_SLURM, replace(BY_SLURM, user="mallory")))

    assert facts()[0] == "alice"
    assert OwnerConflict.objects.get().reported_owner == "mallory"


def test_an_unknown_owner_does_not_replace_a_known_one(account):
    account("sacct", "anvil", sacct(replace(BY_SLURM, user="")), sacct(BY_SLURM))
    account("sacct", "anvil", "\n" + sacct(replace(BY_SLURM, user="", end="14:00")))

    assert facts()[0] == "alice"
    assert not OwnerConflict.objects.exists()


def test_a_correction_is_always_applied(logs, ingest):
    wrong = logs("wrong", sacct(replace(BY_SLURM, user="bob", end="14:00")))
    right = logs("right", sacct(CORRECTED))
    ingest("sacct", wrong, cluster="anvil")
    ingest("sacct", right, cluster="anvil")  # an earlier end, and another owner

    assert facts() == ("bob", "PHY12", ["n1", "n2"])
    ingest("sacct", right, "--replace", cluster="anvil")
    assert facts() == ("alice", "other", ["n3", "n4"])
    assert Job.objects.get().ended_at == at("13:00")
    assert not OwnerConflict.objects.exists()

    ingest("sacct", logs("again", sacct(replace(BY_SLURM, user="bob", end="14:00"), CORRECTED)),
           cluster="anvil")  # fmt: skip
    assert facts() == ("alice", "other", ["n3", "n4"])


def test_a_corrected_running_job_ends(logs, ingest):
    ingest("sacct", logs("first", sacct(replace(BY_SLURM.running(), user="bob"))), cluster="anvil")
    ingest("sacct", logs("right", sacct(BY_SLURM.running())), "--replace", cluster="anvil")
    ingest("sacct", logs("end", sacct(replace(BY_SLURM, user="bob"))), cluster="anvil")

    job = Job.objects.get()
    assert (job.owner, job.ended_at, job.state) == ("alice", at("13:00"), "completed")
