"""A job id or process name that any user can send accuses only the host that sent it."""

import pytest
from django.contrib.auth.models import User
from django.db.models import Sum

from ioportal.core.time_ranges import TimeRange
from ioportal.findings.models import Case, Flag, ThresholdSet
from ioportal.findings.thresholds import apply_thresholds
from ioportal.jobs.models import Job
from ioportal.load.impact import impact_totals
from ioportal.site.models import Filesystem, Nid, Node, SourceJobId, Target, UserAccount
from ioportal.telemetry.models import (
    AttributedRpc,
    AttributedSecond,
    HostWindow,
    IoWindow,
    Principal,
)
from tests import storms
from tests.findings.conftest import MDT
from tests.logs import GETATTR, Run, at, job_stats, rpc, sacct

WITH_UIDS = """
[[filesystem]]
name = "lake"
clusters = ["anvil", "birch"]
job_id_pattern = '(?P<batch_id>[0-9]+):(?P<uid>[0-9]+)'
[[user]]
name = "alice"
uid = 1001
"""
STORM = TimeRange(at("12:00"), at("12:10"))
OTHERS = (Run("78", nodes="n2", user="bob"), Run("79", nodes="n5", user="carol"))


@pytest.mark.parametrize(
    ("nodes", "user", "job_id", "is_accused"),
    [
        ("n[3-4]", "mallory", "77", False),
        ("n[3-4]", "mallory", "77:1001", True),
        ("n[3-4]", "alice", "77", True),
        ("n4", "mallory", "77", True),
        ("n6", "mallory", "77", True),
    ],
    ids=["shared nodes", "with user id", "own nodes", "one shared node", "nodes of others"],
)
def test_a_storm_from_nodes_of_several_owners_accuses_no_job_by_its_id(
    site, register, logs, ingest, evaluate, nodes, user, job_id, is_accused
):
    if ":" in job_id:
        register(WITH_UIDS)
    runs = (Run("77", nodes="n[3-4]"), Run("80", nodes=nodes, user=user), *OTHERS)
    ingest("sacct", logs("s", sacct(*runs)), cluster="anvil")
    trace = [line.replace(":77 ", f":{job_id} ") for _, line in storms.overload()]
    ingest("rpctrace", logs("t", *trace), server="mds1")
    storms.pin_baseline()

    accused = {key for key, flag in evaluate().items() if flag.severity > Flag.Severity.NOTICE}

    assert accused == ({("impact", "77")} if is_accused else set())
    assert Case.objects.to_triage().exists() == is_accused
    shown, *_ = impact_totals.rows_in_range(STORM, User(is_staff=True))
    assert shown.name.user == ("alice" if is_accused else "")


@pytest.mark.parametrize(
    ("job", "other", "job_id", "accused"),
    [
        (("12:06:35", "13:00"), ("11:00", "12:06:30"), "77", {("impact", "80")}),
        (("12:02:35", "13:00"), ("11:00", "12:02:30"), "77", set()),
        (("11:00", "12:01:50"), ("12:01:55", "13:00"), "77", set()),
        (("12:01:35", "13:00"), ("11:00", "12:01:30"), "", set()),
        (("12:01:35", "13:00"), ("11:00", "12:01:30"), "x", set()),
    ],
    ids=["before", "just before", "just after", "left over", "left over by a process"],
)
def test_a_storm_from_a_node_accuses_no_job_before_or_after_it(
    site, logs, ingest, evaluate, job, other, job_id, accused
):
    runs = (Run("77", *job, nodes="n[3-4]"), Run("80", *other, nodes="n[3-4]", user="mallory"))
    ingest("sacct", logs("s", sacct(*runs, *OTHERS)), cluster="anvil")
    own = rpc("12:01:45", "3@gni", GETATTR, job="77")
    trace = [line.replace(":77 ", f":{job_id} ") for _, line in storms.overload()]
    ingest("rpctrace", logs("t", own, *trace), server="mds1")
    storms.pin_baseline()

    flags = evaluate().items()

    assert {key for key, flag in flags if flag.severity > Flag.Severity.NOTICE} == accused


@pytest.mark.parametrize(
    ("sent", "is_accused"),
    [
        (None, True),
        (rpc("11:59:40", "3@gni", GETATTR, job="80"), False),
        (rpc("12:01:45", "3@gni", GETATTR, job="77"), False),
        (rpc("12:01:45", "6@gni", GETATTR, job="77"), True),
    ],
    ids=["no ids", "id of the job before", "own id", "own id from another node"],
)
def test_a_storm_without_ids_is_of_the_job_on_its_nodes_unless_they_send_ids(
    site, logs, ingest, evaluate, sent, is_accused
):
    runs = (
        Run("77", "12:01:35", "13:00", nodes="n[3-4]"),
        Run("80", "11:00", "12:01:30", nodes="n[3-4]", user="mallory"),
    )
    ingest("sacct", logs("s", sacct(*runs, *OTHERS)), cluster="anvil")
    named = job_stats(MDT, {"77": {"open": 1}}, snapshot="12:01:50")
    ingest("job_stats", logs("c", named), at=at("12:02").isoformat())
    trace = [line.replace(":77 ", ": ") for _, line in storms.overload()]
    ingest("rpctrace", logs("t", *[sent] * bool(sent), *trace), server="mds1")
    storms.pin_baseline()

    accused = {key for key, flag in evaluate().items() if flag.severity > Flag.Severity.NOTICE}

    assert (("impact", "77") in accused) == is_accused
    assert accused <= {("impact", "77")}


