"""Registration recomputes affected data once, and never delays live data."""

import pytest

from ioportal.ingest import backpressure
from ioportal.ingest.models import DirtyDeltas, DirtyTrace
from tests.api.conftest import SOURCES, deliver, token
from tests.batches import batch, delta, traced, window
from tests.conftest import SITE
from tests.logs import at

__all__ = ["deliver", "token"]

NID = """
[[cluster]]
name = "anvil"
nid = [{nid = "10.9.9.9@tcp", node = "n7"}]
"""


@pytest.fixture
def sources(register):
    register(SITE + SOURCES)


@pytest.fixture
def derived(deliver, attribute):
    """Deliver windows of two NIDs in two hours, and polls; attribute them."""
    rows = [window("12:00:01", "10.9.9.9@tcp"), window("12:00:02", "1@gni")]
    deliver(traced(1, "12:00", "12:00:10", *rows))
    deliver(traced(2, "14:00", "14:00:10", window("14:00:01", "1@gni")))
    for minute in range(3):
        start, end = f"12:0{minute}", f"12:0{minute + 1}"
        row = delta(start, end, "77", open=7)
        polled = batch(minute + 1, "job_deltas", [row], [("lake-MDT0000", start, end)])
        deliver(polled, "mds1-jobs")
    attribute()


def pending():
    traces = list(DirtyTrace.objects.order_by("start").values_list("start", flat=True))
    return traces, DirtyDeltas.objects.count()


@pytest.mark.usefixtures("derived")
def test_an_unchanged_site_derives_nothing_again(register):
    register(SITE + SOURCES)

    assert pending() == ([], 0)


@pytest.mark.usefixtures("derived")
def test_a_nid_derives_its_own_hours_again_once(register):
    for _ in range(2):
        register(NID)
    assert pending() == ([at("12:00")], 0)


@pytest.mark.usefixtures("derived")
def test_a_pattern_derives_all_again_once_and_after_live_data(register, deliver, settings):
    settings.PENDING_LIMIT = 2
    for pattern in ("j(?P<batch_id>[0-9]+)", "k(?P<batch_id>[0-9]+)"):
        register(f'[[filesystem]]\nname = "lake"\njob_id_pattern = "{pattern}"')
    assert pending()[1] == 3
    assert backpressure.overload() is None

    deliver(traced(3, "11:00", "11:00:10", window("11:00:01", "1@gni")))

    assert DirtyTrace.objects.next(1)[0].start == at("11:00")
