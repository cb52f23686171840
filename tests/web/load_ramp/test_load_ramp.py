"""The load ramp page and its exports; expected loads are computed by hand."""

from datetime import timedelta

import pytest

from tests import untraced
from tests.logs import Run, at, rpc, sacct
from tests.web.reading import csv_of, json_of, text_of, words_of

DAYS = 20
SECOND = timedelta(seconds=1)
FIRST = at("12:00")
PERIOD = {"start": "2017-07-05T00:00Z", "end": "2017-07-25T00:00Z", "unit": "panda"}
HOURS = {"start": "2017-07-05T10:00Z", "end": "2017-07-05T13:00Z", "step": "hour"}


@pytest.fixture
def ramp(new_job, put_inside):
    """A pilot of an hour on each of ten days, then three in parallel; each with 20 PanDA jobs."""
    for day in range(DAYS):
        for _ in range(1 if day < DAYS // 2 else 3):
            start = FIRST + timedelta(days=day)
            pilot = new_job({"duration_s": 3_600}, started_at=start, node_count=4)
            first = 20 * (pilot.pk - 1) + 1
            times = {"started_at": start, "ended_at": start + timedelta(hours=1)}
            copied = {"stage_in_s": 10 + day % 9, "stage_out_s": day % 2}
            put_inside(pilot, *range(first, first + 20), **times, **copied)


@pytest.fixture
def exported(as_staff):
    """Return the export by load as JSON: conclusions and rows by metric."""

    def read(**query):
        answer = json_of(as_staff.get("/load-ramp/bins/", {"format": "json", **PERIOD, **query}))
        return (
            {each["metric"]: each["conclusion"] for each in answer.get("conclusions", ())},
            {
                metric: [row for row in answer["rows"] if row["metric"] == metric]
                for metric in {row["metric"] for row in answer["rows"]}
            },
        )

    return read


def test_the_load_of_a_job_is_the_number_of_pilots_at_its_time(exported, ramp):
    conclusions, rows = exported()

    bins = [
        (row["concurrency"], row["count"], row["days"], row["median"])
        for row in rows["panda_duration_s"]
    ]
    assert bins == [(1, 200, 10, 3_600), (3, 600, 10, 3_600)]
    assert [row["median"] for row in rows["panda_stage_in_s"]] == [13.5, 13.5]
    assert conclusions["panda_duration_s"] == (
        "Between 1.0 and 3.0 pilots at once, the median run time stayed at 1:00:00, "
        "whichever days are left out."
    )
    assert conclusions["panda_stage_in_s"].startswith(
        "Between 1.0 and 3.0 pilots at once, the median copy latency in did not visibly change: "
    )
    assert conclusions["mds_latency_us"] == "MDS latency is unknown in this period."


@pytest.mark.parametrize(
    ("query", "loads"),
    [
        pytest.param({"load": "jobs"}, ["20", "60"], id="PanDA jobs"),
        pytest.param({"load": "nodes"}, ["4.0", "12"], id="nodes of the pilots"),
        pytest.param({"unit": "jobs", "load": "nodes"}, ["4.0", "12"], id="nodes of batch jobs"),
        pytest.param({"unit": "jobs"}, ["1.0", "3.0"], id="batch jobs, too few for separate bins"),
    ],
)
def test_the_load_has_several_measures(exported, ramp, query, loads):
    conclusions, _ = exported(**query)

    metric = "duration_s" if query.get("unit") else "panda_duration_s"
    assert f"Between {loads[0]} and {loads[1]} " in conclusions[metric]


def test_a_job_alone_has_the_load_of_one_however_short_it_is(exported, new_job):
    for day in range(DAYS):
        for hour in range(0, 24, 6):
            run_s = 600 if hour < 12 else 14_400
            start = FIRST + timedelta(days=day, hours=hour - 12)
            new_job({"duration_s": run_s}, started_at=start, ended_at=start + run_s * SECOND)

    conclusions, rows = exported(unit="jobs")

    assert {row["concurrency"] for row in rows["duration_s"]} == {1}
    assert conclusions["duration_s"].startswith("No conclusion")


def test_few_days_permit_no_conclusion(exported, ramp):
    conclusions, _ = exported(start="2017-07-14T00:00Z", end="2017-07-17T00:00Z")

    assert conclusions["panda_duration_s"] == (
        "No conclusion about run time: it needs 5 days at a low and at a much higher load. "
        "Seen: from 1.00 to 3.00 pilots, 3 days."
    )


def test_the_series_has_the_load_of_the_jobs_and_the_mean_over_time(as_staff, ramp):
    rows = csv_of(as_staff.get("/load-ramp/over-time/", {"format": "csv", **PERIOD}))

    assert len(rows) == DAYS
    first, last = rows[0], rows[-1]
    assert (float(first["concurrency_mean"]), first["load_median"]) == (
        pytest.approx(1 / 24),
        "1.0",
    )
    assert (float(last["concurrency_mean"]), last["load_median"]) == (pytest.approx(3 / 24), "3.0")
    assert (last["panda_stage_in_s_n"], last["panda_stage_in_s_median"]) == ("60", "11.0")
    assert (last["mds_latency_us_n"], last["mds_latency_us_median"]) == ("0", "")


def test_latency_is_measured_or_estimated_by_hour(as_staff, site, logs, ingest):
    untraced.ingest(logs)
    long = Run("9", submit="09:00", start="10:00", end="13:00", nodes="n40")
    ingest("sacct", logs("long", sacct(long)), cluster="anvil")
    trace = "".join(f"{rpc(at(f'11:{minute:02d}'), us=(30, 40))}\n" for minute in range(10, 20))
    ingest("rpctrace", logs("trace.log", trace), server="mds1")

    rows = csv_of(as_staff.get("/load-ramp/over-time/", {"format": "csv", **HOURS}))

    assert [float(row["mds_latency_us_median"]) for row in rows[:2]] == [untraced.CALM_US, 40]
    assert float(rows[2]["mds_latency_us_median"]) > 10 * untraced.CALM_US  # the storms
    page = words_of(as_staff.get("/load-ramp/", HOURS))
    assert "No traces or service statistics" not in page


def test_only_staff_see_the_latency_of_all_users_requests(as_staff, as_alice, site, logs, ingest):
    ingest("sacct", logs("sacct", sacct(Run("9", start="10:00"))), cluster="anvil")
    ingest("rpctrace", logs("trace.log", rpc(at("11:10"), us=(30, 40)) + "\n"), server="mds1")

    def shown(client):
        answers = [
            client.get("/load-ramp/", HOURS),
            client.get("/load-ramp/bins/", {"format": "json", **HOURS}),
            client.get("/load-ramp/over-time/", {"format": "json", **HOURS}),
        ]
        texts = list(map(text_of, answers))
        assert all("duration_s" in text for text in texts)
        return ["mds_latency_us" in text for text in texts]

    assert shown(as_staff) == [True, True, True]
    assert shown(as_alice) == [False, False, False]


def test_the_page_shows_charts_conclusions_and_tables(as_staff, ramp):
    page = as_staff.get("/load-ramp/", PERIOD)

    for metric in ("panda_duration_s", "panda_stage_in_s", "panda_stage_out_s"):
        for chart in ("over-time", "scatter"):
            assert f'data-plot="{chart}-{metric}"' in text_of(page)
    words = words_of(page)
    assert "Between 1.0 and 3.0 pilots at once, the median run time" in words
    assert "1.17 to 3.00 600 10 1:00:00" in words
    assert "No traces or service statistics in this period." in words
    link = 'href="/load-ramp/?unit=panda&amp;'
    assert link in text_of(as_staff.get("/trends/", PERIOD))
    assert link in text_of(as_staff.get("/populations/", PERIOD))


def test_only_visible_jobs_count(client, bob, charlie, ramp, new_job, put_inside):
    other = new_job({}, owner="dave", project="CHM7", started_at=FIRST)
    put_inside(other, 100_000, started_at=FIRST, ended_at=FIRST + timedelta(hours=1))
    query = {"format": "csv", **PERIOD}

    client.force_login(bob)
    assert csv_of(client.get("/load-ramp/over-time/", query))[0]["load_median"] == "1.0"
    client.force_login(charlie)
    assert csv_of(client.get("/load-ramp/over-time/", query)) == []
    assert "No PanDA jobs" in words_of(client.get("/load-ramp/", PERIOD))


def test_invalid_parameters_are_reported(as_staff, ramp):
    page = words_of(as_staff.get("/load-ramp/", {**PERIOD, "load": "joy"}))
    answer = as_staff.get("/load-ramp/bins/", {"format": "csv", **PERIOD, "load": "joy"})

    assert "'joy' is not one of pilots, jobs, nodes. Ignored." in page
    assert (answer.status_code, json_of(answer)["errors"]) == (
        400,
        {"load": ["'joy' is not one of pilots, jobs, nodes. Ignored."]},
    )


def test_a_page_without_jobs_explains_their_source(as_staff):
    assert "No PanDA jobs yet" in words_of(as_staff.get("/load-ramp/?unit=panda"))
    assert "No jobs yet" in words_of(as_staff.get("/load-ramp/"))
