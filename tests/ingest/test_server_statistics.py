"""Service statistics and request histories: stored once, reconciled, and never attributed."""

import pytest
from django.core.management import CommandError

from ioportal.core.times import moment
from ioportal.ingest.models import Segment
from ioportal.load.top_clients import top_clients
from ioportal.site.models import Counter, Server, Service
from ioportal.telemetry import services
from tests import contents
from tests.collectors.lustre.counters import FIXTURES
from tests.logs import Run, rpc, sacct

STATISTICS = FIXTURES / "lustre_service_stats"
HISTORY = FIXTURES / "lustre_req_history" / "get_param_2.12.txt"  # 39 requests from 12:05 on
NOON, A_MINUTE_LATER, UPGRADED = (f"2019-06-20T12:0{minute}:00Z" for minute in range(3))


@pytest.fixture
def reads(site, ingest):
    """Load three reads of an MDS in reverse order."""
    for name, at in (
        ("get_param_2.15", UPGRADED),
        ("get_param_2.12_b", A_MINUTE_LATER),
        ("get_param_2.12_a", NOON),
    ):
        ingest("mds_stats", STATISTICS / f"{name}.txt", server="mds1", at=at)


def increases(service, counter, start=NOON, end=UPGRADED):
    """Return the increases of a counter of mds1: seconds, is_reset, samples and sum."""
    server = Server.objects.get(name="mds1")
    differences = services.differences(server.pk, moment(start), moment(end), 100)
    rows = differences.filter(
        service_id=Service.objects.get(name=service).pk,
        counter_id=Counter.objects.get(name=counter).pk,
    )
    return [
        ((end - start).total_seconds(), is_reset, samples, total)
        for start, end, is_reset, samples, total in rows.select(
            "start", "end", "is_reset", "samples", "sum"
        ).iter_rows()
    ]


def test_increases_are_differences_of_consecutive_reads(reads):
    assert increases("mdt", "req_waittime") == [(60, False, 6000, 6000000), (60, True, 600, 12000)]
    assert increases("mdt", "mds_reint_open") == [(60, False, 600, 600)]
    assert increases("mdt", "obd_ping") == [(60, False, 0, 0)]


def test_a_counter_missing_from_the_first_read_starts_at_zero(reads):
    assert increases("mdt_rdpg", "req_waittime") == [(60, False, 1800, 36000)]
    assert increases("mdt_rdpg", "mds_close") == [(60, False, 1500, 45000)]


WAIT, GETATTR, CREATE = "req_waittime", "mds_getattr", "mds_reint_create"


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        pytest.param(
            [(57000, 28500), (57100, None), (57200, 28650)],
            [(120, False, 150, 300)],
            id="one damaged read",
        ),
        pytest.param(
            [(57000, 28500), (57100, None), (57150, None), (57200, 28650)],
            [(180, False, 150, 300)],
            id="two damaged reads",
        ),
        pytest.param(
            [(57000, 28500), (57010, None), (57020, None), (57030, None), (57040, 28650)],
            [],
            id="unknown after many reads",
        ),
        pytest.param(
            [(57000, 28500), (0, None), (57200, 28650)],
            [(120, False, 150, 300)],
            id="cut before the first counter",
        ),
        pytest.param(
            [(57000, 28500), (100, None), (200, 50)],
            [(60, False, 50, 100)],
            id="restarted, then counted again",
        ),
        pytest.param(
            [(57000, None), (57100, None), (57200, 50)],
            [(60, False, 50, 100)],
            id="counted for the first time",
        ),
    ],
)
def test_a_counter_missing_from_a_read_continues_from_its_earlier_value(
    reads, expected, site, ingest, logs
):
    for minute, (waits, getattrs) in enumerate(reads):
        counters = {WAIT: waits, CREATE: waits and 7, GETATTR: getattrs}
        lines = [
            f"{name} {count} samples [usec] 1 5 {2 * count} 9"
            for name, count in counters.items()
            if count
        ]
        text = "\n".join(
            ["mds.MDS.mdt.stats=", f"snapshot_time 15610320{minute}0.5 secs.nsecs", *lines]
        )
        ingest("mds_stats", logs(f"{minute}", text), server="mds1", at=f"2019-06-20T12:0{minute}Z")

    until = f"2019-06-20T12:0{len(reads) - 1}:00Z"
    assert increases("mdt", GETATTR, end=until) == expected
    # Each interval is the same in any range that it overlaps.
    later = increases("mdt", GETATTR, start=f"2019-06-20T12:0{len(reads) - 2}:30Z", end=until)
    assert later == expected


