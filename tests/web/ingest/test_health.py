"""The health page."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import ProgrammingError, connection, transaction

from ioportal.ingest.models import Batch, DirtyTrace, Segment
from ioportal.jobs.models import DirtyEvidence
from ioportal.site.models import Source
from ioportal.telemetry.models import Coverage
from ioportal.telemetry.stage_runs import failures_recorded
from tests import conftest
from tests.logs import Run, rpc, sacct
from tests.web.reading import json_of, words_of

SITE = """
[[cluster]]
name = "birch"
time_zone = "UTC"
batch = "slurm"

[[filesystem]]
name = "lake"
clusters = ["birch"]

[[server]]
name = "mds1"
filesystem = "lake"

[[source]]
name = "mds1-trace"
format = "rpctrace"
server = "mds1"
poll_interval_s = 10

[[source]]
name = "birch-jobs"
format = "sacct"
cluster = "birch"
poll_interval_s = 600
"""


@pytest.fixture
def trace(register):
    """A source that sent a batch 20 seconds ago."""
    register(SITE)
    now = datetime.now(UTC)
    Source.objects.filter(name="birch-jobs").update(last_batch_at=now)
    trace = Source.objects.get(name="mds1-trace")
    trace.last_batch_at = now - timedelta(seconds=20)
    trace.save()
    return trace


@pytest.fixture
def sent(trace):
    """Record a batch sent some seconds ago, complete up to then."""

    def send(sequence, begun, ended, **facts):
        now = datetime.now(UTC)
        start, end = (now - timedelta(seconds=s) for s in (begun, ended))
        segment = Segment.objects.create(
            format=trace.format, digest=str(sequence), server=trace.server, start=start, end=end,
            **facts,
        )  # fmt: skip
        Segment.objects.filter(pk=segment.pk).update(loaded_at=end)
        Batch.objects.create(
            segment=segment, source=trace, first_sequence=sequence, sequence=sequence, stream=1,
            content="",
        )  # fmt: skip
        Coverage.objects.create(
            source=Coverage.Source.RPC_TRACE, source_id=trace.server_id, start=start, end=end,
            segment_id=segment.pk,
        )  # fmt: skip

    return send


def troubles(page):
    return {row["source"]: row["troubles"] for row in page["rows"]}


def test_sending_sources_are_healthy(as_staff, sent):
    sent(1, begun=300, ended=20)

    page = words_of(as_staff.get("/ingest/health/"))
    report = json_of(as_staff.get("/ingest/health/?format=json"))

    assert "All sources are sending. No backlog." in page
    assert report["is_well"]

    DirtyEvidence.objects.create(job_id=1)
    page = words_of(as_staff.get("/ingest/health/"))
    assert (
        "All sources are sending. No work is overdue. Pending: jobs for evaluation: 1, the oldest"
        in page
    )
    assert set(troubles(report).values()) == {""}


def test_gaps_between_batches_are_reported(as_staff, sent):
    sent(1, begun=7200, ended=3600)
    sent(2, begun=3000, ended=20)

    report = json_of(as_staff.get("/ingest/health/?format=json"))

    row = next(row for row in report["rows"] if row["source"] == "mds1-trace")
    assert row["gaps"] == 1
    assert row["gap_s"] == pytest.approx(600, abs=5)
    assert "not observed for 600 s" in row["troubles"] or "not observed for 599" in row["troubles"]


@pytest.mark.parametrize(
    ("facts", "trouble"),
    [
        pytest.param({"last_batch_at": None}, "has sent nothing yet", id="never"),
        pytest.param({"last_batch_at": -61}, "is silent", id="silent for six polls and a minute"),
        pytest.param({"last_batch_at": -59}, "", id="a minute is not long"),
        pytest.param(
            {"spool_batches": 90, "spool_oldest_at": -120}, "90 batches are waiting", id="behind"
        ),
        pytest.param({"clock_offset_s": 12.3}, "12 s ahead of the portal's", id="clock ahead"),
        pytest.param({"clock_offset_s": -400.0}, "400 s behind the portal's", id="clock behind"),
        pytest.param({"clock_offset_s": 4.0}, "", id="a clock may be some seconds off"),
    ],
)
def test_problems_of_sources_are_listed(as_staff, trace, facts, trouble):
    for name, value in facts.items():
        is_moment = name.endswith("_at") and value is not None
        moment = datetime.now(UTC) + timedelta(seconds=value) if is_moment else value
        setattr(trace, name, moment)
    trace.save()

    report = json_of(as_staff.get("/ingest/health/?format=json"))

    assert trouble in troubles(report)["mds1-trace"]
    assert bool(troubles(report)["mds1-trace"]) == bool(trouble)
    assert troubles(report)["birch-jobs"] == ""


def test_a_backlog_is_reported(as_staff, trace):
    DirtyTrace.objects.create(
        server=trace.server,
        start=datetime.now(UTC),
        end=datetime.now(UTC),
        created_at=datetime.now(UTC) - timedelta(minutes=2),
    )

    page = words_of(as_staff.get("/ingest/health/"))

    assert "Backlog of traces for attribution: 1, the oldest since" in page
    assert "check that worker and beat are running" in page


def test_a_backlog_counts_each_job_once(as_staff):
    for _ in range(3):
        DirtyEvidence.objects.create(job_id=7, created_at=datetime.now(UTC) - timedelta(minutes=3))

    assert "Backlog of jobs for evaluation: 1, the oldest since" in words_of(
        as_staff.get("/ingest/health/")
    )


def test_a_failing_stage_is_shown_with_its_error_and_remedy(as_staff, sent):
    sent(1, begun=300, ended=20)
    for _ in range(2):
        with (
            pytest.raises(ProgrammingError),
            failures_recorded("attribution"),
            transaction.atomic(),
        ):
            connection.cursor().execute("SELECT share FROM telemetry_attributedrpc")

    page = words_of(as_staff.get("/ingest/health/"))
    export = json_of(as_staff.get("/ingest/health/?format=json"))

    assert 'column "share" does not exist' in page
    assert "Run “manage.py migrate” and restart the workers." in page
    assert "All sources are sending" not in page
    assert not export["is_well"]
    [failure] = export["failing_stages"]
    assert (failure["stage"], failure["runs"]) == ("attribution", 2)
    assert failure["since"] < failure["failed_at"]


def test_a_full_disk_of_the_database_is_shown(as_staff, trace, full_disk):
    page = words_of(as_staff.get("/ingest/health/"))
    export = json_of(as_staff.get("/ingest/health/?format=json"))

    assert "Agents must wait: The database's disk has" in page
    assert export["database_free_bytes"] > 0
    assert not export["is_well"]


def test_home_lists_silent_sources(as_staff, trace, new_job):
    new_job()
    Source.objects.filter(pk=trace.pk).update(last_batch_at=datetime.now(UTC) - timedelta(days=1))

    assert "mds1-trace is silent" in words_of(as_staff.get("/"))


def test_conflicting_owners_are_shown_with_their_input(as_staff, sent, logs, ingest):
    sent(1, begun=300, ended=20)
    run = Run("77", cluster="birch")
    for name, user in (("first", "alice"), ("second", "mallory")):
        text = sacct(replace(run, user=user))
        ingest("sacct", logs(name, text), cluster="birch")

    page = words_of(as_staff.get("/ingest/health/"))
    report = json_of(as_staff.get("/ingest/health/?format=json"))

    assert "1 record contradicts a stored job." in page
    assert "77 birch alice mallory owner" in page
    assert "--replace" in page
    assert not report["is_well"]
    conflict = report["owner_conflicts"][0]
    assert (conflict["owner"], conflict["reported_owner"]) == ("alice", "mallory")


def test_an_empty_page_explains_how_to_add_sources(as_staff, django_assert_num_queries):
    as_staff.get("/ingest/health/")
    with django_assert_num_queries(30):
        page = words_of(as_staff.get("/ingest/health/"))

    assert "manage.py token create ingest" in page


def test_the_evidence_for_job_ids_is_shown(as_staff, register, logs, ingest):
    register(conftest.SITE)
    now = datetime.now(UTC)
    run = Run("77", now - timedelta(hours=1), None, submit=now - timedelta(hours=1), nodes="n1")
    ingest("sacct", logs("s", sacct(run)), cluster="anvil")
    senders = ["1@gni"] * 5 + ["10.9.9.9@tcp"] * 3 + ["2@gni"] * 2
    lines = (rpc(now - timedelta(minutes=5), nid, job="77", xid=n) for n, nid in enumerate(senders))
    ingest("rpctrace", logs("t", "\n".join(lines)), server="mds1")

    words = words_of(as_staff.get("/ingest/health/"))

    assert "RPC traces, last hour 10 50.0 0.0 30.0 20.0" in words
