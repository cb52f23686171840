"""Estimated impact on a server without traces, from its statistics and job_stats."""

from datetime import timedelta

import pytest

from ioportal.jobs.models import Job
from ioportal.site.models import Cluster, Counter, Server, Service, Target
from ioportal.telemetry.models import Coverage, IoWindow, ServiceSnapshot
from tests.logs import at
from tests.web.reading import words_of

MINUTES = 60
STORM = range(30, 35)  # minutes after 12:00
CALM_US, SLOW_US = 200, 100_200  # mean wait of a request
RATE = {"alice": (1_000, 90_000), "bob": (2_000, 2_000)}  # per minute: calm, storm
MINUTE = timedelta(minutes=1)


@pytest.fixture
def untraced(module_site):
    """Reads each minute: alice storms for five minutes, bob waits."""
    mds, mdt = Server.objects.get(name="mds1"), Target.objects.get(name="lake-MDT0000")
    service = Service.objects.create(name="mdt")
    wait = Counter.objects.create(name="req_waittime")
    cluster = Cluster.objects.get(name="anvil")
    jobs = {
        owner: Job.objects.create(
            cluster=cluster, batch_id=owner, owner=owner, submitted_at=at("11:00"),
            started_at=at("11:30"),
        ).pk
        for owner in RATE
    }  # fmt: skip
    reads, windows, coverage = [], [], []
    samples = waited_us = 0
    for minute in range(MINUTES):
        is_storm = minute in STORM
        taken_at = at("12:00") + minute * MINUTE
        counts = {owner: RATE[owner][is_storm] for owner in RATE}
        samples += sum(counts.values())
        waited_us += sum(counts.values()) * (SLOW_US if is_storm else CALM_US)
        reads.append(
            ServiceSnapshot(
                taken_at=taken_at, segment_id=1, server_id=mds.pk, service_id=service.pk,
                counter_id=wait.pk, unit=2, samples=samples, min=0, max=0, sum=waited_us,
            )
        )  # fmt: skip
        coverage.append(
            Coverage(
                source="mds_stats", source_id=mds.pk, start=taken_at, end=taken_at, segment_id=1
            )
        )
        windows += [
            IoWindow(
                start=taken_at - MINUTE, end=taken_at, segment_id=2, source_job_id=0, kind=1,
                filesystem_id=mdt.filesystem_id, target_id=mdt.pk, job_id=job, basis=1,
                open=counts[owner], open_us=counts[owner] * 40,
            )
            for owner, job in jobs.items()
        ]  # fmt: skip
    ServiceSnapshot.objects.bulk_create(reads)
    IoWindow.objects.bulk_create(windows)
    Coverage.objects.bulk_create(coverage)
    return mds


def test_the_user_of_a_storm_has_the_impact(as_staff, untraced):
    page = words_of(as_staff.get("/servers/mds1/"))

    # Bob's 10,000 requests waited 0.1 s longer; alice did 98 % of the load.
    assert "Estimated impact" in page
    row = page.partition("Share of load %")[2].split()[:2]
    assert row[0] == "alice"
    assert 900 < float(row[1].replace(",", "")) <= 1_000


def test_traced_intervals_are_not_estimated(as_staff, untraced):
    Coverage.objects.create(
        source="rpctrace", source_id=untraced.pk, start=at("12:25"), end=at("12:40"), segment_id=3
    )

    assert "Estimated impact" not in words_of(as_staff.get("/servers/mds1/"))
