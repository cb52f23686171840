"""The page of `stories.heavy_job`; expected figures are computed by hand."""

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from ioportal.site.models import Cluster
from tests.logs import at
from tests.web.reading import csv_of, json_of, text_of, words_of


@pytest.fixture
def page(db, as_staff, heavy_job):
    """Fetch the page of the job, or one of its parts."""
    return lambda rest="": as_staff.get(f"/jobs/{heavy_job.pk}/{rest}")


def test_the_page_shows_user_name_nodes_and_times(page):
    words = words_of(page())

    for fact in ("3567126", "<b>relax</b>", "alice", "PHY12", "n[1-2]", "2017-07-05 12:00:00"):
        assert fact in words
    assert "<b>relax" not in text_of(page())


def test_totals_are_exact_in_titles_and_exports(page):
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
    assert "lower bounds" in words


def test_opens_are_rates_over_counting_intervals(page):
    rows = csv_of(page("timelines/opens-closes/?format=csv"))
    first = next(row for row in rows if float(row["open"]))

    assert first["start"] == "2017-07-05T12:00:00+00:00"
    assert first["end"] == "2017-07-05T12:10:00+00:00"
    assert float(first["open"]) == 100
    assert float(first["close"]) == pytest.approx(100 / 3)


def test_unobserved_time_is_a_gap_and_not_zero(page):
    twin = json_of(page("timelines/opens-closes/?format=json"))
    inside = [row for row in twin["rows"] if row["start"] == "2017-07-05T12:20:00+00:00"]

    assert twin["not_observed"][0] == {
        "start": "2017-07-05T12:20:00+00:00",
        "end": "2017-07-05T12:50:00+00:00",
        "known": "mean",
    }
    assert [row["observed_sources"] for row in inside] == [0]
    assert inside[0]["open"] == 10  # 18,000 in half an hour: only a mean is known
    assert '"opens, mean over a gap"' in text_of(page())
    assert "1,800 mean over a gap 10.0" in words_of(page())


def test_undated_totals_are_reported_but_not_drawn(page):
    twin = json_of(page("timelines/bytes/?format=json"))

    assert twin["without_a_time"] == {"read_bytes": 4_000_000}
    assert [row["read_bytes"] for row in twin["rows"] if row["read_bytes"]] == [10_000]
    assert "Not drawn: 4.00 MB read, counted before the first read of a target" in words_of(page())


def test_rpc_rates_divide_by_traced_seconds(page):
    rows = csv_of(page("timelines/rpcs/?format=csv"))
    [traced] = [row for row in rows if float(row["LDLM_ENQUEUE"])]

    assert (traced["start"], traced["end"]) == (
        "2017-07-05T12:05:00+00:00",
        "2017-07-05T12:05:10+00:00",
    )
    assert float(traced["LDLM_ENQUEUE"]) == pytest.approx(100.1, rel=0.01)


def test_service_and_queue_times_are_means_of_timed_rpcs(page):
    rows = csv_of(page("timelines/rpc-times/?format=csv"))

    assert float(rows[0]["service"]) == pytest.approx(30, abs=0.1)
    assert float(rows[0]["queue"]) == pytest.approx(10, abs=0.1)


@pytest.mark.parametrize(
    "name", ["opens-closes", "metadata", "requests", "bytes", "rpcs", "rpc-times"]
)
def test_every_chart_has_a_table_and_exports_with_equal_values(page, name):
    html = text_of(page())
    as_json = json_of(page(f"timelines/{name}/?format=json"))
    as_csv = csv_of(page(f"timelines/{name}/?format=csv"))

    assert f'id="figure-{name}" type="application/json"' in html
    assert f"/timelines/{name}/?format=csv" in html
    assert f"/timelines/{name}/?format=json" in html
    assert len(as_csv) == len(as_json["rows"]) > 0
    for csv_row, json_row in zip(as_csv, as_json["rows"], strict=True):
        assert csv_row == {k: "" if v is None else str(v) for k, v in json_row.items()}


def test_simulated_figures_are_marked(page, heavy_job):
    twins = ["rpcs/", "similar-jobs/", "timelines/rpcs/"]
    real = [json_of(page(f"{twin}?format=json"))["simulated"] for twin in twins]
    Cluster.objects.filter(pk=heavy_job.cluster_id).update(simulated=True)

    assert real == [False] * 3
    assert [json_of(page(f"{twin}?format=json"))["simulated"] for twin in twins] == [True] * 3
    assert f"Job {heavy_job} (simulated)" in text_of(page("rpcs/?format=text"))


