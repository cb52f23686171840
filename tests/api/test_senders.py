"""Who may send a source: two agents, stolen tokens, clocks ahead, and discarded streams."""

import json
from datetime import timedelta
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F
from django.utils import timezone

from ioportal.ingest import batches
from ioportal.ingest.manifest import Manifest, Refusal
from ioportal.ingest.models import Segment, Sender, Stream
from ioportal.site.models import Server, Source, Target
from ioportal.telemetry.models import Coverage
from tests.batches import ARROW, STREAM, arrow, delta, traced, window
from tests.batches import batch as new_batch
from tests.logs import at

pytestmark = pytest.mark.usefixtures("sources")


def sent_by(number, host):
    return {
        "stream": str(UUID(int=100 + number)),
        "agent": {"host": host, "instance": str(UUID(int=number))},
    }


MDS1, COPY = sent_by(1, "mds1.example.org"), sent_by(2, "copy.example.org")
FIRST = traced(1, "12:00", "12:00:10", window("12:00:01"), **MDS1)
SECOND = traced(2, "12:00:10", "12:00:20", window("12:00:12"), **MDS1)
OF_COPY = traced(1, "13:00", "13:00:10", window("13:00:01"), **COPY)


@pytest.fixture
def pass_time():
    """Shift the stored times of agents into the past."""

    def shift(minutes):
        ago = timedelta(minutes=minutes)
        Segment.objects.update(loaded_at=F("loaded_at") - ago)
        Stream.objects.update(latest_at=F("latest_at") - ago)
        Sender.objects.update(rival_since=F("rival_since") - ago, rival_at=F("rival_at") - ago)

    return shift


@pytest.fixture
def health_row(client, sam):
    def read(source="mds1-trace"):
        client.force_login(sam)
        export = client.get("/ingest/health/?format=json")
        rows = json.loads(b"".join(export))["rows"]
        return next(row for row in rows if row["source"] == source)

    return read


def test_a_second_agent_waits_and_both_hosts_are_named(deliver, health_row, call, client):
    deliver(FIRST)

    status, answer = deliver(OF_COPY)

    assert (status, answer["code"]) == (423, "fenced")
    assert deliver(SECOND)[0] == 202
    for text in (answer["detail"], health_row()["troubles"]):
        assert "mds1.example.org" in text
        assert "copy.example.org" in text
    assert health_row()["refusals"] == 1
    metrics = client.get(
        "/api/v1/metrics",
        headers={"Authorization": f"Token {call('token', 'create', 'metrics')}"},
    ).content.decode()
    assert 'ioportal_source_refusals{format="rpctrace",source="mds1-trace"} 1.0' in metrics


def test_a_waiting_agent_takes_over_from_a_silent_one(deliver, pass_time):
    deliver(FIRST)
    assert deliver(OF_COPY)[0] == 423
    pass_time(3)
    assert deliver(OF_COPY)[0] == 423
    pass_time(3)

    assert deliver(OF_COPY)[0] == 202
    assert deliver(SECOND)[0] == 423


def test_an_agent_whose_batches_are_refused_is_not_silent(deliver, pass_time):
    deliver(FIRST)
    assert deliver(OF_COPY)[0] == 423
    pass_time(3)
    assert deliver(OF_COPY)[0] == 423
    assert deliver(new_batch(2, "job_deltas", [], **MDS1))[0] == 422
    pass_time(3)

    assert deliver(OF_COPY)[0] == 423


@pytest.mark.parametrize("waited", [False, True])
def test_after_an_outage_of_the_portal_the_agent_before_it_goes_on(deliver, pass_time, waited):
    deliver(FIRST)
    if waited:
        assert deliver(OF_COPY)[0] == 423
    pass_time(60)

    assert deliver(OF_COPY)[0] == 423
    assert deliver(SECOND)[0] == 202


def test_staff_let_a_waiting_agent_take_over(deliver, client, sam, call):
    deliver(FIRST)
    deliver(OF_COPY)
    client.force_login(sam)
    assert "copy.example.org" in client.get("/ingest/streams/").content.decode()

    def release(number):
        agent = str(UUID(int=number))
        posted = {"source": "mds1-trace", "agent": agent}
        return client.post("/ingest/streams/", posted, follow=True).content.decode()

    assert "This agent no longer waits" in release(3)
    assert "The agent on copy.example.org takes over" in release(2)
    third = sent_by(3, "third.example.org")
    assert deliver(traced(1, "14:00", "14:00:10", window("14:00:01"), **third))[0] == 423

    assert deliver(OF_COPY)[0] == 202
    assert deliver(SECOND)[0] == 423
    assert "The agent on mds1.example.org" in call("streams", "release", "mds1-trace")


