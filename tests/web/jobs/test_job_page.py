"""The page of `stories.heavy_job`; figures are worked out by hand from what that logs."""

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from ioportal.site.models import Cluster
from tests.logs import at
from tests.web.reading import csv_of, json_of, text_of, words_of


@pytest.fixture
def page(db, as_staff, heavy_job):
    """Fetch the job's page, or the part of it at an address below."""
    return lambda rest="": as_staff.get(f"/jobs/{heavy_job.pk}/{rest}")


def test_it_says_who_what_where_and_when(page):
    words = words_of(page())

    for fact in ("3567126", "<b>relax</b>", "alice", "PHY12", "n[1-2]", "2017-07-05 12:00:00"):
        assert fact in words
    assert "<b>relax" not in text_of(page())


def test_totals_are_exact_in_titles_and_twins(page):
    facts = json_of(page("?format=json"))

    assert facts["opens"] == 90_000
    assert facts["closes"] == 30_000
    assert facts["metadata_operations"] == 120_300
    assert facts["read_bytes"] == 10_000_000
    assert facts["metadata_rpcs"] == 1_001
    assert 'title="120,300 operations">120,300</data>' in text_of(page())


def test_poor_quality_is_explained(page):
    words = words_of(page())

    assert "partial data" in words
    assert "observed in 50 % of its run" in words
    assert "the truth may be higher" in words


def test_opens_are_rates_over_the_intervals_they_were_counted_in(page):
    rows = csv_of(page("timelines/opens-closes/?format=csv"))
    first = next(row for row in rows if float(row["open"]))

    assert first["start"] == "2017-07-05T12:00:00+00:00"
    assert first["end"] == "2017-07-05T12:10:00+00:00"
    assert float(first["open"]) == 100
    assert float(first["close"]) == pytest.approx(100 / 3)


def test_what_was_not_observed_is_a_gap_and_never_zero(page):
    twin = json_of(page("timelines/opens-closes/?format=json"))
    inside = [row for row in twin["rows"] if row["start"] == "2017-07-05T12:20:00+00:00"]

    assert twin["not_observed"][0] == {
        "start": "2017-07-05T12:20:00+00:00",
        "end": "2017-07-05T12:50:00+00:00",
        "known": "mean",
    }
    assert [row["observed_sources"] for row in inside] == [0]
    assert inside[0]["open"] == 10  # 18,000 in half an hour: a mean is known, and no more
    assert '"opens, mean over a gap"' in text_of(page())
    assert "1,800 mean over a gap 10.0" in words_of(page())


def test_totals_of_unknown_duration_are_told_and_not_drawn(page):
    twin = json_of(page("timelines/bytes/?format=json"))

    assert twin["without_a_time"] == {"read_bytes": 4_000_000}
    assert [row["read_bytes"] for row in twin["rows"] if row["read_bytes"]] == [10_000]
    assert "Not drawn: 4.00 MB read, found by the first read of a target" in words_of(page())


def test_rpc_rates_divide_by_traced_seconds(page):
    rows = csv_of(page("timelines/rpcs/?format=csv"))
    [traced] = [row for row in rows if float(row["LDLM_ENQUEUE"])]

    assert (traced["start"], traced["end"]) == (
        "2017-07-05T12:05:00+00:00",
        "2017-07-05T12:05:10+00:00",
    )
    assert float(traced["LDLM_ENQUEUE"]) == pytest.approx(100.1, rel=0.01)


def test_service_and_queue_times_are_means_of_the_timed(page):
    rows = csv_of(page("timelines/rpc-times/?format=csv"))

    assert float(rows[0]["service"]) == pytest.approx(30, abs=0.1)
    assert float(rows[0]["queue"]) == pytest.approx(10, abs=0.1)


@pytest.mark.parametrize(
    "name", ["opens-closes", "metadata", "requests", "bytes", "rpcs", "rpc-times"]
)
def test_every_chart_has_a_table_and_twins_with_the_same_figures(page, name):
    html = text_of(page())
    as_json = json_of(page(f"timelines/{name}/?format=json"))
    as_csv = csv_of(page(f"timelines/{name}/?format=csv"))

    assert f'id="figure-{name}" type="application/json"' in html
    assert f"/timelines/{name}/?format=csv" in html
    assert f"/timelines/{name}/?format=json" in html
    assert len(as_csv) == len(as_json["rows"]) > 0
    for one, other in zip(as_csv, as_json["rows"], strict=True):
        assert one == {k: "" if v is None else str(v) for k, v in other.items()}


def test_simulated_figures_are_said_to_be(page, heavy_job):
    twins = ["rpcs/", "peers/", "timelines/rpcs/"]
    real = [json_of(page(f"{twin}?format=json"))["simulated"] for twin in twins]
    Cluster.objects.filter(pk=heavy_job.cluster_id).update(simulated=True)

    assert real == [False] * 3
    assert [json_of(page(f"{twin}?format=json"))["simulated"] for twin in twins] == [True] * 3
    assert f"Job {heavy_job} (simulated)" in text_of(page("rpcs/?format=text"))


