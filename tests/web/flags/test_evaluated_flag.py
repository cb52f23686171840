"""Pages with a flag that follows from ingested logs: its values, history and marks."""

import json
import re

import pytest

from ioportal.findings.flags.flag_history import flag_mark
from ioportal.findings.models import Flag
from ioportal.jobs.models import Job
from ioportal.telemetry import levels, retention
from ioportal.telemetry.coverage import Interval
from tests import loading
from tests.logs import Run, at, job_stats, sacct
from tests.web.reading import csv_of, json_of, text_of, words_of

RULE = "metadata-operations"
NAME = "<b>relax</b>\u202e"
SHOWN_NAME = "<b>relax</b>\\u202e"


@pytest.fixture(scope="module")
def heavy_flag(module_site, module_logs):
    """The flag of alice's job 77 with 2,400,000 metadata operations from 12:00 to 12:20."""
    runs = sacct(Run("77", end="12:20", name=NAME))
    loading.ingest("sacct", module_logs("jobs", runs), cluster="anvil")
    reads = []
    for minute in range(21):
        entries = {"77": {"open": 120_000 * minute}} if minute else {}
        text = job_stats("lake-MDT0000", {"977": {"open": 1}, **entries})
        reads.append(module_logs(f"read-{minute}", text, read_at=at(f"12:{minute:02d}")))
    loading.ingest("job_stats", *reads)
    return loading.evaluate()[RULE, "77"]


def test_timelines_mark_where_a_flag_reached_its_threshold(as_staff, heavy_flag):
    of_a_run = Flag.objects.get(pk=heavy_flag.pk)
    of_a_run.pk, of_a_run.rule, of_a_run.since = None, "low-cpu-efficiency", of_a_run.until
    of_a_run.save()
    page = text_of(as_staff.get(f"/jobs/{heavy_flag.job.pk}/"))

    words = {drawn["text"]: drawn["x"] for drawn in figure(page, "metadata")["annotations"]}
    # At 120,000 a minute the read at 12:17 reaches 2 million; the job ends at 12:20.
    assert words["Excessive metadata operations"] == "2017-07-05T12:17:00.000"
    assert words["Low CPU efficiency with heavy I/O (whole run)"] == "2017-07-05T12:20:00.000"
    page = text_of(as_staff.get(f"/flags/{heavy_flag.pk}/"))
    [mark] = figure(page, "evidence")["annotations"]
    assert (mark["text"], mark["x"]) == ("threshold reached", "2017-07-05T12:17:00.000")


def test_a_threshold_reached_after_the_job_is_marked_at_its_end(as_staff, heavy_flag):
    Job.objects.filter(pk=heavy_flag.job.pk).update(ended_at=at("12:16:10"))
    of_a_run = Flag.objects.get(pk=heavy_flag.pk)
    of_a_run.pk, of_a_run.rule, of_a_run.since = None, "low-cpu-efficiency", at("12:18")
    of_a_run.save()

    drawn = figure(text_of(as_staff.get(f"/jobs/{heavy_flag.job.pk}/")), "metadata")
    words = {mark["text"]: mark["x"] for mark in drawn["annotations"]}
    assert words["2 flags, counted by 12:18:00"] == "2017-07-05T12:16:10.000"
    assert drawn["xaxis"]["range"][1] == "2017-07-05T12:16:30.000"
    [mark] = figure(text_of(as_staff.get(f"/flags/{heavy_flag.pk}/")), "evidence")["annotations"]
    assert mark["text"] == "threshold reached, counted by 12:17:00"
    assert mark["x"] == "2017-07-05T12:16:10.000"
    rows = json_of(as_staff.get(f"/flags/{heavy_flag.pk}/history/?format=json"))["rows"]
    reached = next(row for row in rows if (row["amount"] or 0) >= row["threshold"])
    assert reached["end"] == "2017-07-05T12:17:00+00:00"


def test_a_mark_names_the_day_of_a_read_on_another_day():
    mark = flag_mark(at("24:00:01"), "reached", ended_at=at("23:50"))

    assert (mark.at, mark.text) == (at("23:50"), "reached, counted by 2017-07-06 00:00:01")


