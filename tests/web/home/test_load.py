"""The home page of a site with data: load, silent sources and pending work."""

import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from ioportal.alerts import tasks
from ioportal.ingest.models import DirtyDeltas, Segment
from ioportal.jobs.tasks import refresh_statistics
from ioportal.site.models import Filesystem, Source
from ioportal.telemetry.models import StageFailure, StageRun
from tests import loading
from tests.logs import Run, at, job_stats, sacct
from tests.web.reading import csv_of, json_of, text_of, words_of


@pytest.fixture(scope="module")
def busy(module_site, module_logs):
    """Job 77 of alice opens a hundred times more than a process outside jobs, 12:00 to 13:00.

    pond-MDT0000 has no reads after 12:10.
    """
    loading.ingest(
        "sacct",
        module_logs("jobs.txt", sacct(Run("77", nodes="n1", node_count=1))),
        cluster="anvil",
    )
    reads = []
    for number, clock in enumerate(("12:00", "12:10", "12:20", "12:30", "12:40", "12:50")):
        entries = {"login1.bash": {"open": 60 * number}, "77": {"open": 6_000 * number}}
        text = job_stats("lake-MDT0000", entries)
        reads.append(module_logs(f"lake-{clock}", text, read_at=at(clock)))
        if clock < "12:20":
            text = job_stats("pond-MDT0000", {"x.0": {"open": 5}})
            reads.append(module_logs(f"pond-{clock}", text, read_at=at(clock)))
    loading.ingest("job_stats", *reads)
    refresh_statistics()


def test_staff_see_the_load_by_user_and_process(as_staff, busy):
    rows = csv_of(as_staff.get("/load/?format=csv&last=1h"))

    assert [(row["kind"], row["name"]) for row in rows] == [
        ("job", "alice"),
        ("process", "login1.bash"),
    ]
    assert [float(row["metadata_operations"]) for row in rows] == [30_000, 300]
    assert 'href="/users/alice/"' in text_of(as_staff.get("/"))
    assert "process login1.bash" in words_of(as_staff.get("/"))


def test_poll_intervals_count_in_proportion_to_their_part_in_the_range(as_staff, busy):
    """As in the overview, which has the same operations."""
    between = "start=2017-07-05T12:25:00Z&end=2017-07-05T12:28:00Z"
    rows = csv_of(as_staff.get(f"/load/?format=csv&{between}"))

    assert [float(row["metadata_operations"]) for row in rows] == [1_800, 18]
    assert [float(row["per_second"]) for row in rows] == [10, 0.1]


def test_a_storm_of_a_minute_is_visible_in_six_hours(as_staff, busy, logs, ingest):
    ingest("job_stats", logs("lake", job_stats("lake-MDT0000", {}), read_at=at("12:51:20")))
    for clock, opens in (("11:30:15", 0), ("11:31:15", 6_000), ("11:32:15", 6_060)):
        text = job_stats("pond-MDT0000", {"x.0": {"open": opens}})
        ingest("job_stats", logs(f"storm-{clock}", text, read_at=at(clock)))

    page = text_of(as_staff.get("/"))

    figure = json.loads(re.search('id="figure-load"[^>]*>(.*?)</script>', page)[1])
    bars = next(trace for trace in figure["data"] if trace.get("name") == "process x.0")
    highest = max(range(len(bars["y"])), key=bars["y"].__getitem__)
    assert bars["y"][highest] == pytest.approx(100)
    # From the read at 11:30:15 to the end of the minute: bins are on the clock.
    assert (bars["x"][highest], bars["width"][highest]) == ("2017-07-05T11:30:37.500", 45_000)
    assert "1-minute means" in page


def test_long_ranges_are_refused(as_staff, busy):
    week = "start=2017-07-01T00:00:00Z&end=2017-07-08T00:00:00Z"

    assert "longer than 24 hours" in words_of(as_staff.get(f"/?{week}"))
    assert as_staff.get(f"/load/?{week}&format=json").status_code == 400


def test_pending_time_does_not_count_as_idle(as_staff, busy):
    segment = Segment.objects.filter(targets__name="lake-MDT0000").latest("pk")
    lake = Filesystem.objects.get(name="lake")
    span = {"start": at("11:00"), "end": at("13:00")}
    DirtyDeltas.objects.create(segment=segment, filesystem=lake, **span)

    about = json_of(as_staff.get("/load/?format=json&last=1h"))

    assert about["pending_s"] == 3_600
    # pond-MDT0000 was observed from 12:00 to 12:10, without operations.
    assert about["attributed_s"] == 600
    page = text_of(as_staff.get("/?last=1h"))
    assert "pending attribution" in page


def test_silent_sources_are_listed(as_staff, busy):
    words = words_of(as_staff.get("/"))

    assert "1 of 2: pond-MDT0000 since 2017-07-05 12:10:00 (expected within 0:20:00)" in words


def test_data_of_agents_is_expected_by_their_interval(as_staff, busy):
    lake = Filesystem.objects.get(name="lake")
    Source.objects.create(name="lake jobs", format="job_stats", filesystem=lake, poll_interval_s=60)

    words = words_of(as_staff.get("/"))

    assert words.count("(expected within 0:03:00)") == 1


def test_failing_stages_are_named(as_staff, busy):
    StageFailure.objects.record("evaluation", ValueError("no"))

    words = words_of(as_staff.get("/now/"))

    assert "Evaluation fails since" in words
    assert StageFailure.objects.get().remedy in words


def test_tasks_that_stand_still_are_named(as_staff, busy):
    tasks.plan_mails()
    tasks.send_mails()
    assert "Start ioportal" not in words_of(as_staff.get("/now/"))
    StageRun.objects.update(finished_at=timezone.now() - timedelta(minutes=11))

    words = words_of(as_staff.get("/now/"))

    assert "Mail planning fails since" in words
    assert "Start ioportal-beat and ioportal-outward-worker" in words


def test_old_data_is_marked_with_its_age(as_staff, busy):
    page = text_of(as_staff.get("/"))

    assert 'class="late"' in page
    years = timezone.now().year - 2017
    assert f"{years}\xa0years" in page or f"{years - 1}\xa0years" in page


def test_pending_work_is_counted(as_staff, busy, logs, ingest):
    text = job_stats("lake-MDT0000", {"99999": {"open": 1}})
    ingest("job_stats", logs("pending", text), at=at("13:00").isoformat())

    assert "Pending job ids 1 Unregistered NIDs 0 Files with rejected lines 0" in words_of(
        as_staff.get("/")
    )


def test_the_number_of_queries_does_not_grow_with_the_jobs(
    as_staff, busy, django_assert_num_queries, logs, ingest, refresh
):
    with django_assert_num_queries(33):
        as_staff.get("/")
    runs = [Run(str(number), nodes="n2", node_count=1) for number in range(100, 130)]
    ingest("sacct", logs("more.txt", sacct(*runs)), cluster="anvil")
    refresh()
    with django_assert_num_queries(33):
        as_staff.get("/")
    with django_assert_num_queries(24):
        as_staff.get("/now/")
