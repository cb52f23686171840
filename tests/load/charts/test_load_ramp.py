"""Figures of the load ramp."""

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from ioportal.core.charts.timelines import Chart, Style
from ioportal.jobs.analysis.trends import Step, buckets
from ioportal.load.analysis.load_ramp import Bin, Cells, Interval, cells, ramp
from ioportal.load.charts import load_ramp

CHART = Chart("panda_duration_s", "Run time", "minutes", "", Style.LINES, {"median": "median"})
PILOTS = ("Concurrent pilots", "pilots")


@pytest.fixture
def over_time():
    days = buckets(
        datetime(2017, 9, 11, tzinfo=UTC), datetime(2017, 9, 14, tzinfo=UTC), Step.DAY, UTC
    )
    frame = pl.DataFrame(
        {"load": [7.0, None, 11.0], "n": [20, 0, 60], "median": [50.0, None, 51.0]}
    )
    return load_ramp.over_time(CHART, frame, days, [], PILOTS)


def test_the_load_is_an_area_behind_the_metric_with_its_own_axis(over_time):
    area, line = over_time["data"]
    layout = over_time["layout"]

    assert (area["name"], area["y"], area["fill"]) == (
        "Concurrent pilots",
        [7, None, 11],
        "tozeroy",
    )
    assert (line["y"], line["yaxis"], line["customdata"]) == ([50, None, 51], "y2", [20, 0, 60])
    assert area["x"] == line["x"]
    assert layout["yaxis"]["title"]["text"] == "Concurrent pilots"
    assert (layout["yaxis"]["side"], layout["yaxis2"]["side"]) == ("right", "left")
    assert layout["yaxis2"]["title"]["text"] == "Run time (minutes)"
    assert layout["yaxis2"]["overlaying"] == "y"


def test_points_bins_and_band_are_in_the_drawn_unit():
    points = Cells(np.array([5.0, 15.0]), np.array([3_000.0, 3_060.0]), np.array([1, 400]), 0)
    bins = [
        Bin(4, 6, 5, 30, 6, 3_000, Interval(3_000, 2_940, 3_120)),
        Bin(6, 9, 7, 30, 1, 3_600, None),
        Bin(9, 15, 15, 400, 9, 3_060, Interval(3_060, 3_000, 3_120)),
    ]

    figure = load_ramp.scatter(CHART, "PanDA <jobs>", (points, bins), 60, PILOTS)

    circles, low, high, median = figure["data"]
    assert (circles["name"], circles["x"], circles["y"]) == ("PanDA &lt;jobs>", [5, 15], [50, 51])
    assert (circles["customdata"], circles["marker"]["size"]) == ([1, 400], [3, 15])
    assert (low["x"], low["y"], high["y"]) == ([5, 15], [49, 50], [52, 52])
    assert (median["x"], median["y"]) == ([5, 7, 15], [50, 60, 51])
    axes = figure["layout"]["xaxis"], figure["layout"]["yaxis"]
    assert [axis["title"]["text"] for axis in axes] == ["Concurrent pilots", "Run time (minutes)"]
    assert [axis["range"] for axis in axes] == [[0, 15.75], [0, 63]]


def test_a_hundred_thousand_jobs_are_few_points():
    chance = np.random.default_rng(1)
    loads, values = chance.uniform(1, 20, 100_000), chance.lognormal(8, 0.4, 100_000)

    bins = ramp(loads, values, np.arange(100_000) % 30).bins
    figure = load_ramp.scatter(CHART, "jobs", (cells(loads, values), bins), 60, PILOTS)

    assert sum(len(trace["x"]) for trace in figure["data"]) < 1_700
    assert sum(figure["data"][0]["customdata"]) > 99_000


def test_a_chart_without_values_is_empty():
    nothing = Cells(np.zeros(0), np.zeros(0), np.zeros(0, dtype=int), 0)

    figure = load_ramp.scatter(CHART, "jobs", (nothing, ()), 1, PILOTS)

    assert [trace["x"] for trace in figure["data"]] == [[], [], [], []]
