"""Coverage: the time between consecutive reads and between the records of a trace."""

from datetime import timedelta

import pytest

from ioportal.site.models import Server, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import Coverage, ceil_to_window, floor_to_window
from tests.logs import at, job_stats, rpc

pytestmark = pytest.mark.usefixtures("site")

JOB_STATS = Coverage.Source.JOB_STATS


def interval(start, end):
    return Interval(at(start), at(end))


def observed_in_range(target):
    """Return the observed intervals of a target from 12:00 to 13:00."""
    start, end = at("12:00"), at("13:00")
    observed = coverage.by_source(JOB_STATS, {target.pk: target.poll_gap}, start, end)
    return [Interval(max(part.start, start), min(part.end, end)) for _, part in observed]


@pytest.fixture
def reads(logs, ingest, settings):
    """Read a target at times of day. Reads up to 20 minutes apart leave no gap."""
    settings.POLL_GAP = timedelta(minutes=20)

    def run(*clocks, target="lake-MDT0000"):
        for clock in clocks:
            text = job_stats(target, {"77": {"open": 1}})
            ingest("job_stats", logs(f"{target}-{clock}", text), at=at(clock).isoformat())
        return Target.objects.get(name=target)

    return run


@pytest.mark.parametrize(
    ("clocks", "observed"),
    [
        pytest.param([], [], id="no reads"),
        pytest.param(["12:10"], [], id="a single read"),
        pytest.param(["12:10", "12:30"], [("12:10", "12:30")], id="between two reads"),
        pytest.param(["12:10", "12:31"], [], id="two reads too far apart"),
        pytest.param(
            ["12:10", "12:20", "12:50", "12:55"],
            [("12:10", "12:20"), ("12:50", "12:55")],
            id="a gap",
        ),
        pytest.param(["11:50", "12:05"], [("12:00", "12:05")], id="start before the range"),
        pytest.param(["12:55", "13:10"], [("12:55", "13:00")], id="end after the range"),
        pytest.param(["11:50", "12:00"], [], id="before the range"),
        pytest.param(["13:00", "13:10"], [], id="after the range"),
        pytest.param(
            ["11:55", "12:15", "12:35", "12:55", "13:15"],
            [("12:00", "13:00")],
            id="the whole range",
        ),
    ],
)
def test_the_time_between_close_reads_is_covered(reads, clocks, observed):
    target = reads(*clocks, target="lake-MDT0000")

    assert observed_in_range(target) == [interval(*pair) for pair in observed]


def test_a_long_cleanup_interval_allows_longer_poll_intervals(reads):
    target = reads("12:10", "12:40", "13:20")

    target.job_cleanup_interval = timedelta(minutes=30)

    assert observed_in_range(target) == [interval("12:10", "12:40")]


def test_reads_of_one_target_do_not_cover_another(reads):
    reads("12:00", "12:10")
    other = Target.objects.get(name="pond-MDT0000")

    assert observed_in_range(other) == []


@pytest.fixture
def traces(logs, ingest):
    """Ingest traces of servers from one time of day to another."""

    def run(*spans):
        for server, first, last in spans:
            ingest("rpctrace", logs(f"{server}-{first}", rpc(first), rpc(last)), server=server)
        return [Server.objects.get(name=name).pk for name in ("mds1", "mds2")]

    return run


def test_a_trace_covers_the_time_from_its_first_to_its_last_record(traces):
    servers = traces(("mds1", "12:00:03.5", "12:01:00.25"))

    assert coverage.traced(servers, at("12:00"), at("13:00")) == [
        interval("12:00:03.5", "12:01:00.25")
    ]
    assert coverage.traced(servers, at("12:00:30"), at("12:00:40")) == [
        interval("12:00:30", "12:00:40")
    ]
    assert coverage.traced(servers, at("12:02"), at("13:00")) == []
    assert coverage.traced(servers, at("12:00:40"), at("12:00:30")) == []
    assert coverage.traced([], at("12:00"), at("13:00")) == []


def test_coverage_of_several_servers_is_the_union_of_their_traces(traces):
    servers = traces(
        ("mds1", "12:00", "12:02"), ("mds2", "12:01", "12:03"), ("mds2", "12:10", "12:11")
    )

    assert coverage.traced(servers, at("12:00"), at("13:00")) == [
        interval("12:00", "12:03"),
        interval("12:10", "12:11"),
    ]
    assert coverage.seconds(coverage.traced(servers, at("12:00"), at("13:00"))) == 240
    by_server = coverage.by_source(
        Coverage.Source.RPC_TRACE, coverage.contiguous(servers), at("12:00"), at("13:00")
    )
    assert [part for _, part in by_server] == [
        interval("12:00", "12:02"),
        interval("12:01", "12:03"),
        interval("12:10", "12:11"),
    ]


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        ([], [("12:00", "13:00")]),
        ([("12:00", "13:00")], []),
        ([("12:10", "12:20")], [("12:00", "12:10"), ("12:20", "13:00")]),
        ([("12:00", "12:30"), ("12:20", "12:25")], [("12:30", "13:00")]),
    ],
)
def test_gaps_are_the_uncovered_intervals(observed, expected):
    gaps = coverage.gaps([interval(*pair) for pair in observed], at("12:00"), at("13:00"))

    assert gaps == [interval(*pair) for pair in expected]


def test_intervals_less_than_a_minute_apart_are_joined():
    spans = [("12:00", "12:01"), ("12:01:59", "12:02"), ("12:03", "12:04")]
    joined = coverage.joined([interval(*pair) for pair in spans])

    assert joined == [interval("12:00", "12:02"), interval("12:03", "12:04")]


@pytest.mark.parametrize(
    ("moment", "floor", "ceil"),
    [
        ("12:00:00", "12:00:00", "12:00:00"),
        ("12:00:00.000001", "12:00:00", "12:00:10"),
        ("12:00:09.999999", "12:00:00", "12:00:10"),
        ("12:59:55", "12:59:50", "13:00:00"),
    ],
)
def test_windows_begin_and_end_every_ten_seconds(moment, floor, ceil):
    assert floor_to_window(at(moment)) == at(floor)
    assert ceil_to_window(at(moment)) == at(ceil)
