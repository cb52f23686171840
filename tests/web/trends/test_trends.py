"""Trends of jobs; expected figures are computed by hand."""

from datetime import timedelta

import pytest
from django.core.cache import cache

from ioportal.jobs.models import JobStatistics
from ioportal.site.models import Filesystem, Server, ServerVersion, Target
from ioportal.telemetry.models import Coverage
from tests.logs import DAY as DAY0
from tests.logs import at
from tests.web.reading import csv_of, json_of, text_of, words_of

DAY = timedelta(days=1)


@pytest.fixture
def rows(as_staff):
    """Return the rows of a trend's CSV export, with numbers."""

    def run(name, **query):
        exported = csv_of(as_staff.get(f"/trends/{name}/", {"format": "csv", **query}))
        return [
            {k: v if k == "bucket" else v and float(v) for k, v in row.items() if k not in TIMES}
            for row in exported
        ]

    return run


TIMES = ("start", "end")
HOURS = {"step": "hour", "start": "2017-07-05T12:00Z", "end": "2017-07-05T15:00Z"}


def test_jobs_are_counted_by_outcome_and_local_time(rows, new_job, settings):
    settings.TIME_ZONE = "America/New_York"
    for state in ("completed", "completed", "node_fail", "out_of_memory", "timeout", "preempted"):
        new_job(state=state, ended_at=at("23:30"))
    new_job(state="completed", ended_at=at("23:30") + timedelta(hours=5))  # July 6th there
    new_job(state="running", ended_at=None)

    first, second = rows("jobs-ended", step="day")

    assert first == {
        "bucket": "Wed 2017-07-05",
        "completed": 2,
        "failed": 2,
        "timeout": 1,
        "cancelled": 1,
        "other": 0,
    }
    assert (second["bucket"], second["completed"]) == ("Thu 2017-07-06", 1)


def test_running_jobs_are_counted_at_all_times(rows, new_job):
    new_job(started_at=at("11:00"), ended_at=at("13:30"), node_count=10, core_count=160)
    new_job(started_at=at("12:30"), ended_at=at("13:00"), node_count=4, core_count=64)
    new_job(started_at=at("13:00"), ended_at=at("13:00"), node_count=1_000)  # without duration

    jobs = rows("running-jobs", **HOURS)
    nodes = rows("nodes-in-use", **HOURS)

    assert [row["jobs_mean"] for row in jobs] == [1.5, 0.5, 0]
    assert [row["jobs_peak"] for row in jobs] == [2, 1, 0]
    assert [row["nodes_mean"] for row in nodes] == [12, 5, 0]
    assert [row["nodes_peak"] for row in nodes] == [14, 10, 0]
    assert [row["node_hours"] for row in rows("node-hours", **HOURS)] == [12, 5, 0]
    assert [row["core_hours"] for row in rows("core-hours", **HOURS)] == [192, 80, 0]


def test_a_running_job_counts_until_its_statistics_end(rows, new_job):
    new_job({"duration_s": 5_400}, started_at=at("12:00"), ended_at=None, state="running")
    new_job(None, started_at=at("14:00"), ended_at=None, state="running")

    assert [row["jobs_mean"] for row in rows("running-jobs", **HOURS)] == [1, 0.5, 0]


def test_a_metric_has_median_and_p90_by_start(rows, new_job):
    for opens in range(11):
        new_job({"opens": opens}, started_at=at("12:10"))
    new_job({"opens": None}, started_at=at("12:10"))
    new_job({"opens": 70}, started_at=at("14:10"))

    assert rows("opens", **HOURS) == [
        {"bucket": "2017-07-05 12:00", "n": 11, "median": 5, "p90": 9},
        {"bucket": "2017-07-05 13:00", "n": "", "median": "", "p90": ""},  # unknown, not zero
        {"bucket": "2017-07-05 14:00", "n": 1, "median": 70, "p90": 70},
    ]


def test_poor_data_is_excluded_unless_selected(rows, new_job):
    new_job({"opens": 1, "duration_s": 60, "quality": "poor"})

    assert [row["n"] for row in rows("opens", **HOURS)] == ["", "", ""]
    assert [row["n"] for row in rows("opens", quality="poor", **HOURS)] == [1, "", ""]
    assert [row["n"] for row in rows("duration_s", **HOURS)] == [1, "", ""]  # known from accounting


def test_poor_bytes_are_excluded_from_byte_metrics_only(rows, new_job):
    figures = {"opens": 1, "read_bytes": 5}
    new_job({**figures, "quality": "good", "bytes_quality": "poor"})
    new_job({**figures, "quality": "poor", "bytes_quality": "poor"})
    new_job({**figures, "quality": "good", "bytes_quality": None})

    assert [row["n"] for row in rows("read_bytes", **HOURS)] == [1, "", ""]
    assert [row["n"] for row in rows("read_bytes", quality="good", **HOURS)] == [1, "", ""]
    assert [row["n"] for row in rows("read_bytes", quality="poor", **HOURS)] == [1, "", ""]
    assert [row["n"] for row in rows("opens", **HOURS)] == [2, "", ""]


def test_all_filters_select_jobs(rows, new_job):
    new_job(owner="bob")
    new_job(owner="alice")

    assert sum(row["completed"] for row in rows("jobs-ended", user="bob")) == 1


