"""Calls of NFS servers: stored once, reconciled, and part of the load of a site."""

import pytest

from ioportal.core.times import moment
from ioportal.load.moved_load import Load, loads
from ioportal.site.models import Filesystem, Server
from ioportal.telemetry.rollups import roll_up
from ioportal.telemetry.stage_runs import drain
from tests.collectors.lustre.counters import FIXTURES
from tests.logs import job_stats

FIRST, LATER, REBOOTED = (f"2026-03-01T{hour}:00:00Z" for hour in (12, 13, 14))


@pytest.fixture
def reads(site, ingest):
    """Load three reads of an NFS server, which boots before the last read."""
    apps = Filesystem.objects.create(name="apps")
    Server.objects.create(name="nfs1", filesystem=apps, kind=Server.Kind.NFS)
    for name, at in (("kernel_6.1", FIRST), ("kernel_6.1_later", LATER), ("kernel_6.1", REBOOTED)):
        ingest("nfsd", FIXTURES / "nfsd" / f"{name}.txt", server="nfs1", at=at)


def test_reads_reconcile(reads, reconcile):
    assert reconcile() == "3 segments reconcile."


def test_the_load_of_a_site_is_by_filesystem_and_nfs_server(reads, ingest, logs):
    for hour, new in ((12, {}), (13, {"rm.0": {"unlink": 3600}})):
        at = f"2026-03-01T{hour}:00:00Z"
        entries = {"cp.0": {"open": 100 + (hour - 12) * 7200}, **new}
        text = job_stats("lake-MDT0000", entries, snapshot=moment(at))
        ingest("job_stats", logs(f"{hour}.txt", text), at=at)
    drain(roll_up)

    day = (moment("2026-03-01T00:00:00Z"), moment("2026-03-02T00:00:00Z"))
    half_an_hour = (moment("2026-03-01T12:30:00Z"), moment("2026-03-01T13:00:00Z"))

    # The hour in which the NFS server booted does not count.
    assert loads([day, half_an_hour]) == [
        [
            Load("lake", "filesystem", 3.0, 10_800.0, 3600.0),
            Load("nfs1", "NFS server", 0.6, 2160.0, 3600.0),
        ],
        [],
    ]
