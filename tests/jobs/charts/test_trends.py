from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from ioportal.core.charts.palette import SERIES
from ioportal.core.charts.time_axis import CalendarAxis, Mark, Meaning, drawn_unit
from ioportal.core.charts.timelines import Chart, Style
from ioportal.core.timelines import Gap, Known
from ioportal.core.units import Unit
from ioportal.jobs.analysis.trends import Step, buckets
from ioportal.jobs.charts.trends import figure

HOUR_MS = 3_600_000
START = datetime(2017, 7, 5, 6, tzinfo=UTC)
DAYS = buckets(START, START + timedelta(days=3), Step.DAY, ZoneInfo("America/New_York"))
BARS = Chart("x", "X", "jobs", "About.", Style.STACK, {"completed": "completed", "failed": "bad"})
LINES = Chart("x", "X", "ops", "About.", Style.LINES, {"median": "median", "p90": "p90"})
FEW = pl.DataFrame({"completed": [5, 0, 2, 1], "failed": [0, 0, 0, 0]})
SPREAD = pl.DataFrame(
    {"n": [9, None, 3, 4], "median": [1.0, None, 4, 9e5], "p90": [2.0, None, 5, 2e6]}
)


def test_bars_cover_days_in_local_time():
    [bars] = figure(BARS, FEW, DAYS)["data"]
    hours = [length / 3_600_000 / 0.88 for length in bars["width"]]

    assert bars["x"][0] == "2017-07-05T02:00:00.000"
    assert bars["x"][1:] == [f"2017-07-0{day}T00:00:00.000" for day in (6, 7, 8)]
    assert hours == pytest.approx([22, 24, 24, 2])  # the range cuts the first and the last
    assert bars["y"] == [5, 0, 2, 1]
    assert bars["marker"]["color"] in SERIES
    assert bars["name"] == "completed"  # zero counts are not part of the stack


def test_lines_have_gaps_and_numbers_of_jobs():
    median, p90 = figure(LINES, SPREAD, DAYS)["data"]

    assert median["y"] == [1, None, 4, 9e5]
    assert not median["connectgaps"]
    assert median["customdata"] == [9, None, 3, 4]
    assert median["line"]["dash"] != p90["line"]["dash"]  # colour is not the only distinction


def test_upgrades_are_lines_and_gaps_are_shaded():
    upgrade = Mark(START + timedelta(days=1), "lake: MDS 2.15", Meaning.BREAK)
    gap = Gap(START, START + timedelta(days=1), Known.NOTHING)
    layout = figure(LINES, SPREAD, DAYS, [upgrade], [gap])["layout"]

    assert [shape["type"] for shape in layout["shapes"]] == ["rect", "line"]
    assert layout["shapes"][1]["x0"] == "2017-07-06T02:00:00.000"
    assert {label["text"] for label in layout["annotations"]} == {"1", "not observed"}


@pytest.mark.parametrize(
    ("days", "first", "distance"),
    [
        (3, "2000-01-01", 12 * HOUR_MS),
        (6, "2000-01-01", 24 * HOUR_MS),
        (30, "2000-01-03", 7 * 24 * HOUR_MS),
        (120, "2000-01-01", "M1"),
        (365, "2000-01-01", "M3"),
        (3_650, "2000-01-01", "M24"),
        (36_500, "2000-01-01", "M120"),
    ],
)
def test_ticks_are_starts_of_days_weeks_or_months(days, first, distance):
    axis = CalendarAxis(START, START + timedelta(days=days), UTC)

    assert axis.ticks == {"tick0": first, "dtick": distance}


@pytest.mark.parametrize(("rows", "ticks"), [(3, [1, 2, 5]), (4, [1, 10, 100])])
def test_ticks_of_a_log_axis_depend_on_the_range_of_values(rows, ticks):
    axis = figure(LINES, SPREAD.head(rows), DAYS, log=True)["layout"]["yaxis"]

    assert (axis["type"], axis["tickvals"][: len(ticks)]) == ("log", ticks)


@pytest.mark.parametrize(
    ("unit", "highest", "drawn"),
    [
        (Unit.SECONDS, 6_300, (60, "minutes")),
        (Unit.SECONDS, 40, (1, "s")),
        (Unit.SECONDS, 86_400, (3_600, "hours")),
        (Unit.SHARE, 0.3, (0.01, "%")),
        (Unit.MICROSECONDS, 4_983, (1_000, "ms")),
        (Unit.BYTES, 4_983, (1, "bytes")),
    ],
)
def test_large_values_have_larger_units(unit, highest, drawn):
    assert drawn_unit(unit, highest) == drawn
