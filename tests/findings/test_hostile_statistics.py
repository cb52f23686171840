"""Impossible service statistics neither stop the evaluation nor lead to accusations."""

import pytest

from ioportal.telemetry.models import DirtyImpact, ImpactWindow
from tests import loading, untraced
from tests.logs import at, job_stats

LARGEST_COUNT, LARGEST_SUM = 2**53 - 1, 2**60 - 1  # that the parser accepts


@pytest.fixture(scope="module")
def evaluated(module_site, module_logs):
    """Ingest and evaluate all reads of an untraced server."""
    untraced.ingest(module_logs)
    loading.evaluate()


def statistics(requests, waited_us, handled_us):
    return (
        "mds.MDS.mdt.stats=\n"
        f"req_waittime {requests} samples [usec] 1 1 {waited_us} 1\n"
        f"mds_getattr 1 samples [usec] 1 1 {handled_us} 1\n"
    )


@pytest.mark.usefixtures("evaluated")
@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param((LARGEST_COUNT, LARGEST_SUM, LARGEST_SUM), id="too many slow requests"),
        pytest.param((LARGEST_COUNT, LARGEST_SUM, 1), id="too many requests"),
        pytest.param((1_000_000, LARGEST_SUM, 1), id="longer than a day"),
    ],
)
def test_impossible_numbers_have_no_impact(logs, numbers):
    read_at = at("12:10")
    entries = {job: {"open": 10_000_000} for job in (untraced.STORM, untraced.BYSTANDER)}
    counters = job_stats(untraced.MDT, entries, snapshot=read_at)
    loading.ingest("job_stats", logs("counters", counters, read_at=read_at))
    services = logs("services", statistics(*numbers), read_at=read_at)
    loading.ingest("mds_stats", services, server=untraced.SERVER)
    assert DirtyImpact.objects.exists()

    loading.evaluate()

    assert not DirtyImpact.objects.exists()
    assert not ImpactWindow.objects.filter(start__gte=at("12:09")).exists()