def test_a_release_expires(deliver, call):
    deliver(FIRST)
    deliver(OF_COPY)
    call("streams", "release", "mds1-trace")
    Sender.objects.update(released_at=F("released_at") - timedelta(minutes=11))

    assert deliver(OF_COPY)[0] == 423


def test_an_agent_keeps_its_source_when_it_is_updated(deliver):
    old = MDS1 | {"agent": {"host": "mds1.example.org"}}

    assert deliver(traced(1, "12:00", "12:00:10", window("12:00:01"), **old))[0] == 202
    assert deliver(SECOND)[0] == 202
    assert deliver(OF_COPY)[0] == 423
    assert deliver(traced(3, "12:00:20", "12:00:30", **old))[0] == 202


THIEF = {"stream": str(UUID(int=200))}


@pytest.mark.parametrize("server", ["mds1", ""])
def test_a_target_moves_to_the_agent_of_another_server_after_silence(
    deliver, register, pass_time, server
):
    register('[[source]]\nname = "mds2-jobs"\nformat = "job_stats"\nserver = "mds2"')
    Target.objects.filter(name="lake-MDT0000").update(
        server=Server.objects.filter(name=server).first()
    )

    def polled(minute, source):
        start, end = f"12:{minute:02}", f"12:{minute + 1:02}"
        rows = [delta(start, end, "77", open=7)]
        stream = str(UUID(int=sum(source.encode())))
        covered = [("lake-MDT0000", start, end)]
        return deliver(new_batch(minute, "job_deltas", rows, covered, stream=stream), source)

    assert polled(1, "mds1-jobs")[0] == 202
    pass_time(4)
    status, answer = polled(2, "mds2-jobs")
    assert (status, answer["code"], answer["retry"]) == (422, "refused", True)
    assert "mds1-jobs delivers it" in answer["detail"]
    pass_time(4)
    assert polled(2, "mds2-jobs")[0] == 202

    # Back to mds1: immediately, if the target is registered there.
    assert polled(3, "mds1-jobs")[0] == (202 if server else 422)


@pytest.mark.parametrize("start", ["10:00", "12:00:05"])
def test_a_claim_without_rows_gives_way_to_rows(deliver, start, queries):
    assert deliver(traced(1, start, "36:00", **THIEF))[0] == 202

    assert deliver(traced(1, "12:00", "12:00:10", window("12:00:01", count=3)))[0] == 202
    assert queries(
        'SELECT sum("end" - start) = max("end") - min(start) FROM telemetry_coverage'
    ) == [(True,)]
    status, answer = deliver(traced(2, "12:00:30", "12:00:40"))
    assert (status, answer["code"], answer["retry"]) == (422, "refused", True)


def test_a_claim_returns_when_the_stream_that_took_it_is_discarded(deliver, queries):
    claim = 'SELECT min(start), max("end"), sum("end" - start) FROM telemetry_coverage'
    deliver(traced(1, "12:00", "12:01"))
    before = queries(claim)
    assert (
        deliver(traced(1, "12:00:20", "12:00:30", window("12:00:25", count=3), **THIEF))[0] == 202
    )

    _discard(THIEF)

    assert queries(claim) == before


THIRD = {"stream": str(UUID(int=500))}


def _discard(changes):
    call_command("streams", "discard", changes["stream"], yes=True, reason="stolen token")


@pytest.mark.parametrize(
    ("steps", "covered"),
    [
        ([THIRD], [("12:00", "12:00:30"), ("12:00:30", "12:01")]),
        ([THIEF], [("12:00", "12:00:30"), ("12:00:30", "12:01")]),
        ([THIEF, THIRD], [("12:00", "12:00:30"), ("12:00:30", "12:01")]),
        ([THIRD, THIEF], [("12:00", "12:01")]),
    ],
)
def test_discards_in_any_order_return_the_claims_of_remaining_streams(
    deliver, attribute, queries, steps, covered
):
    """A claim is taken by a stream, and a part of it by another one."""
    deliver(traced(1, "12:00", "12:01"))
    assert deliver(traced(1, "12:00", "12:01", window("12:00:05"), **THIEF))[0] == 202
    assert deliver(traced(1, "12:00:30", "12:01", window("12:00:35"), **THIRD))[0] == 202

    for stream in steps:
        _discard(stream)

    query = 'SELECT start, "end" FROM telemetry_coverage ORDER BY 1'
    assert queries(query) == [(at(start), at(end)) for start, end in covered]
    attribute()
    assert not Coverage.objects.exclude(segment_id__in=Segment.objects.values("pk")).exists()
    assert deliver(traced(2, "12:00:40", "12:00:50", window("12:00:45")))[0] == 202


