"""Statistics of jobs, each compared with an independent calculation."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from collectors.lustre.opcodes import LDLM_CANCEL
from ioportal.jobs.analysis.anonymity import coarse
from ioportal.jobs.models import Job, JobStatistics
from ioportal.metrics import METADATA_OPERATIONS, METRICS
from ioportal.site.models import Target
from ioportal.telemetry import rollups
from ioportal.telemetry.models import IoWindow, Principal
from ioportal.telemetry.stage_runs import drain
from tests.jobs.polls import HOUR, MDT, every_ten_minutes
from tests.logs import Run, Timed, at, job_stats, md_stats, rpc

pytestmark = pytest.mark.usefixtures("module_site")

OSTS = ("lake-OST0000", "lake-OST0001")


def test_duration_nodes_and_cpu_efficiency_are_from_accounting(jobs, figures):
    jobs(
        Run(
            "77",
            start="12:00",
            end="13:00",
            nodes="n[1-4]",
            node_count=4,
            cores=64,
            cpu="1-08:00:00",
        )
    )

    job = figures()

    assert job.duration_s == HOUR
    assert job.node_count == 4
    assert job.cpu_efficiency == pytest.approx(32 * HOUR / (64 * HOUR))


def test_operations_are_added_up_by_kind(jobs, read, figures):
    jobs(Run("77", nodes="n[1-2]", node_count=2))
    counted = {kind: 3 * number for number, kind in enumerate(METADATA_OPERATIONS, start=1)}
    # Data operations, and kinds that are part of rename, are not metadata operations.
    excluded = {"samedir_rename": 5, "crossdir_rename": 1, "punch": 7, "fallocate": 9}
    read("12:00", job_stats(MDT, {"77": dict.fromkeys([*counted, *excluded], 0)}))
    read("12:30", job_stats(MDT, {"77": counted | excluded}, snapshot="12:29"))

    job = figures()

    for kind, amount in counted.items():
        assert getattr(job, f"count_{kind}") == amount
    total = sum(counted.values())
    assert job.metadata_operations == total
    assert (job.opens, job.closes) == (counted["open"], counted["close"])
    assert job.open_close_ratio == pytest.approx(counted["open"] / counted["close"])
    assert job.metadata_operations_per_node == total / 2


def test_mean_times_are_over_the_operations_with_a_known_time(jobs, read, register, figures):
    register('[[target]]\nfilesystem = "lake"\nname = "lake-MDT0002"\n')
    jobs(Run("77"))
    for clock, factor in (("12:05", 0), ("12:55", 1)):
        timed = {"open": Timed(100 * factor, 4_000 * factor), "mkdir": Timed(50 * factor, 20_000)}
        untimed = {"open": 1_000 * factor, "rmdir": 10 * factor}
        texts = [
            job_stats(target, {"77": counters}, snapshot=clock)
            for target, counters in ((MDT, timed), ("lake-MDT0002", untimed))
        ]
        read(clock, *texts)

    statistics = figures()
    assert (statistics.count_open, statistics.mean_open_us) == (1_100, 40)
    assert statistics.mean_mkdir_us == 400
    assert (statistics.count_rmdir, statistics.mean_rmdir_us) == (10, None)  # unknown, not zero
    assert statistics.mean_operation_us == 160  # 24,000 us / 150 operations


def test_bytes_and_requests_of_all_targets_are_added_up(jobs, read, figures):
    jobs(Run("77", nodes="n[1-2]", node_count=2))
    idle = {"read_bytes": (0, 0), "write_bytes": (0, 0)}
    read("12:00", *(job_stats(target, {"77": idle}) for target in OSTS))
    read(
        "12:30",
        job_stats(OSTS[0], {"77": {"read_bytes": (10, 40_960)}}),
        job_stats(OSTS[1], {"77": {"read_bytes": (30, 81_920), "write_bytes": (4, 4_000)}}),
    )
    # Small files live on the MDT.
    read("12:00", job_stats(MDT, {"77": {"read_bytes": (0, 0)}}))
    read("12:30", job_stats(MDT, {"77": {"read_bytes": (5, 500)}}))

    job = figures()

    assert (job.read_bytes, job.write_bytes) == (40_960 + 81_920 + 500, 4_000)
    assert (job.read_bytes_per_node, job.write_bytes_per_node) == (123_380 / 2, 2_000)
    assert job.mean_read_bytes == pytest.approx(123_380 / 45)
    assert job.mean_write_bytes == 1_000


@pytest.mark.parametrize(
    ("registered", "clocks", "read_bytes", "quality", "reason"),
    [
        pytest.param(False, {}, None, None, "no OST of its filesystems is registered", id="no OST"),
        pytest.param(True, {}, None, None, "no OST was observed while it ran", id="never read"),
        pytest.param(
            True, {OSTS[0]: ("12:00", "13:00")}, 700, "partial", "in 50 % of its run", id="one OSS"
        ),
        pytest.param(
            True,
            dict.fromkeys(OSTS, ("12:00", "12:20")),
            600,
            "poor",
            "in 33 % of its run",
            id="for a third of the run",
        ),
        pytest.param(True, dict.fromkeys(OSTS, ("12:00", "13:00")), 1_400, "good", "", id="all"),
    ],
)
def test_bytes_without_ost_counters_are_unknown_not_zero(
    jobs, logs, ingest, figures, registered, clocks, read_bytes, quality, reason
):
    """MDTs of recent versions list 0 bytes for each job; OSTs count 100 bytes in ten minutes."""
    if not registered:
        Target.objects.filter(kind=Target.Kind.OST).delete()
    jobs(Run("77"))
    paths = []
    for n, clock in enumerate(every_ten_minutes("11:50", "13:00")):
        counters = {"open": 5 * n, "read_bytes": (0, 0), "write_bytes": (0, 0)}
        entry = {"read_bytes": (n, 100 * n), "write_bytes": (0, 0)}
        polled = [target for target, (first, last) in clocks.items() if first <= clock <= last]
        for target, entries in {MDT: counters, **dict.fromkeys(polled, entry)}.items():
            text = job_stats(target, {"77": entries}, snapshot=clock)
            paths.append(logs(f"{target}-{clock}", text, read_at=at(clock)))
    ingest("job_stats", *paths)

    job = figures()

    assert (job.quality, job.metadata_operations) == ("good", 35)
    assert (job.read_bytes, job.bytes_quality) == (read_bytes, quality)
    assert (job.write_bytes is None) == (job.mean_read_bytes is None) == (read_bytes is None)
    assert reason in "".join(job.bytes_reasons)
    assert bool(job.bytes_reasons) == (quality != "good")


def test_rates_divide_by_covered_seconds(jobs, polled, figures):
    jobs(Run("77"))
    polled({clock: 100 * n for n, clock in enumerate(every_ten_minutes("12:00", "13:00"))})

    job = figures()

    assert job.covered_share == 1
    assert job.metadata_operations == 600
    assert job.metadata_rate == pytest.approx(600 / HOUR)
    assert job.peak_metadata_rate == pytest.approx(100 / 600)
    assert job.peak_resolution_s == 600


def test_the_peak_is_from_a_single_interval(jobs, polled, figures):
    jobs(Run("77"))
    polled({"12:00": 0, "12:10": 10, "12:12": 910, "12:20": 1_000, "12:30": 1_010, "13:00": 1_010})

    job = figures()

    assert job.peak_metadata_rate == pytest.approx(900 / 120)
    assert job.peak_resolution_s == 120


SECOND_MDT = """
[[target]]
name = "lake-MDT0001"
filesystem = "lake"
server = "mds2"
"""


def test_rates_of_mdts_read_at_different_times_are_added(jobs, read, register, figures):
    register(SECOND_MDT)
    jobs(Run("77"))
    for target, reads in {
        MDT: {"12:00": 0, "12:10": 600, "12:20": 6_600, "12:30": 6_600},
        "lake-MDT0001": {"12:05": 0, "12:15": 1_200, "12:31": 1_200},
    }.items():
        for clock, opens in reads.items():
            read(clock, job_stats(target, {"77": {"open": opens}}, snapshot=clock))

    job = figures()

    # MDT0000: 10 per second from 12:10 to 12:20; MDT0001: 2 per second from 12:05 to 12:15.
    assert job.peak_metadata_rate == pytest.approx(10 + 2)
    assert job.peak_resolution_s == 600


@pytest.mark.parametrize(("servers", "rate"), [(("mds1", "mds2"), 1), (("mds1",), 2)])
def test_a_peak_is_limited_to_a_complete_trace(jobs, polled, logs, ingest, figures, servers, rate):
    jobs(Run("77"))
    polled({"12:10:00": 0, "12:10:20": 0, "12:10:40": 40})  # 1 per second; the second read is old
    moments = [at("12:09:50") + timedelta(seconds=second) for second in range(71)]
    lines = [rpc(moment, xid=number) for number, moment in enumerate(moments)]
    lines += [rpc("12:10:30", opcode=LDLM_CANCEL, xid=100 + number) for number in range(9)]
    for server in servers:
        ingest(
            "rpctrace",
            logs(server, "\n".join(lines if server == "mds1" else lines[:71:70])),
            server=server,
        )
    drain(rollups.roll_up)

    job = figures()

    assert job.peak_metadata_rate == pytest.approx(rate, rel=0.06)
    assert job.peak_is_capped == (rate == 1)


def test_windows_of_a_trace_count_in_proportion_to_their_overlap(
    jobs, polled, logs, ingest, figures
):
    jobs(Run("77"))
    polled({"12:10:05": 0, "12:10:15": 0, "12:10:25": 40})
    moments = [at("12:10:00") + timedelta(seconds=second) for second in range(31)]
    lines = "\n".join(rpc(moment, xid=number) for number, moment in enumerate(moments))
    for server in ("mds1", "mds2"):
        ingest("rpctrace", logs(server, lines), server=server)
    drain(rollups.roll_up)

    assert figures().peak_metadata_rate == pytest.approx(2)  # of two servers, 1 RPC per second each


def test_peaks_match_sums_per_second(jobs, refresh):
    """Random jobs, MDTs and intervals, compared with the sum at each second."""
    chance = Random(11)  # noqa: S311  (reproducible)
    jobs(*(Run(str(number), nodes=f"n{number}") for number in range(1, 13)))
    rows, expected = [], {}
    for job in Job.objects.all():
        rates = [0.0] * HOUR
        widths = [0] * HOUR
        for target in range(1, chance.randint(2, 5)):
            second = chance.randrange(300)
            while (width := chance.randint(1, 300)) + second < HOUR:
                if chance.random() < 0.8:  # otherwise idle
                    opens = chance.randrange(10**6)
                    rows.append(_window(job, target, second, second + width, opens))
                    for moment in range(second, second + width):
                        rates[moment] += opens / width
                        widths[moment] = max(widths[moment], width)
                second += width
        expected[job.batch_id] = max(zip(rates, widths, strict=True))
    IoWindow.objects.bulk_create(rows)

    refresh()

    statistics = {job.batch_id: job.statistics for job in Job.objects.all()}
    for batch_id, (rate, width) in expected.items():
        assert statistics[batch_id].peak_metadata_rate == pytest.approx(rate)
        assert statistics[batch_id].peak_resolution_s == width


def _window(job, target, start, end, opens):
    return IoWindow(
        start=at("12:00") + timedelta(seconds=start),
        end=at("12:00") + timedelta(seconds=end),
        segment_id=1,
        filesystem_id=1,
        target_id=target,
        source_job_id=1,
        kind=Principal.JOB,
        job_id=job.pk,
        basis=IoWindow.Basis.DIFFERENCE,
        open=opens,
    )


def test_the_startup_share_covers_the_first_tenth_of_the_run(jobs, polled, figures):
    jobs(Run("77", start="12:00", end="13:40"))
    polled(
        {
            "12:00": 0,
            "12:05": 700,
            "12:10": 800,
            **dict.fromkeys(every_ten_minutes("12:20", "13:40"), 1000),
        }
    )

    assert figures().startup_share == pytest.approx(0.8)


def test_the_startup_share_is_unknown_with_long_intervals(jobs, polled, figures):
    jobs(Run("77"))
    polled({clock: 100 * n for n, clock in enumerate(every_ten_minutes("12:00", "13:00"))})

    assert figures().startup_share is None


def test_the_startup_share_of_a_running_job(jobs, polled, figures):
    jobs(Run("77").running())
    polled({clock: 100 * n for n, clock in enumerate(every_ten_minutes("12:00", "15:20"))})

    assert figures().startup_share == pytest.approx(2 / 20)


def test_statistics_of_a_running_job_extend_to_the_latest_data(jobs, polled, figures):
    jobs(Run("77", cpu="00:00:00").running())
    polled({clock: 100 * n for n, clock in enumerate(every_ten_minutes("12:00", "12:40"))})

    job = figures()

    assert job.duration_s == 40 * 60
    assert job.cpu_efficiency is None
    assert job.metadata_rate == pytest.approx(400 / 2_400)
    assert (job.covered_share, job.quality) == (1, "good")

    polled({"12:50": 900})

    assert figures().duration_s == 50 * 60


@pytest.mark.parametrize(
    ("limit_s", "duration_s"),
    [
        pytest.param(600, 600 + HOUR, id="an hour past its time limit"),
        pytest.param(4 * HOUR, 3 * HOUR, id="not beyond the latest data"),
        pytest.param(2**63 - 1, 3 * HOUR, id="limit too large for a date"),
        pytest.param(None, 3 * HOUR, id="no limit"),
    ],
)
def test_a_run_without_recorded_end_extends_at_most_to_its_time_limit(
    jobs, polled, figures, limit_s, duration_s
):
    jobs(Run("77").running())
    Job.objects.update(time_limit_s=limit_s)
    polled({"12:00": 0, "12:10": 100, "15:00": 100})

    assert figures().duration_s == duration_s


def test_totals_of_unknown_duration_are_excluded_from_rates(jobs, polled, figures):
    jobs(Run("77", start="12:00", end="13:00"))
    polled({"12:30": 5_000, "12:40": 5_100, "12:50": 5_200, "13:00": 5_300})

    job = figures()

    assert job.metadata_operations == 5_300
    assert job.metadata_rate == pytest.approx(300 / 1_800)
    assert job.peak_metadata_rate == pytest.approx(100 / 600)


def test_operations_in_a_gap_are_excluded_from_rates(jobs, polled, figures, settings):
    settings.POLL_GAP = timedelta(minutes=20)
    jobs(Run("77", start="12:00", end="13:00"))
    polled({"12:00": 0, "12:10": 100, "12:50": 9_100, "13:00": 9_200})

    job = figures()

    assert job.metadata_operations == 9_200
    assert job.covered_share == pytest.approx(20 / 60)
    assert job.metadata_rate == pytest.approx(200 / 1_200)
    assert job.peak_metadata_rate == pytest.approx(100 / 600)
    assert job.quality == "poor"
    assert job.quality_reasons == [
        "The metadata targets' counters were observed in 33 % of its run."
    ]


def test_the_target_share_is_relative_to_the_totals_of_the_target(jobs, read, figures):
    jobs(Run("77"))
    for clock, job_opens, target_opens in (
        ("12:00", 100, 10_000),
        ("12:30", 700, 12_000),
        ("13:00", 700, 14_000),
    ):
        read(clock, job_stats(MDT, {"77": {"open": job_opens}}, snapshot="12:30"))
        read(clock, md_stats(MDT, {"open": target_opens}), form="md_stats")

    assert figures().largest_target_share == pytest.approx(600 / 2_000)


@pytest.mark.parametrize(("reached", "total"), [(1_000, 3_000), (11_000, 13_000)])
def test_the_target_share_includes_operations_before_a_restart(jobs, read, figures, reached, total):
    """Also if the totals after the restart exceed those at the start of the run."""
    jobs(Run("77"))
    for clock, job_opens, target_opens in (
        ("12:00", 100, 10_000),
        ("12:30", 700, 12_000),
        ("13:00", 900, reached),
    ):
        read(clock, job_stats(MDT, {"77": {"open": job_opens}}, snapshot=clock))
        read(clock, md_stats(MDT, {"open": target_opens}), form="md_stats")

    assert figures().largest_target_share == coarse(800 / total)


def test_late_totals_complete_the_statistics(jobs, read, figures):
    jobs(Run("77"))
    for clock, opens in (("12:00", 0), ("13:00", 600)):
        read(clock, job_stats(MDT, {"77": {"open": opens}}, snapshot=clock))
    assert figures().largest_target_share is None

    for clock, opens in (("12:00", 0), ("13:00", 800)):
        read(clock, md_stats(MDT, {"open": opens}), form="md_stats")

    assert figures().largest_target_share == pytest.approx(0.75)


def test_each_metric_is_a_column_of_the_statistics(jobs, figures):
    jobs(Run("77"))

    job = figures()

    assert all(hasattr(job, metric.name) for metric in METRICS)


def test_jobs_of_a_batch_have_separate_statistics(jobs, read, figures):
    jobs(Run("77"), Run("78", nodes="n2"), Run("79", nodes="n3", end="12:30"))
    for clock, factor in (("12:00", 0), ("12:10", 1), ("12:20", 5)):
        entries = {str(job): {"open": job * factor} for job in (77, 78, 79)}
        read(clock, job_stats(MDT, entries, snapshot=clock))

    assert [figures(str(job)).opens for job in (77, 78, 79)] == [5 * 77, 5 * 78, 5 * 79]
    assert figures("79").covered_share == pytest.approx(20 / 30)
    assert figures("77").covered_share == pytest.approx(20 / 60)


def test_a_job_of_zero_duration_is_accepted(jobs, polled, figures):
    jobs(Run("77", start="12:10", end="12:10"))
    polled(dict.fromkeys(every_ten_minutes(), 5))

    job = figures()

    assert (job.duration_s, job.covered_share, job.cpu_efficiency) == (0, 0, None)


def test_a_pending_job_has_no_statistics(jobs, refresh):
    jobs(Run("77", start=None, end=None, nodes=""))

    refresh()

    assert not JobStatistics.objects.exists()


def test_statistics_have_a_time_of_computation(jobs, figures):
    jobs(Run("77"))
    before = datetime.now(UTC)

    assert figures().computed_at >= before


def test_running_jobs_are_refreshed_periodically_and_ended_jobs_at_once(
    jobs, polled, refresh, settings
):
    settings.STATISTICS_INTERVAL = timedelta(hours=1)
    statistics = JobStatistics.objects.filter(job__batch_id="77")
    jobs(Run("77").running())
    polled({"12:00": 0, "12:10": 100})
    refresh()
    polled({"12:20": 300})

    refresh()

    assert statistics.get().opens == 100

    jobs(Run("77"))
    refresh()

    assert statistics.get().opens == 300