@pytest.fixture
def lake(db):
    """A filesystem with some reads of its MDT, and an upgraded server."""
    lake = Filesystem.objects.create(name="lake")
    mds = Server.objects.create(name="mds1", filesystem=lake, kind=Server.Kind.MDS)
    for version, since in (("2.12.5", DAY0), ("2.12.5", at("13:00")), ("2.15.3", at("14:00"))):
        ServerVersion.objects.create(server=mds, version=version, since=since)
    mdt = Target.objects.create(name="lake-MDT0000", filesystem=lake, kind=Target.Kind.MDT)
    for clock in ("12:00", "12:15", "12:30", "14:30", "14:45"):
        Coverage.objects.create(
            source="job_stats", source_id=mdt.pk, start=at(clock), end=at(clock), segment_id=1
        )


def test_upgrades_and_gaps_are_drawn(as_staff, lake, new_job, settings):
    settings.POLL_GAP = timedelta(minutes=20)
    new_job({"opens": 5}, started_at=at("12:00"), ended_at=at("15:00"))

    twin = json_of(as_staff.get("/trends/opens/", {"format": "json", **HOURS}))

    upgrade = "lake: MDS 2.15.3 (counts other requests as opens)"
    assert twin["upgrades"] == [{"at": "2017-07-05T14:00:00+00:00", "what": upgrade}]
    assert twin["not_observed"] == [
        {
            "start": "2017-07-05T12:40:00+00:00",
            "end": "2017-07-05T14:20:00+00:00",
            "known": "nothing",
        }
    ]
    assert "lake: MDS 2.15.3" in text_of(as_staff.get("/trends/", HOURS))


@pytest.mark.parametrize(
    ("days", "step"), [(2, "hour"), (60, "day"), (500, "week"), (2_000, "month")]
)
def test_the_whole_time_has_suitable_buckets(as_staff, new_job, days, step):
    new_job(started_at=at("12:00") - days * DAY, ended_at=at("13:00") - days * DAY)
    new_job()

    assert f"by {step} in UTC" in words_of(as_staff.get("/trends/?last=all"))


def test_a_step_too_short_for_the_period_is_replaced(as_staff, new_job):
    new_job(started_at=at("12:00") - 300 * DAY)
    new_job()

    page = as_staff.get("/trends/?metric=opens&step=hour")

    assert "More than 400 steps by hour. Longer steps are used." in words_of(page)
    assert 'href="/trends/opens/?step=day&amp;format=csv"' in text_of(page)
    assert as_staff.get("/trends/opens/?step=hour&format=csv").status_code == 400


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("metric=joy", "Unknown metric 'joy'. Ignored."),
        ("step=fortnight", "Unknown step 'fortnight'"),
        ("start=2017-07-05&end=2017-07-04", "Invalid filter"),
        (
            "end=2017-07-05T12:00:00Z&start=1960-01-01T00:00:00Z",
            "Ran after '1960-01-01T00:00:00Z': Ensure",
        ),
        ("nodes_min=many", "Invalid filter"),
        ("user=nobody", "No jobs match"),
    ],
)
def test_invalid_parameters_are_reported(as_staff, new_job, query, words):
    new_job(started_at=at("11:00"))

    assert words in words_of(as_staff.get(f"/trends/?{query}"))


def test_metrics_of_the_url_are_drawn_and_exports_preserve_filters(as_staff, new_job):
    new_job({"opens": 5})

    page = text_of(as_staff.get("/trends/?metric=opens&user=alice&step=day"))

    assert 'data-plot="figure-opens"' in page
    assert 'data-plot="figure-metadata_operations"' not in page
    assert 'href="/trends/opens/?user=alice&amp;step=day&amp;format=csv"' in page
    assert "/jobs/?user=alice&amp;start=2017-07-05T12" in page  # the jobs of a bucket


def test_users_see_trends_of_visible_jobs_only(client, new_job, charlie):
    new_job(owner="charlie", project="CHM7")
    new_job(owner="alice")
    client.force_login(charlie)

    [row] = csv_of(client.get("/trends/jobs-ended/?format=csv&step=day"))

    assert row["completed"] == "1"


def test_an_empty_page_explains_the_source_of_jobs(as_staff):
    assert "No jobs yet" in words_of(as_staff.get("/trends/"))


def test_a_job_that_never_ran_has_no_trend(as_staff, new_job):
    new_job(started_at=None, state="pending")

    assert as_staff.get("/trends/").status_code == 200


def test_the_number_of_queries_does_not_grow_with_the_jobs(
    as_staff, new_job, django_assert_num_queries
):
    new_job({"metadata_operations": 5, "duration_s": 7})
    with django_assert_num_queries(29):
        as_staff.get("/trends/")
    for day in range(30):
        new_job({"metadata_operations": day}, started_at=at("12:00") - day * DAY)
    cache.clear()
    with django_assert_num_queries(29):
        as_staff.get("/trends/")


def test_aggregates_are_cached_until_statistics_change(rows, new_job):
    new_job({"metadata_operations": 5})

    def median():
        [of_bucket] = [row["median"] for row in rows("metadata_operations") if row["n"]]
        return of_bucket

    assert median() == 5
    JobStatistics.objects.update(metadata_operations=77)
    assert median() == 5
    JobStatistics.objects.update(computed_at=at("13:00"))
    assert median() == 77
