"""Flags follow the owner and the name of their job to other cases."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from ioportal.findings import evaluation
from ioportal.findings.cases import triage
from ioportal.findings.models import Case, CaseEvent, Flag, ThresholdSet
from ioportal.findings.thresholds import apply_thresholds
from ioportal.jobs.models import DirtyEvidence
from ioportal.telemetry.stage_runs import drain
from tests.logs import Run, at, job_stats, sacct, squeue

RULE = "metadata-operations"
HOUR = timedelta(hours=1)
pytestmark = pytest.mark.usefixtures("module_site")


@pytest.fixture
def change():
    """Change facts of jobs and evaluate them."""

    def run(*jobs, **facts):
        for job in jobs:
            for name, value in facts.items():
                setattr(job, name, value)
            job.save()
        DirtyEvidence.objects.mark(job.pk for job in jobs)
        drain(evaluation.evaluate_pending)

    return run


def cases():
    """Return the flagged jobs by owner and application of their case."""
    return {
        (case.subject, case.owner, case.application): {
            flag.job.batch_id for flag in case.flags.select_related("job")
        }
        for case in Case.objects.filter(rule=RULE)
    }


def history(case):
    return list(case.events.values_list("kind", flat=True))


def test_late_accounting_moves_the_flag_to_its_owners_case(logs, ingest, evaluate):
    run = Run("77", end=None, user="", project="")
    ingest("squeue", logs("q", squeue(run)), cluster="anvil")
    for clock, count in (("11:59", 0), ("12:09", 3_000_000), ("12:19", 3_000_001)):
        text = job_stats("lake-MDT0000", {"77": {"getattr": count + 1}}, snapshot=clock)
        ingest("job_stats", logs(clock, text), at=at(clock).isoformat())
    flag = evaluate()[RULE, "77"]
    assert (flag.owner, flag.case.owner) == ("", "")

    ingest("sacct", logs("s", sacct(Run("77", user="alice"))), cluster="anvil")
    evaluate()

    flag.refresh_from_db()
    assert (flag.owner, flag.case.owner, flag.case.subject) == ("alice", "alice", "alice")
    assert flag.events.filter(kind="opened").count() == 1


def test_a_case_that_moves_as_a_whole_keeps_its_address_and_triage(flag_job, change, sam):
    jobs = [flag_job("1", owner=""), flag_job("2", owner="")]
    case = Case.objects.get(rule=RULE)
    triage.acknowledge([case.pk], sam, "Looking for the user.")
    triage.assign([case.pk], sam, sam)

    change(*jobs, owner="alice")

    assert cases() == {("alice", "alice", "relax"): {"1", "2"}}
    case.refresh_from_db()
    assert (case.state, case.assignee) == ("acknowledged", sam)
    assert history(case) == ["opened", "acknowledged", "assigned", "moved"]


def test_an_emptied_case_joins_the_existing_one_with_its_comments(flag_job, change, sam):
    flag_job("1")
    late = flag_job("2", owner="", operations=6e7)
    unknown, of_alice = Case.objects.filter(rule=RULE).order_by("owner")
    triage.comment([unknown.pk], sam, "Who is this?")
    triage.assign([unknown.pk], sam, sam)

    change(late, owner="alice")

    assert cases() == {("alice", "alice", "relax"): {"1", "2"}}
    of_alice.refresh_from_db()
    assert (of_alice.severity, of_alice.assignee) == (Flag.Severity.ABUSE, sam)
    assert history(of_alice) == ["opened", "commented", "assigned", "moved", "escalated"]


def test_a_part_of_a_case_keeps_its_triage(flag_job, change, sam):
    jobs = [flag_job(str(n), owner="") for n in range(3)]
    triage.mute([Case.objects.get(rule=RULE).pk], sam, timezone.now() + HOUR)

    change(jobs[0], owner="alice")
    change(jobs[1], owner="bob")

    assert cases() == {
        ("", "", "relax"): {"2"},
        ("alice", "alice", "relax"): {"0"},
        ("bob", "bob", "relax"): {"1"},
    }
    assert set(Case.objects.values_list("state", flat=True)) == {"muted"}
    change(jobs[2], owner="alice")
    assert set(cases()) == {("alice", "alice", "relax"), ("bob", "bob", "relax")}


def test_jobs_of_an_unknown_user_join_the_cases_of_several_users_at_once(flag_job, change):
    jobs = {owner: flag_job(owner, owner="") for owner in ("alice", "bob")}
    for owner, job in jobs.items():
        job.owner = owner
        job.save()

    change(*jobs.values())

    assert cases() == {("alice", "alice", "relax"): {"alice"}, ("bob", "bob", "relax"): {"bob"}}


def test_ended_flags_move_too(flag_job, change):
    job = flag_job("1", owner="")
    apply_thresholds(
        ThresholdSet(
            rule=RULE, thresholds={"metadata_operations": 1e9}, reason="a test", set_by="sam"
        )
    )
    drain(evaluation.evaluate_pending)

    change(job, owner="alice", name="plot_7")

    [case] = Case.objects.filter(rule=RULE)
    assert (case.owner, case.application, case.state) == ("alice", "plot", "resolved")


def test_other_users_do_not_see_that_flags_moved(flag_job, change, client):
    alice = User.objects.create_user("alice")
    change(flag_job("1", owner=""), owner="alice")

    case = Case.objects.get(rule=RULE)
    client.force_login(alice)
    facts = client.get(f"/cases/{case.pk}/?format=json").json()
    assert [event["kind"] for event in facts["events"]] == ["opened"]
    assert CaseEvent.objects.filter(case=case, kind="moved").exists()


def test_an_unchanged_job_moves_nothing(flag_job, change):
    job = flag_job("1")
    change(job, name="relax_2")

    assert history(Case.objects.get(rule=RULE)) == ["opened"]
