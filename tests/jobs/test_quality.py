"""Quality of statistics: coverage, resets, ambiguous operations."""

from datetime import timedelta

import pytest

from ioportal.jobs.models import Job
from ioportal.site.models import Target
from tests.jobs.polls import HOUR, MDT, every_ten_minutes
from tests.logs import Run, pbs, rpc

pytestmark = pytest.mark.usefixtures("module_site")


def test_quality_is_copied_to_the_job(jobs, polled, figures):
    jobs(Run("77", start="12:00", end="13:00"))
    job = Job.objects.get(batch_id="77")
    assert job.quality is None

    assert figures().quality == "poor"
    job.refresh_from_db()
    assert job.quality == "poor"

    polled(dict.fromkeys(every_ten_minutes(), 1))
    assert figures().quality == "good"
    job.refresh_from_db()
    assert job.quality == "good"


def test_a_fully_covered_job_is_good(jobs, polled, figures):
    jobs(Run("77"))
    polled(dict.fromkeys(every_ten_minutes(), 5))

    job = figures()

    assert (job.quality, job.quality_reasons) == ("good", [])


@pytest.mark.parametrize(
    ("first", "grade", "share"),
    [
        ("12:03", "good", "95"),
        ("12:04", "partial", "93"),
        ("12:30", "partial", "50"),
        ("12:31", "poor", "48"),
    ],
)
def test_the_grade_depends_on_coverage(jobs, polled, figures, first, grade, share):
    jobs(Run("77", start="12:00", end="13:00"))
    later = (clock for clock in every_ten_minutes("12:10", "13:00") if clock > first)
    polled(dict.fromkeys([first, *later], 1))

    job = figures()

    assert job.quality == grade
    assert (grade == "good") == (job.quality_reasons == [])
    assert all(f"in {share} % of its run" in reason for reason in job.quality_reasons)


UNREAD = """
[[filesystem]]
name = "moor"
clusters = ["anvil"]
[[server]]
name = "moor-mds"
filesystem = "moor"
[[target]]
name = "moor-MDT0000"
filesystem = "moor"
server = "moor-mds"
"""


def test_filesystems_without_io_of_the_job_do_not_affect_quality(jobs, polled, register, figures):
    register(UNREAD)
    jobs(Run("77"), Run("78", nodes="n2"))
    polled({clock: n for n, clock in enumerate(every_ten_minutes())})

    assert (figures("77").quality, figures("77").covered_share) == ("good", 1)
    # A job without I/O on any filesystem may have used each filesystem of its cluster.
    assert (figures("78").quality, figures("78").covered_share) == ("partial", 0.5)


def test_a_job_without_coverage_is_poor(jobs, figures):
    jobs(Run("77"))

    job = figures()

    assert job.quality == "poor"
    assert job.quality_reasons == [
        (
            "The metadata targets' counters were never observed while it ran: "
            "operations are known from reads far apart, if at all."
        )
    ]
    assert job.metadata_operations is None


def test_hourly_reads_suffice_for_a_target_with_long_clean_up_intervals(jobs, polled, figures):
    Target.objects.filter(name=MDT).update(job_cleanup_interval=timedelta(hours=1))
    jobs(Run("77", start="12:10", end="13:50"))
    polled({"12:00": 0, "13:00": 600, "14:00": 1_000})

    job = figures()

    assert (job.quality, job.quality_reasons) == ("good", [])
    assert (job.metadata_operations, job.covered_share) == (1_000, 1)
    assert job.metadata_rate == pytest.approx(1_000 / 6_000)
    assert (job.peak_metadata_rate, job.peak_resolution_s) == (600 / HOUR, HOUR)


def test_windows_longer_than_the_run_give_no_peak(jobs, polled, figures):
    jobs(Run("77", start="12:05", end="12:10"))
    polled({"12:00": 0, "12:12": 500})

    job = figures()

    assert job.metadata_rate == pytest.approx(500 / 300)
    assert (job.peak_metadata_rate, job.peak_resolution_s) == (None, None)


def test_late_reads_improve_quality(jobs, polled, figures):
    jobs(Run("77"))
    polled({"12:00": 0, "12:10": 5})
    assert figures().quality == "poor"

    polled(dict.fromkeys(every_ten_minutes("12:20", "13:00"), 5))

    assert figures().quality == "good"


@pytest.mark.parametrize("after", [30, 0])
def test_resets_lower_quality(jobs, polled, figures, after):
    jobs(Run("77"))
    polled(
        {
            "12:00": 0,
            "12:10": 500,
            "12:20": after,
            **dict.fromkeys(every_ten_minutes("12:30", "13:00"), after),
        }
    )

    job = figures()

    assert (job.quality, job.resets) == ("partial", 1)
    assert job.quality_reasons == [
        "Counters were cleared or restarted once: operations may be missing."
    ]


def test_ambiguous_operations_lower_quality(jobs, logs, ingest, polled, figures):
    jobs(Run("77", nodes="n[1-2]", node_count=2), Run("78", nodes="n2"))
    polled(dict.fromkeys(every_ten_minutes(), 5))
    exclusive, ambiguous = [rpc("12:10", "1@gni")] * 3, [rpc("12:10:01", "2@gni")]
    lines = [
        line.replace(":x15", f":x{n}") for n, line in enumerate(exclusive + ambiguous, start=20)
    ]
    ingest("rpctrace", logs("t", *lines), server="mds1")

    job = figures()

    assert job.metadata_rpcs == 3
    assert job.ambiguous_share == pytest.approx(1 / 4)
    assert job.quality == "partial"
    assert job.quality_reasons == ["25 % of its operations may be another job's."]
    assert figures("78").quality == "poor"


def test_ids_of_two_clusters_lower_quality(jobs, logs, ingest, refresh):
    jobs(Run("77"))
    ingest("pbs", logs("p", pbs(("E", Run("77", nodes="b1")))), cluster="birch")
    ingest("rpctrace", logs("t", rpc("12:10", "10.9.9.9@tcp", job="77")), server="mds1")
    refresh()

    for job in Job.objects.filter(batch_id="77"):
        assert job.statistics.ambiguous_share == 1
        assert job.statistics.quality == "poor"
