"""Overlaid timelines of jobs; expected figures come from `stories.heavy_job`."""

import json
import re
from datetime import timedelta

import pytest

from ioportal.jobs.models import Job
from tests.logs import at
from tests.web.reading import csv_of, json_of, text_of, words_of


@pytest.fixture
def later_job(heavy_job, new_job):
    """A job of bob in the same project two days later, for half as long, without counters."""
    return new_job(
        {"opens": 45_000, "metadata_operations": 60_000},
        cluster=heavy_job.cluster,
        owner="bob",
        started_at=at("12:00") + timedelta(days=2),
        ended_at=at("12:30") + timedelta(days=2),
    )


@pytest.fixture
def cluster(heavy_job):
    """The cluster of the heavy job."""
    return heavy_job.cluster


def figure_of(page, name):
    [text] = re.findall(
        rf'<script id="{name}" type="application/json">(.*?)</script>', text_of(page)
    )
    return json.loads(text)


def test_rates_are_aligned_at_the_start_of_each_job(as_staff, heavy_job, later_job):
    page = as_staff.get(f"/compare/jobs/?job={heavy_job.pk}&job={later_job.pk}")
    drawn = figure_of(page, "figure-overlay-opens")
    first = drawn["data"][0]

    assert first["name"] == "3567126, 5 Jul 2017"
    assert first["y"][:3] == [100, 100, 100]  # 60,000 opens in ten minutes
    assert first["x"][1] == pytest.approx(5)  # minutes: the middle of the first step
    assert drawn["layout"]["xaxis"]["range"] == [0, 60]
    assert drawn["layout"]["xaxis"]["title"]["text"] == "Time since start (min)"


def test_runs_of_any_length_are_aligned_by_their_share(as_staff, heavy_job, later_job):
    page = as_staff.get(f"/compare/jobs/?job={later_job.pk}&job={heavy_job.pk}&align=share")
    overlay = figure_of(page, "figure-overlay-metadata")
    panel = figure_of(page, f"figure-job-{heavy_job.pk}")

    assert overlay["layout"]["xaxis"]["range"] == [0, 100]
    assert panel["layout"]["xaxis"]["title"]["text"] == "Share of the run (%)"


def test_rates_are_shown_per_node_on_a_logarithmic_scale(as_staff, heavy_job):
    Job.objects.filter(pk=heavy_job.pk).update(node_count=4)
    page = as_staff.get(f"/compare/jobs/?job={heavy_job.pk}&per=node&scale=log")
    drawn = figure_of(page, "figure-overlay-opens")
    export = json_of(as_staff.get(f"/compare/jobs/opens/?job={heavy_job.pk}&per=node&format=json"))

    assert drawn["data"][0]["y"][0] == 25
    assert drawn["layout"]["yaxis"]["type"] == "log"
    assert f"?job={heavy_job.pk}&amp;per=job&amp;scale=log" in text_of(page)
    assert (export["unit"], export["rows"][0]["per_second"]) == ("ops/s per node", 25)


def test_rates_per_node_need_the_number_of_nodes(as_staff, heavy_job):
    Job.objects.filter(pk=heavy_job.pk).update(node_count=0)
    page = words_of(as_staff.get(f"/compare/jobs/?job={heavy_job.pk}&per=node"))

    assert "The number of nodes is unknown: 3567126." in page


def test_a_table_has_the_ratios_to_the_first_job(as_staff, heavy_job, later_job):
    words = words_of(as_staff.get(f"/compare/jobs/?job={heavy_job.pk}&job={later_job.pk}"))

    assert "Opens 90,000 45,000 (0.50\u00d7)" in words
    assert "Not observed: data is missing, not zero." not in words


@pytest.mark.parametrize("form", ["csv", "json"])
def test_exports_have_times_since_the_start(as_staff, heavy_job, form):
    answer = as_staff.get(f"/compare/jobs/opens/?job={heavy_job.pk}&format={form}")
    first = (csv_of(answer) if form == "csv" else json_of(answer)["rows"])[0]

    assert {name: float(first[name]) for name in ("start_s", "end_s", "end_share")} == {
        "start_s": 0,
        "end_s": 600,
        "end_share": pytest.approx(1 / 6),
    }
    assert float(first["per_second"]) == 100
    assert first["job"] == "3567126"


@pytest.mark.parametrize(
    "added", ["3567126", "/jobs/{key}/", "https://io.example.org/jobs/{key}/?start=x#range"]
)
def test_a_job_is_added_by_its_id_or_url(as_staff, heavy_job, later_job, added):
    text = added.format(key=heavy_job.pk)
    answer = as_staff.get("/compare/jobs/", {"job": later_job.pk, "add": text})

    assert answer.url == f"/compare/jobs/?job={later_job.pk}&job={heavy_job.pk}"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("job=999999", "No visible job has the key '999999'."),
        ("job=-1&job=%00", "No visible job has the key '-1', '\\x00'."),
        ("job=99999999999999999999999", "No visible job has the key"),
        ("job=%D9%A1", "No visible job has the key"),
        ("add=%00%3Cb%3E", "No visible job"),
        ("align=odd", "'odd' is not one of elapsed, share."),
        ("job=901&job=902&job=903&job=904&job=905", "Only the first 4 are shown."),
    ],
)
def test_hostile_urls_are_explained(as_staff, heavy_job, query, message):
    page = as_staff.get(f"/compare/jobs/?{query}")

    assert message in words_of(page)
    assert "No jobs selected" in words_of(page)
    if "add=" not in query:
        assert as_staff.get(f"/compare/jobs/opens/?{query}&format=json").status_code == 400


def test_jobs_of_others_do_not_exist(client, charlie, alice, heavy_job, later_job):
    address = f"/compare/jobs/?job={heavy_job.pk}"
    client.force_login(charlie)
    assert "No visible job has the key" in words_of(client.get(address))
    assert "No visible job 3567126" in words_of(client.get("/compare/jobs/?add=3567126"))
    client.force_login(alice)

    assert "Opens 90,000" in words_of(client.get(address))
    assert "No visible job has the key" in words_of(
        client.get(f"/compare/jobs/?job={later_job.pk}")
    )


def test_a_job_that_waits_has_no_timeline(as_staff, new_job):
    waiting = new_job(started_at=None)
    page = words_of(as_staff.get(f"/compare/jobs/?job={waiting.pk}"))

    assert f"Not started yet: {waiting.batch_id}." in page


def test_the_number_of_queries_grows_with_the_jobs_only(
    as_staff, heavy_job, later_job, django_assert_num_queries
):
    with django_assert_num_queries(12):
        as_staff.get(f"/compare/jobs/?job={heavy_job.pk}")
    with django_assert_num_queries(19):
        as_staff.get(f"/compare/jobs/?job={heavy_job.pk}&job={later_job.pk}")
