"""RPCs with job ids that no job explains count for hosts that never run jobs."""

from datetime import timedelta

import pytest

from ioportal.findings import history
from ioportal.findings.flags import flag_texts
from ioportal.findings.models import Flag, ThresholdSet
from ioportal.findings.thresholds import apply_thresholds
from ioportal.site.models import Nid
from tests.logs import Run, at, rpc, sacct

pytestmark = pytest.mark.usefixtures("site")
UNKNOWN = "99999999"


@pytest.fixture
def send(logs, ingest):
    """Trace requests of n19 with a job id from 12:00 on, and two later requests."""

    def run(job=UNKNOWN, *, later, count=50):
        trace = [
            rpc(at("12:00") + timedelta(seconds=n), "19@gni", job=job, us=(30, 40))
            for n in range(count)
        ]
        trace += [
            rpc(at(later) + timedelta(seconds=n), "7@gni", job="", us=(30, 40)) for n in range(2)
        ]
        ingest("rpctrace", logs(f"trace-{later}", *trace), server="mds1")

    return run


@pytest.fixture(autouse=True)
def low_threshold(db):
    """Flag hosts from 40 RPCs on."""
    values = {"rpcs": 40, "capacity_share": 0}
    apply_thresholds(
        ThresholdSet(rule="host-outside-jobs", thresholds=values, reason="a test", set_by="root")
    )


def test_unknown_job_ids_count_for_their_host_after_some_minutes(send, evaluate, admin_user):
    send(later="12:14:30")

    [flag] = evaluate().values()

    nid = Nid.objects.get(text="19@gni")
    assert (flag.rule, flag.subject, flag.value) == ("host-outside-jobs", f"4:{nid.pk}", 50)
    assert flag.numbers["server_share"] == 1
    assert flag.until <= at("12:05")
    assert history.for_flag(flag).amounts["amount"].max() == 50
    [summary] = flag_texts.summaries(flag_texts.with_subjects(Flag.objects.all()), admin_user)
    assert summary.subject.text == "host n19, unknown job ids"


def test_a_record_may_arrive_some_minutes_late(send, logs, ingest, evaluate):
    send("77", later="12:09")
    assert evaluate() == {}
    ingest("sacct", logs("s", sacct(Run("77", end=None, nodes="n19"))), cluster="anvil")
    send("77", later="12:14:30", count=0)

    assert evaluate() == {}


def test_nodes_that_run_jobs_are_not_blamed_for_late_records(send, logs, ingest, evaluate):
    before = Run("70", "08:00", "09:00", nodes="n19", submit="07:00")
    ingest("sacct", logs("s", sacct(before)), cluster="anvil")
    send(later="12:14:30")

    assert evaluate() == {}


def test_forwarding_nodes_are_not_blamed_for_the_ids_of_others(send, evaluate, queries):
    send(later="12:14:30")
    queries("UPDATE site_node SET forwards = true WHERE name = 'n19' RETURNING id")

    assert evaluate() == {}
