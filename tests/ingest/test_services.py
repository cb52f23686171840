"""Statistics of services: loaded once, never charged, and re-added like all that is loaded."""

import pytest
from django.core.management import CommandError

from ioportal.ingest.models import Segment
from ioportal.site.models import Counter, Server, Service
from ioportal.telemetry import services
from ioportal.times import moment
from tests import contents
from tests.collectors.lustre.counters import FIXTURES

OURS = FIXTURES / "lustre_service_stats"
NOON, A_MINUTE_LATER, UPGRADED = (f"2019-06-20T12:0{minute}:00Z" for minute in range(3))


@pytest.fixture
def reads(site, ingest):
    """Load three reads of an MDS, the newest first."""
    for name, at in (
        ("get_param_2.15", UPGRADED),
        ("get_param_2.12_b", A_MINUTE_LATER),
        ("get_param_2.12_a", NOON),
    ):
        ingest("mds_stats", OURS / f"{name}.txt", server="mds1", at=at)


def gained(service, counter):
    """Return the increase of a counter of mds1 between reads: seconds, reset, samples, sum."""
    server = Server.objects.get(name="mds1")
    found = services.differences(server.pk, moment(NOON), moment(UPGRADED), 100)
    rows = found.filter(
        service_id=Service.objects.get(name=service).pk,
        counter_id=Counter.objects.get(name=counter).pk,
    )
    return [
        ((end - start).total_seconds(), is_reset, samples, total)
        for start, end, is_reset, samples, total in rows.select(
            "start", "end", "is_reset", "samples", "sum"
        ).iter_rows()
    ]


def test_differences_of_reads_are_what_happened_between_them(reads):
    assert gained("mdt", "req_waittime") == [(60, False, 6000, 6000000), (60, True, 600, 12000)]
    assert gained("mdt", "mds_reint_open") == [(60, False, 600, 600)]
    assert gained("mdt", "obd_ping") == [(60, False, 0, 0)]


def test_a_counter_that_was_not_printed_before_was_never_hit_before(reads):
    assert gained("mdt_rdpg", "req_waittime") == [(60, False, 1800, 36000)]
    assert gained("mdt_rdpg", "mds_close") == [(60, False, 1500, 45000)]


def test_reads_are_stored_once_and_reconcile(reads, ingest, reconcile):
    before = contents.rows("telemetry_servicesnapshot", "ingest_segment", "telemetry_coverage")

    account = ingest("mds_stats", OURS / "get_param_2.12_a.txt", server="mds1", at=NOON)

    assert reconcile() == "3 segments reconcile."
    assert account["attributed"] == {"job": 0, "process": 0, "host": 0}
    assert before == contents.rows(
        "telemetry_servicesnapshot", "ingest_segment", "telemetry_coverage"
    )


def test_another_text_of_the_same_moment_is_refused_unless_it_replaces(reads, ingest, reconcile):
    other = OURS / "get_param_2.12_b.txt"

    with pytest.raises(CommandError, match="overlaps"):
        ingest("mds_stats", other, server="mds1", at=NOON)
    ingest("mds_stats", other, server="mds1", at=NOON, replace=True)

    assert gained("mdt", "req_waittime")[0] == (60, False, 0, 0)
    assert reconcile() == "3 segments reconcile."


def test_a_text_without_names_must_be_told_its_service(site, ingest):
    with pytest.raises(CommandError, match="--service"):
        ingest("mds_stats", OURS / "mdt_2.8.txt", server="mds1", at=NOON)

    ingest("mds_stats", OURS / "mdt_2.8.txt", server="mds1", at=NOON, service="mdt_readpage")

    assert contents.rows("site_service") == {"site_service": ["name=mdt_rdpg"]}
    assert Segment.objects.get().operations == 1200