@pytest.mark.parametrize("place", ["forwarding node", "unregistered NID"])
def test_a_storm_from_a_node_that_proves_nothing_accuses_no_job_by_its_id(
    site, logs, ingest, evaluate, place
):
    Node.objects.filter(name="n6").update(forwards=True)
    ingest("sacct", logs("s", sacct(Run("77", nodes="n[3-4]"), *OTHERS)), cluster="anvil")
    nid = {"forwarding node": "6@gni", "unregistered NID": "10.1.2.3@o2ib"}[place]
    trace = [
        line.replace("-3@gni", f"-{nid}").replace("-4@gni", f"-{nid}")
        for _, line in storms.overload()
    ]
    ingest("rpctrace", logs("t", *trace), server="mds1")
    storms.pin_baseline()

    accused = {key for key, flag in evaluate().items() if flag.severity > Flag.Severity.NOTICE}

    assert accused == set()
    assert not Case.objects.to_triage().exists()
    shown, *_ = impact_totals.rows_in_range(STORM, User(is_staff=True))
    assert "77" in shown.name.text
    assert not shown.name.user


@pytest.mark.parametrize(
    ("source", "sent", "is_accused"),
    [("77:1001", 1_000, False), ("77", 1_000, True), ("", 3_000_000, True)],
    ids=["user id of another source", "user id", "sent by its own node"],
)
def test_a_user_id_and_a_node_prove_the_operations_that_they_count(
    site, jobs, read, evaluate, source, sent, is_accused
):
    UserAccount.objects.create(name="alice", uid=1001)
    jobs(Run("77", nodes="n[1-2]", end=None), Run("80", nodes="n1", user="mallory"))
    read("11:59", None)
    read("12:19", 3_000_000)
    of_job = {"filesystem": Filesystem.objects.get(name="lake"), "batch_id": "77"}
    SourceJobId.objects.create(text="77:1001", **of_job)
    SourceJobId.objects.filter(text=source).update(uid=1001)
    HostWindow.objects.create(
        start=at("11:59"), end=at("12:19"), segment_id=1, nid_id=0, kind=Principal.JOB,
        target_id=Target.objects.get(name=MDT).pk, job_id=Job.objects.get(batch_id="77").pk,
        basis=IoWindow.Basis.DIFFERENCE, metadata_operations=sent,
    )  # fmt: skip

    flag = evaluate()["metadata-operations", "77"]

    assert (flag.severity > Flag.Severity.NOTICE) == is_accused


@pytest.mark.parametrize(
    ("name", "accused_key"),
    [
        ("x{request}", "3:{nid}"),
        ("x{second}", "3:{nid}"),
        ("x{second}.1001", "2:-1002"),
        ("x{request}.1001", "2:-1002"),
    ],
    ids=["by request", "by second", "with user id", "with user id by request"],
)
def test_a_host_or_user_id_whose_processes_invent_names_is_accused(
    site, logs, ingest, evaluate, name, accused_key
):
    values = {"rpcs": 100, "capacity_share": 0}
    apply_thresholds(
        ThresholdSet(rule="host-outside-jobs", thresholds=values, reason="a test", set_by="root")
    )
    ingest("sacct", logs("s", sacct(*OTHERS)), cluster="anvil")
    trace = [
        line.replace("-3@gni", "-4@gni")
        .replace("-4@gni", "-9@gni")
        .replace(":77 ", f":{name.format(request=number, second=moment.second)} ")
        for number, (moment, line) in enumerate(storms.overload())
    ]
    ingest("rpctrace", logs("t", *trace), server="mds1")
    storms.pin_baseline()

    accused = {key for key, flag in evaluate().items() if flag.severity > Flag.Severity.NOTICE}

    nid = Nid.objects.get(text="9@gni").pk
    assert accused == {("host-outside-jobs", accused_key.format(nid=nid))}
    windows = AttributedSecond.objects.order_by().values("start").distinct().count()
    senders = AttributedSecond.objects.order_by().values("kind", "principal_id").distinct()
    assert senders.count() <= 21 * windows
    attributed = AttributedRpc.objects.filter(nid_id=nid)
    assert attributed.count() <= 21 * windows
    assert attributed.aggregate(rpcs=Sum("count")) == {"rpcs": 2000}
