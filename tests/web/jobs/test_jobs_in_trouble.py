"""Pages of jobs with incomplete or unusual data."""

from datetime import timedelta

import pytest

from ioportal.jobs import statistics
from ioportal.jobs.models import DirtyStatistics, Job, Launch
from ioportal.telemetry.stage_runs import drain
from tests.logs import Run, at, job_stats, rpc, sacct
from tests.web.reading import csv_of, text_of, words_of


@pytest.fixture
def page(as_staff):
    return lambda job, rest="": as_staff.get(f"/jobs/{job.pk}/{rest}")


@pytest.fixture
def read(site, logs, ingest):
    """Read an MDT at a time of day; entries by job id."""

    def run(clock, entries, **options):
        text = job_stats("lake-MDT0000", entries, snapshot=clock, **options)
        ingest("job_stats", logs(f"{clock}.txt", text), "--at", at(clock).isoformat())

    return run


@pytest.fixture
def account(site, logs, ingest):
    """Load a job's accounting, compute, and return the job."""

    def run(job):
        ingest("sacct", logs(f"{job.batch_id}.txt", sacct(job)), cluster=job.cluster)
        drain(statistics.refresh_statistics)
        return Job.objects.get(batch_id=job.batch_id)

    return run


def test_a_pending_job_has_no_statistics(page, new_job):
    job = new_job(started_at=None, ended_at=None, state="pending")

    assert "Statistics appear after the job starts" in words_of(page(job))
    assert page(job, "timelines/metadata/").status_code == 404
    assert page(job, "rpcs/").status_code == 404


def test_a_running_job_is_marked_as_running(page, new_job):
    job = new_job({}, ended_at=None, state="running")

    assert "still running" in words_of(page(job))
    assert "0 cores" not in words_of(page(job))


def test_rotated_logs_are_one_trace_and_many_traces_fold(page, account, logs, ingest):
    job = account(Run("1"))
    spans = [("12:00:00", "12:00:10"), ("12:00:10.5", "12:00:20")]
    spans += [(f"12:{minute}:00", f"12:{minute}:05") for minute in range(10, 24, 2)]
    for first, last in spans:
        ingest("rpctrace", logs(f"{first}.log", rpc(first), rpc(last)), server="mds1")
    words = words_of(page(job))

    assert "Trace 12:00:00, 20 s Trace 12:10:00, 5 s" in words
    assert "Trace 12:18:00, 5 s 2 more traces Trace 12:20:00, 5 s" in words


def test_ranks_of_poor_figures_have_a_warning(page, new_job):
    for _ in range(10):
        new_job({"open_close_ratio": 1}, started_at=at("12:00") - timedelta(days=1))
    poor, good = (
        new_job({"open_close_ratio": 2, "quality": quality}) for quality in ("poor", "good")
    )
    caution = "The data quality of this job is poor"

    assert caution in words_of(page(poor))
    assert caution not in words_of(page(good))


def test_a_traced_job_without_rpcs_has_a_page(page, account, logs, ingest):
    traced = [rpc(f"12:0{minute}", "9@gni") for minute in range(5)]
    ingest("rpctrace", logs("trace.log", *traced), server="mds1")

    job = account(Run("77", nodes="n1"))

    assert "0 RPCs from 0 of 1 nodes" in words_of(page(job))


def test_pending_statistics_are_announced(page, new_job):
    job = new_job()
    DirtyStatistics.objects.create(job_id=job.pk)

    assert "Statistics pending" in words_of(page(job))


def test_stale_statistics_are_marked(page, new_job):
    job = new_job({})
    DirtyStatistics.objects.create(job_id=job.pk)

    assert "New data has arrived" in words_of(page(job))


def test_an_unobserved_job_explains_which_files_to_ingest(page, new_job):
    words = words_of(page(new_job()))

    assert "No counters or traces of the job's filesystems" in words
    assert "manage.py ingest job_stats" in words


def test_a_chart_without_observations_reports_missing_data(page, new_job):
    assert "data is missing, not zero" in words_of(page(new_job()))


def test_counter_resets_are_marked_and_explained(page, read, account):
    read("12:00", {"1": {"open": 500}})
    read("12:05", {"1": {"open": 900}})
    read("12:10", {"1": {"open": 300}})
    job = account(Run("1"))
    html = text_of(page(job))

    assert '"counter reset"' in html
    assert "Counters were cleared or restarted once" in words_of(page(job))


def test_a_late_record_gets_earlier_windows(page, read, account):
    read("12:00", {"login1.bash": {"open": 1}})
    read("12:10", {"8": {"open": 600}, "login1.bash": {"open": 1}})
    job = account(Run("8"))

    rates = {float(row["open"]) for row in csv_of(page(job, "timelines/opens-closes/"))}
    assert rates == {1.0}


def test_a_server_upgrade_is_marked_in_the_chart(page, read, account, register):
    register("""
[[server]]
name = "mds1"
filesystem = "lake"
[[server.version]]
version = "2.15.3"
since = 2017-07-05T12:30:00Z
""")
    read("12:00", {"login1.bash": {"open": 1}})
    read("12:10", {"9": {"open": 600}})

    assert "mds1: 2.12.5 \\u2192 2.15.3" in text_of(page(account(Run("9"))))


def test_jobs_with_the_same_id_link_to_each_other(page, new_job):
    first = new_job(batch_id="7", submitted_at=at("01:00"))
    second = new_job(batch_id="7", submitted_at=at("02:00"))
    other = new_job(batch_id="7", submitted_at=at("03:00"), owner="bob", project="BIO3")

    html = text_of(page(first))
    assert f'href="/jobs/{second.pk}/"' in html
    assert f'href="/jobs/{other.pk}/"' in html


def test_hidden_jobs_with_the_same_id_are_not_listed(as_alice, new_job):
    mine = new_job(batch_id="7", submitted_at=at("01:00"))
    other = new_job(batch_id="7", submitted_at=at("03:00"), owner="bob", project="BIO3")

    assert f'href="/jobs/{other.pk}/"' not in text_of(as_alice.get(f"/jobs/{mine.pk}/"))


def test_a_launch_has_an_rpc_report(page, account, logs, ingest):
    job = account(Run("1", nodes="n[1-2]", node_count=2))
    Launch.objects.create(
        cluster=job.cluster,
        job=job,
        name="9205593",
        started_at=at("12:00"),
        ended_at=at("12:30"),
        nodes="n1",
        node_count=1,
    )
    trace = [rpc("12:05:00", "1@gni"), rpc("12:05:01", "2@gni"), rpc("12:05:02", "1@gni")]
    ingest("rpctrace", logs("mds1.log", *trace), server="mds1")

    words = words_of(page(job, "?launch=9205593"))
    assert "Metadata RPCs of launch 9205593" in words
    assert "2 RPCs from 1 of 1 nodes in 2 s of trace" in words
    assert "3 RPCs from 2 of 2 nodes" in words_of(page(job))


def test_hostile_launch_names_are_escaped(page, new_job):
    job = new_job()
    Launch.objects.create(cluster=job.cluster, job=job, name="1", command="<img src=x>\x07")

    assert "&lt;img src=x&gt;\\x07" in text_of(page(job))


def test_launches_need_no_further_queries(page, new_job, django_assert_num_queries):
    job = new_job({})
    Launch.objects.create(cluster=job.cluster, job=job, name="0")
    page(job)
    with django_assert_num_queries(27):
        page(job)
    for number in range(1, 20):
        Launch.objects.create(cluster=job.cluster, job=job, name=str(number))
    with django_assert_num_queries(27):
        page(job)