def test_the_rpc_table_equals_the_report_of_the_command(page):
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


def test_the_range_of_the_url_applies_to_all_parts(page):
    query = "?start=2017-07-05T12:05:00Z&end=2017-07-05T12:05:05Z"
    words = words_of(page(query))
    rows = json_of(page(f"timelines/opens-closes/{query}&format=json"))["rows"]

    assert "extended to whole 10 s windows:" in words
    assert len(rows) == 1
    assert f"/timelines/opens-closes/{query.replace(':', '%3A').replace('&', '&amp;')}" in text_of(
        page(query)
    )


@pytest.mark.parametrize("name", ["opens-closes", "metadata", "rpcs", "rpc-times"])
@pytest.mark.parametrize("minutes", [1, 7, 60])
def test_an_export_has_no_rows_outside_the_range(page, name, minutes):
    start, end = at("12:05:03"), at("12:05:03") + timedelta(minutes=minutes)
    query = urlencode({"format": "json", "start": start.isoformat(), "end": end.isoformat()})
    rows = json_of(page(f"timelines/{name}/?{query}"))["rows"]

    assert rows[0]["start"] == start.isoformat()
    assert all(row["start"] < row["end"] <= end.isoformat() for row in rows)


def test_times_without_an_offset_are_in_the_zone_of_the_site(page, settings):
    settings.TIME_ZONE = "Pacific/Auckland"  # twelve hours ahead in July
    rows = csv_of(page("timelines/opens-closes/?start=2017-07-06T00:01&end=2017-07-06T00:02"))

    assert [row["start"] for row in rows] == ["2017-07-05T12:01:00+00:00"]
    assert "2017-07-06 00:00:00" in words_of(page())
    assert "Pacific/Auckland, UTC+12:00" in words_of(page())


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("?start=soon", "'soon' is not a time"),
        ("?start=2017-07-05T13:00:00Z&end=2017-07-05T12:00:00Z", "must be after its start"),
        ("?start=2017-99-99", "is not a time"),
    ],
)
def test_an_invalid_range_is_rejected_with_a_message(page, query, why):
    shown, twin = page(query), page(f"timelines/metadata/{query}")

    assert why in words_of(shown)
    assert "The whole run is shown instead" in words_of(shown)
    assert twin.status_code == 400
    assert page(f"rpcs/{query}").status_code == 400


@pytest.mark.parametrize("rest", ["timelines/nonsense/", "?launch=1", "rpcs/?launch=1"])
def test_missing_parts_of_a_job_are_not_found(page, rest):
    assert page(rest).status_code == 404


def test_a_range_without_a_trace_explains_tracing(page):
    words = words_of(page("?start=2017-07-05T12:30:00Z&end=2017-07-05T12:40:00Z"))

    assert "No trace covers this range" in words
    assert "lctl set_param debug=+rpctrace" in words


def test_only_staff_see_accounting_sources(page, client, heavy_job, alice):
    assert re.search(r"Source: Slurm sacct sacct-\d+\.log , line 2", words_of(page()))
    client.force_login(alice)

    assert "Source: SLURM" not in words_of(client.get(f"/jobs/{heavy_job.pk}/"))


def test_attribution_methods_are_listed(page):
    whole = words_of(page())
    part = words_of(page("?start=2017-07-05T12:05:00Z&end=2017-07-05T12:05:10Z"))

    own = "Attribution: {} by node, allocated to this job alone."
    assert own.format("1,001") in whole
    assert own.format("1,000") in part  # the last RPC arrived after the range


def test_traces_are_listed_by_time_and_length(page):
    words = words_of(page())

    assert "Trace 12:05:00, 10 s" in words
    assert "1,001 in 10 s of 1:00:00 traced" in words


def test_the_time_zone_is_shown_once(page, settings):
    assert "UTC, UTC+00:00" not in words_of(page())
    assert "Times are in UTC." in words_of(page())
    settings.TIME_ZONE = "America/New_York"

    assert "America/New_York, UTC-04:00" in words_of(page())
    assert "hover over a time for UTC" in words_of(page())


def test_every_metric_shows_formula_and_source(page):
    words = words_of(page())

    assert "Source: job_stats of the MDTs." in words
    assert "opens / closes" in words


def test_the_number_of_queries_is_bounded(page, django_assert_num_queries):
    with django_assert_num_queries(43):
        page()


def test_a_short_range_needs_as_many_queries_as_the_run(page, django_assert_num_queries):
    with django_assert_num_queries(43):
        page("?start=2017-07-05T12:05:00Z&end=2017-07-05T12:05:05Z")