def figure(page, name):
    """Return the layout of a chart in a page."""
    script = re.search(rf'<script id="figure-{name}" type="application/json">(.*?)</script>', page)
    return json.loads(script[1])["layout"]


def test_the_list_shows_rule_subject_and_value(as_staff, heavy_flag):
    words = words_of(as_staff.get("/cases/"))

    assert "Excessive metadata operations" in words
    assert "user alice · jobs named <b>relax</b · lake" in words
    assert "1 flag, 1 job" in words
    assert "2,400,000 operations in total" in words
    words = words_of(as_staff.get(f"/cases/{heavy_flag.case_id}/"))
    assert f"job 77 {SHOWN_NAME} · anvil" in words
    assert "2,400,000 operations threshold 2,000,000 operations (1.20" in words


def test_the_page_shows_values_with_thresholds(as_staff, heavy_flag):
    words = words_of(as_staff.get(f"/flags/{heavy_flag.pk}/"))

    assert "Metadata operations of the job 2,400,000 operations 2,000,000 operations" in words
    assert "thresholds: rule defaults" in words
    assert "Keep software and its small files off Lustre" in words
    assert "Threshold reached 2017-07-05 12:17:00 , latest data 2017-07-05 12:20:00" in words


def test_the_history_crosses_the_threshold_at_the_finding(as_staff, heavy_flag):
    rows = csv_of(as_staff.get(f"/flags/{heavy_flag.pk}/history/?format=csv"))
    over = [row for row in rows if float(row["amount"] or 0) >= float(row["threshold"])]

    assert {row["threshold"] for row in rows} == {"2000000.0"}
    assert over[0]["end"] == "2017-07-05T12:17:00+00:00"
    assert max(float(row["amount"] or 0) for row in rows) == heavy_flag.value
    assert "figure-evidence" in text_of(as_staff.get(f"/flags/{heavy_flag.pk}/"))


def test_the_history_of_a_rate_is_by_ten_minutes(as_staff, heavy_flag):
    peak = Flag.objects.get(rule="metadata-rate", job=heavy_flag.job)
    rows = csv_of(as_staff.get(f"/flags/{peak.pk}/history/?format=csv"))

    assert max(float(row["amount"] or 0) for row in rows) == peak.value


def test_a_history_past_retention_is_not_drawn(as_staff, heavy_flag):
    retention.record_dropped(levels.IO_WINDOWS, Interval(at("00:00"), at("12:10")))

    words = words_of(as_staff.get(f"/flags/{heavy_flag.pk}/"))

    assert "No chart: the data of this time is past its retention." in words
    assert as_staff.get(f"/flags/{heavy_flag.pk}/history/").status_code == 404


def test_flags_are_shown_on_pages_of_their_jobs(as_staff, heavy_flag):
    title = "Excessive metadata operations"
    pages = {
        f"/jobs/{heavy_flag.job_id}/": title,
        "/jobs/": "badge severity-warning",
        f"/jobs/?flag={RULE}": ">77<",
        "/users/alice/": title,
        "/overview/?start=2017-07-05T12:00Z&end=2017-07-05T12:20Z": "badge severity-warning",
        "/": title,
    }

    for page, words in pages.items():
        assert words in text_of(as_staff.get(page)), page
    # in the tables of the heaviest and of the typical jobs
    assert text_of(as_staff.get("/users/alice/")).count('(open)">warning</a>') == 2
    assert ">77<" not in text_of(as_staff.get("/jobs/?flag=campaign"))
    drawn = json_of(as_staff.get(f"/jobs/{heavy_flag.job_id}/timelines/metadata/?format=json"))
    assert drawn["rows"]


def test_owners_see_their_flags_first(as_alice, heavy_flag):
    home = text_of(as_alice.get("/"))

    assert "1 flag, 1 job 2,400,000 operations in total, highest 2,400,000 operations" in (
        words_of(as_alice.get("/"))
    )
    assert home.index("badge severity-warning") < home.index("Latest jobs")
    assert '(open)">warning</a>' in home  # in the tables of jobs
