"""Job ids of other jobs count for the job whose nodes send them, otherwise for their host."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from ioportal.findings import history
from ioportal.findings.evidence import load_evidence
from ioportal.findings.flags.flag_texts import worst_by_principal
from ioportal.findings.models import BackTest, Case, Flag, ThresholdSet
from ioportal.findings.thresholds import apply_thresholds
from ioportal.jobs.models import Job
from ioportal.rules import CONTRADICTED_JOB_IDS
from ioportal.site.models import Filesystem, Nid
from ioportal.telemetry.models import Principal
from ioportal.web.rules.back_tests import affected_subjects
from tests.logs import Run, at, rpc, sacct
from tests.web.reading import words_of

pytestmark = pytest.mark.usefixtures("site")
VICTIM = Run("77", nodes="n1", user="alice")
SENDER = Run("78", nodes="n[2-5]", user="mallory")
SHARED = (Run("79", nodes="n9", user="bob"), Run("80", nodes="n9", user="carol"))
RULE = CONTRADICTED_JOB_IDS.code


@pytest.fixture
def jobs(logs, ingest):
    """Ingest jobs of anvil."""
    return lambda *runs: ingest("sacct", logs(f"s{hash(runs)}", sacct(*runs)), cluster="anvil")


@pytest.fixture
def send(logs, ingest):
    """Trace requests of some nodes with the victim's job id from 12:00 on, and two later ones."""

    def run(nodes, count, *, later):
        trace = [
            rpc(at("12:00") + timedelta(seconds=n), f"{node}@gni", job="77", us=(30, 40))
            for node in nodes
            for n in range(count)
        ]
        trace += [
            rpc(at(later) + timedelta(seconds=n), "7@gni", job="", us=(30, 40)) for n in range(2)
        ]
        ingest("rpctrace", logs(f"trace-{later}", *trace), server="mds1")

    return run


@pytest.fixture(autouse=True)
def low_threshold(db):
    """Flag jobs and hosts from 20 RPCs on."""
    apply_thresholds(
        ThresholdSet(
            rule=RULE, thresholds={"contradicted_rpcs": 20}, reason="a test", set_by="root"
        )
    )


def test_the_nodes_of_a_job_are_one_case_for_staff_alone(
    jobs, send, evaluate, as_staff, sam, as_alice, alice
):
    jobs(VICTIM)
    send([2, 3, 4, 5], 12, later="12:09")
    assert evaluate() == {}  # the record of the job is on its way
    jobs(SENDER)
    send([], 0, later="12:14:50")

    [flag] = evaluate().values()

    job = Job.objects.get(batch_id="78")
    assert (flag.rule, flag.subject, flag.owner, flag.job) == (RULE, f"1:{job.pk}", "", None)
    assert flag.numbers == {"contradicted_rpcs": 48, "hosts": 4}
    assert history.for_flag(flag).amounts["amount"].max() == 48
    assert list(evaluate().values()) == [flag]
    assert [event.kind for event in flag.events.all()] == ["opened"]
    case = Case.objects.get()
    assert case.owner == ""
    for address in (f"/cases/{case.pk}/", f"/flags/{flag.pk}/"):
        words = words_of(as_staff.get(address))
        assert "job 78 mallory" in words
        assert "hosts: 4)" in words
    assert worst_by_principal([(Principal.JOB, job.pk)], sam) == {(Principal.JOB, job.pk): flag}
    assert as_alice.get(f"/cases/{case.pk}/").status_code == 404
    for user in (alice, User.objects.create_user("mallory")):
        assert not Flag.objects.visible_to(user).exists()
        assert not Case.objects.visible_to(user).exists()


def test_hosts_without_exactly_one_job_are_cases_of_their_own(jobs, send, evaluate, queries):
    jobs(VICTIM, *SHARED)
    queries("UPDATE site_node SET forwards = true WHERE name = 'n12' RETURNING id")
    send([9, 10, 11, 12], 25, later="12:14:50")

    flags = evaluate().values()

    keys = {f"7:{nid.pk}" for nid in Nid.objects.filter(text__in=["9@gni", "10@gni", "11@gni"])}
    assert {flag.case.subject for flag in flags if flag.rule == RULE} == keys
    assert {flag.numbers["hosts"] for flag in flags if flag.rule == RULE} == {1}


def test_a_back_test_names_the_jobs_and_hosts(jobs, send):
    jobs(VICTIM, SENDER)
    send([2, 3, 10], 12, later="12:14:50")

    filesystem = Filesystem.objects.get(name="lake").pk
    frame = load_evidence.for_hosts_between(filesystem, at("12:00"), at("12:15")).frame
    found = frame.drop_nulls("contradicted_rpcs").rows_by_key("subject", named=True, unique=True)

    rows = [
        {
            "subject": subject,
            "owner": "",
            "value": row["contradicted_rpcs"],
            "current": True,
            "proposed": True,
            "until": row["until"].isoformat(),
        }
        for subject, row in found.items()
    ]
    named = affected_subjects(CONTRADICTED_JOB_IDS, BackTest(subjects=rows))
    assert {row.name: row.value for row in named} == {"job 78 relax": 24, "host n10": 12}