def test_the_rpc_table_is_the_report_of_the_command_line(page):
    words = words_of(page())
    text = text_of(page("rpcs/?format=text"))
    rows = csv_of(page("rpcs/?format=csv"))

    assert "1,001 RPCs from 2 of 2 nodes" in words
    assert "      1001 RPCs from 2 of 2 nodes" in text
    assert text.strip().splitlines()[-1].strip() in text_of(page()).replace("&#x27;", "'")
    assert rows[0] == {
        "opcode": "LDLM_ENQUEUE",
        "count": "1000",
        "share": str(1000 / 1001),
        "per_second": "100.0",
        "service_min_us": "30",
        "service_mean_us": "30.0",
        "service_max_us": "30",
        "queue_min_us": "10",
        "queue_mean_us": "10.0",
        "queue_max_us": "10",
    }
    assert rows[1]["opcode"] == "MDS_CLOSE"
    assert rows[-1]["opcode"] == "all"


def test_a_range_in_the_address_zooms_everything(page):
    query = "?start=2017-07-05T12:05:00Z&end=2017-07-05T12:05:05Z"
    words = words_of(page(query))
    rows = json_of(page(f"timelines/opens-closes/{query}&format=json"))["rows"]

    assert "In the range shown above, widened to whole windows of 10 s:" in words
    assert len(rows) == 1
    assert f"/timelines/opens-closes/{query.replace(':', '%3A').replace('&', '&amp;')}" in text_of(
        page(query)
    )


@pytest.mark.parametrize("name", ["opens-closes", "metadata", "rpcs", "rpc-times"])
@pytest.mark.parametrize("minutes", [1, 7, 60])
def test_a_twin_has_no_row_outside_of_the_range(page, name, minutes):
    start, end = at("12:05:03"), at("12:05:03") + timedelta(minutes=minutes)
    query = urlencode({"format": "json", "start": start.isoformat(), "end": end.isoformat()})
    rows = json_of(page(f"timelines/{name}/?{query}"))["rows"]

    assert rows[0]["start"] == start.isoformat()
    assert all(row["start"] < row["end"] <= end.isoformat() for row in rows)


def test_times_without_an_offset_are_those_of_the_site(page, settings):
    settings.TIME_ZONE = "Pacific/Auckland"  # twelve hours ahead in July
    rows = csv_of(page("timelines/opens-closes/?start=2017-07-06T00:01&end=2017-07-06T00:02"))

    assert [row["start"] for row in rows] == ["2017-07-05T12:01:00+00:00"]
    assert "2017-07-06 00:00:00" in words_of(page())
    assert "Pacific/Auckland, UTC+12:00" in words_of(page())


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("?start=soon", "'soon' is not a time"),
        ("?start=2017-07-05T13:00:00Z&end=2017-07-05T12:00:00Z", "must end after it starts"),
        ("?start=2017-99-99", "is not a time"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused_in_words(page, query, why):
    shown, twin = page(query), page(f"timelines/metadata/{query}")

    assert why in words_of(shown)
    assert "The whole run is shown instead" in words_of(shown)
    assert twin.status_code == 400
    assert page(f"rpcs/{query}").status_code == 400


@pytest.mark.parametrize("rest", ["timelines/nonsense/", "?launch=1", "rpcs/?launch=1"])
def test_what_a_job_does_not_have_is_not_found(page, rest):
    assert page(rest).status_code == 404


def test_a_range_without_a_trace_says_how_to_take_one(page):
    words = words_of(page("?start=2017-07-05T12:30:00Z&end=2017-07-05T12:40:00Z"))

    assert "No trace covers this range" in words
    assert "lctl set_param debug=+rpctrace" in words


def test_staff_see_where_it_was_read_and_others_do_not(page, client, heavy_job, alice):
    assert re.search(r"Read from Slurm sacct sacct-\d+\.log , line 2", words_of(page()))
    client.force_login(alice)

    assert "Read from" not in words_of(client.get(f"/jobs/{heavy_job.pk}/"))


def test_it_is_said_how_its_rpcs_were_found(page):
    whole = words_of(page())
    part = words_of(page("?start=2017-07-05T12:05:00Z&end=2017-07-05T12:05:10Z"))

    own = "Charged to this job because {} came from nodes that it had to itself."
    assert own.format("1,001") in whole
    assert own.format("1,000") in part  # the last one came when the range was over


def test_a_trace_is_offered_by_its_time_and_length(page):
    words = words_of(page())

    assert "Trace 12:05:00, 10 s" in words
    assert "1,001 in 10 s of 1:00:00 traced" in words


def test_utc_is_said_once(page, settings):
    assert "UTC, UTC+00:00" not in words_of(page())
    assert "Times are shown in UTC." in words_of(page())
    settings.TIME_ZONE = "America/New_York"

    assert "America/New_York, UTC-04:00" in words_of(page())
    assert "hold the pointer over one for UTC" in words_of(page())


def test_every_metric_tells_its_formula_and_source(page):
    words = words_of(page())

    assert "Source: job_stats of the MDTs." in words
    assert "opens / closes" in words


def test_the_number_of_queries_is_known(page, django_assert_num_queries):
    with django_assert_num_queries(38):
        page()


def test_a_fine_range_takes_as_many_queries_as_the_whole_run(page, django_assert_num_queries):
    with django_assert_num_queries(38):
        page("?start=2017-07-05T12:05:00Z&end=2017-07-05T12:05:05Z")