def test_a_claim_of_a_discarded_stream_does_not_return(deliver, queries):
    deliver(traced(1, "12:00", "12:01", **THIEF))
    assert deliver(traced(1, "12:00", "12:01", window("12:00:05")))[0] == 202

    _discard(THIEF)
    _discard({"stream": str(STREAM)})

    assert queries("SELECT count(*) FROM telemetry_coverage") == [(0,)]


def test_a_batch_is_not_stored_after_its_stream_was_discarded(token, deliver, tmp_path, queries):
    """Staff discard the stream after the admission of a batch."""
    deliver(FIRST)
    source = Source.objects.get(name="mds1-trace")
    manifest, rows = SECOND
    path = tmp_path / "rows"
    path.write_bytes(arrow("rpc_windows", rows))

    class DiscardedMeanwhile(batches.Rows):
        def digest(self):
            _discard(MDS1)
            return super().digest()

    with pytest.raises(Refusal, match="Staff discarded the stream"):
        batches.receive(
            source,
            Manifest.model_validate(manifest),
            DiscardedMeanwhile(path, ARROW),
            timezone.now(),
        )

    assert queries("SELECT count(*) FROM telemetry_coverage") == [(0,)]


def test_a_claim_of_polls_without_rows_gives_way_to_rows(deliver):
    def polled(start, end, *rows, **changes):
        return new_batch(1, "job_deltas", rows, [("lake-MDT0000", start, end)], **changes)

    row = delta("12:00", "12:01", "77", open=7)
    assert deliver(polled("10:00", "36:00", **THIEF), "mds1-jobs")[0] == 202

    assert deliver(polled("12:00", "12:01", row), "mds1-jobs")[0] == 202
    again = polled("12:00", "12:01", row, stream=str(UUID(int=300)))
    assert deliver(again, "mds1-jobs")[1]["code"] == "refused"


@pytest.mark.parametrize(("lead", "status"), [({"minutes": 4}, 202), ({"hours": 2}, 425)])
def test_coverage_leads_the_clock_by_minutes_only(deliver, lead, status):
    now = timezone.now()
    manifest, rows = traced(1, "12:00", "12:01")
    manifest["coverage"] = [
        {"start": now.isoformat(), "end": (now + timedelta(**lead)).isoformat()}
    ]

    assert deliver((manifest, rows))[0] == status


def test_a_discarded_stream_leaves_nothing_and_releases_refused_batches(
    deliver, client, sam, attribution, queries, reconcile
):
    forged = traced(1, "12:00", "12:01", window("12:00:30", count=9), **THIEF)
    deliver(forged)
    attribution()
    right = traced(1, "12:00", "12:01", window("12:00:31", count=3))
    assert deliver(right)[0] == 422
    client.force_login(sam)
    page = f"/ingest/streams/{Stream.objects.get(stream=THIEF['stream']).pk}/"

    assert client.post(page, {"reason": "stolen token"}).status_code == 400  # not confirmed
    assert queries("SELECT count(*) FROM ingest_batch") == [(1,)]
    client.post(page, {"reason": "stolen token", "confirmed": "on"})

    assert deliver(right)[0] == 202
    assert sum(attribution().values()) == 3
    assert queries("SELECT sum(count)::int FROM telemetry_rpcwindow") == [(3,)]
    assert deliver(forged)[1]["code"] == "discarded"
    page = client.get("/ingest/streams/").content.decode()
    assert "by sam: stolen token" in page
    assert reconcile() == "1 segments reconcile."


@pytest.mark.parametrize(
    ("source", "batch", "left"),
    [
        (
            "mds1-jobs",
            new_batch(
                1, "job_deltas", [delta("12:00", "12:01", "cp.0", open=7)],
                [("lake-MDT0000", "12:00", "12:01")],
            ),
            "telemetry_iowindow",
        ),
        (
            "mds1-totals",
            new_batch(
                1, "target_deltas", [delta("12:00", "12:01", open=7)],
                [("lake-MDT0000", "12:00", "12:01")],
            ),
            "telemetry_targetdelta",
        ),
    ],
)  # fmt: skip
def test_differences_of_a_discarded_stream_are_deleted(
    deliver, attribute, queries, source, batch, left
):
    assert deliver(batch, source)[0] == 202
    attribute()
    stream = str(Stream.objects.get().stream)
    with pytest.raises(CommandError, match=r"Nothing was changed\. Add --yes"):
        call_command("streams", "discard", stream)

    call_command("streams", "discard", stream, yes=True, reason="a test")
    attribute()

    for table in (left, "ingest_segment", "telemetry_coverage"):
        assert queries(f"SELECT count(*) FROM {table}") == [(0,)]  # noqa: S608  (own names)