def test_reads_are_stored_once_and_reconcile(reads, ingest, reconcile):
    before = contents.rows("telemetry_servicesnapshot", "ingest_segment", "telemetry_coverage")

    account = ingest("mds_stats", STATISTICS / "get_param_2.12_a.txt", server="mds1", at=NOON)

    assert reconcile() == "3 segments reconcile."
    assert account["attributed"] == {"job": 0, "process": 0, "host": 0}
    assert before == contents.rows(
        "telemetry_servicesnapshot", "ingest_segment", "telemetry_coverage"
    )


def test_another_read_of_the_same_time_requires_the_replace_option(reads, ingest, reconcile):
    other = STATISTICS / "get_param_2.12_b.txt"

    with pytest.raises(CommandError, match="overlaps"):
        ingest("mds_stats", other, server="mds1", at=NOON)
    ingest("mds_stats", other, server="mds1", at=NOON, replace=True)

    assert increases("mdt", "req_waittime")[0] == (60, False, 0, 0)
    assert reconcile() == "3 segments reconcile."


def test_statistics_without_service_names_require_the_service_option(site, ingest):
    with pytest.raises(CommandError, match="--service"):
        ingest("mds_stats", STATISTICS / "mdt_2.8.txt", server="mds1", at=NOON)

    ingest("mds_stats", STATISTICS / "mdt_2.8.txt", server="mds1", at=NOON, service="mdt_readpage")

    assert contents.rows("site_service") == {"site_service": ["name=mdt_rdpg"]}
    assert Segment.objects.get().operations == 1200


@pytest.fixture
def request_count(queries):
    """Return the number of stored requests."""
    return lambda: queries("SELECT coalesce(sum(count), 0)::int FROM telemetry_requestwindow")[0][0]


def test_top_clients_include_the_jobs_on_their_nodes(load, ingest, reconcile):
    load(
        "sacct",
        "j",
        sacct(Run("77", nodes="n1"), Run("78", nodes="n1", end="12:05")),
        cluster="anvil",
    )

    account = ingest("req_history", HISTORY, server="mds1")

    server = Server.objects.get(name="mds1")
    first, second = top_clients(
        server.pk, moment("2017-07-05T12:00:00Z"), moment("2017-07-05T13:00:00Z")
    )
    assert (first.nid.text, first.nid.node.name, first.requests) == ("1@gni", "n1", 20)
    assert [job.batch_id for job in first.jobs] == ["77"]
    assert first.kinds == [("LDLM_ENQUEUE", 10), ("MDS_GETATTR", 5), ("MDS_CLOSE", 5)]
    assert (second.nid.text, second.jobs) == ("2@gni", [])
    assert account["accepted"] == 39
    assert reconcile() == "2 segments reconcile."


def test_requests_in_two_polls_are_counted_once(site, ingest, request_count, logs, reconcile):
    lines = HISTORY.read_text().splitlines(keepends=True)
    first, second = logs("first", "".join(lines[:25])), logs("second", "".join(lines))

    ingest("req_history", first, second, server="mds1")

    assert request_count() == 39
    assert reconcile() == "2 segments reconcile."


def test_a_later_overlapping_poll_requires_the_replace_option(site, ingest, request_count, logs):
    lines = HISTORY.read_text().splitlines(keepends=True)
    first, second = logs("first", "".join(lines[:25])), logs("second", "".join(lines))
    ingest("req_history", first, server="mds1")

    with pytest.raises(CommandError, match="overlaps"):
        ingest("req_history", second, server="mds1")
    ingest("req_history", first, second, server="mds1", replace=True)

    assert request_count() == 39


def test_request_histories_do_not_affect_traces_of_the_same_time(
    load, ingest, attribution, request_count, reconcile
):
    ingest("req_history", HISTORY, server="mds1")
    load("rpctrace", "t", rpc("12:05:05", "1@gni"), server="mds1")

    assert attribution() == {("host", "1@gni"): 1}
    assert request_count() == 39
    assert reconcile() == "2 segments reconcile."


def test_a_history_without_service_names_requires_the_service_option(site, ingest, request_count):
    path = HISTORY.with_name("mdt_1.8.txt")

    with pytest.raises(CommandError, match="--service"):
        ingest("req_history", path, server="mds1")
    ingest("req_history", path, server="mds1", service="mdt")

    assert request_count() == 12
