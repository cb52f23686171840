"""Old batches of a stream and day become one segment, and nothing that they count changes."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError

from ioportal.ingest import stream_discards
from ioportal.ingest.models import Batch, Segment, SegmentPart, Stream
from ioportal.jobs.models import Job
from ioportal.load import retention_run
from ioportal.telemetry.models import IoWindow
from tests.batches import batch, delta, job_row, traced, window
from tests.logs import Run

pytestmark = pytest.mark.usefixtures("sources")

UNREADABLE = {
    "account": {"lines": 3, "accepted": 1, "rejected": 2, "irrelevant": 0},
    "rejects": [{"line": 2, "text": "Handled RPC", "reason": "no time"}],
    "rejected_by_reason": {"no time": 2},
}
TRACED = [
    traced(1, "12:00", "12:00:10", window("12:00:01", count=3)),
    traced(2, "12:00:10", "12:00:20", window("12:00:12", job="77"), window("12:00:19")),
    traced(3, "12:00:20", "12:00:29", window("12:00:21"), **UNREADABLE),
    traced(5, "12:00:40", "12:00:49", window("12:00:41", "9@gni"), **UNREADABLE),
]
COUNTED = [
    batch(n, "job_deltas", [delta(start, end, "77", open=n)], [("lake-MDT0000", start, end)])
    for n, start, end in (
        (1, "12:00", "12:01"),
        (2, "12:01", "12:02"),
        (3, "12:02", "12:03"),
        (4, "12:03", "12:04"),
    )
]
RPCS = """
SELECT start, kind, nid_id, source_job_id, count FROM telemetry_attributedrpc ORDER BY 1, 2, 3, 4
"""
OPERATIONS = 'SELECT start, "end", kind, open FROM telemetry_iowindow ORDER BY 1'


@pytest.fixture(autouse=True)
def _retention_periods(settings):
    settings.RAW_RETENTION = settings.BATCHES_RETENTION = timedelta(days=2)
    settings.POLLS_RETENTION = timedelta(days=30)


@pytest.fixture
def after():
    """Run retention as of a number of days from now."""
    return lambda days: retention_run.retain(datetime.now(UTC) + timedelta(days=days))


@pytest.fixture
def delivered(deliver, attribute):
    """Deliver batches on one day, the last one on the next day, and attribute them."""

    def send(batches, source):
        for each in batches:
            Segment.objects.update(loaded_at=datetime.now(UTC) - timedelta(days=1))
            assert deliver(each, source) == (202, {"already": False})
        attribute()

    return send


def accounts():
    names = ("name", "lines", "accepted", "rejected", "records", "operations", "rejected_by_reason")
    return list(Segment.objects.order_by("pk").values_list(*names))


def test_batches_without_a_gap_become_one_segment(delivered, after, queries, reconcile):
    delivered(TRACED, "mds1-trace")
    rpcs = queries(RPCS)

    after(days=1)
    assert Segment.objects.count() == 4

    after(days=4)

    reasons = {"no time": 2}
    assert accounts() == [
        ("mds1-trace batches 1 to 3", 8, 6, 2, 4, 6, reasons),
        ("mds1-trace batch 5", 3, 1, 2, 1, 1, reasons),
    ]
    assert [segment.rejects.count() for segment in Segment.objects.order_by("pk")] == [1, 1]
    assert queries(RPCS) == rpcs
    assert "2 segments reconcile." in reconcile()


def test_a_joined_batch_is_not_stored_again_but_a_missing_one_is(delivered, after, deliver):
    delivered(TRACED, "mds1-trace")
    after(days=4)

    for again in TRACED:
        assert deliver(again) == (202, {"already": True})
    missing = traced(4, "12:00:30", "12:00:39", window("12:00:31"))
    assert deliver(missing) == (202, {"already": False})

    assert list(Batch.objects.order_by("sequence").values_list("first_sequence", "sequence")) == [
        (1, 3), (4, 4), (5, 5),
    ]  # fmt: skip


def test_differences_are_joined_when_no_window_is_derived_from_them(
    delivered, after, queries, reconcile, capsys
):
    delivered(COUNTED, "mds1-jobs")
    operations = queries(OPERATIONS)
    assert [opens for *_, opens in operations] == [1, 2, 3, 4]

    after(days=20)

    assert accounts() == [
        ("mds1-jobs batches 1 to 3", 3, 3, 0, 3, 6, {}),
        ("mds1-jobs batch 4", 1, 1, 0, 1, 4, {}),
    ]
    assert queries(OPERATIONS) == operations
    assert SegmentPart.objects.count() == 2
    assert "2 segments reconcile." in reconcile()
    IoWindow.objects.filter(open=2).update(open=3)
    with pytest.raises(CommandError):
        reconcile()
    assert "6 operations expected, 7 attributed" in capsys.readouterr().err


def test_a_job_keeps_one_record_of_a_day(delivered, after, reconcile):
    listed = [
        batch(n, "jobs", [job_row(line, Run(job).running()) for line, job in enumerate(jobs, 1)])
        for n, jobs in enumerate((["77"], ["77", "78"], ["77", "78"], ["78"]), start=1)
    ]
    delivered(listed, "anvil-queue")

    after(days=4)

    assert [(name, lines, rows) for name, lines, _, _, rows, *_ in accounts()] == [
        ("anvil-queue batches 1 to 3", 5, 2),
        ("anvil-queue batch 4", 1, 1),
    ]
    assert [job.records.count() for job in Job.objects.order_by("batch_id")] == [1, 2]
    assert "2 segments reconcile." in reconcile()


def test_keys_are_forgotten_with_the_rows_that_name_them(delivered, after):
    delivered(COUNTED, "mds1-jobs")

    after(days=60)
    after(days=60)

    assert not IoWindow.objects.exists()
    assert not SegmentPart.objects.exists()
    assert [name for name, *_ in accounts()] == ["mds1-jobs batches 1 to 3", "mds1-jobs batch 4"]


def test_joined_batches_are_discarded_with_their_stream(delivered, after):
    delivered(COUNTED, "mds1-jobs")
    after(days=20)

    stream_discards.discard(Stream.objects.get(), "sam", "wrong clock")
    while stream_discards.delete_next(10):
        pass

    assert not IoWindow.objects.exists()
    assert not Segment.objects.exists()
    assert not SegmentPart.objects.exists()
