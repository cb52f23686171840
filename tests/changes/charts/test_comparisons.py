from datetime import UTC, datetime, timedelta
from math import log10

import numpy as np
import pytest

from ioportal.changes.charts import comparisons as charts
from ioportal.changes.charts.comparisons import Days, Distribution, Quantity, Ratio, Region, Shares
from ioportal.core.charts.palette import HUES, LOOKS, MOST_ARMS
from ioportal.core.charts.time_axis import CalendarAxis, ElapsedAxis, Mark, Meaning, layout

MIDNIGHT = datetime(2017, 7, 5, tzinfo=UTC)
AXIS = CalendarAxis(MIDNIGHT, MIDNIGHT + timedelta(days=10), UTC)
OPENS = Quantity("Opens", "operations")


def quantiles(values):
    return tuple(np.quantile(values, np.linspace(0, 1, 101)).tolist())


SKEWED = Distribution("first", quantiles(np.arange(1_001) ** 2), 333_500.0)
ZEROS = Distribution("second", quantiles([0] * 50 + [10] * 50))
HIDDEN = Distribution("third", (None,) * 30 + quantiles(np.arange(101))[30:71] + (None,) * 30)


def test_arms_differ_in_hue_dash_symbol_and_pattern():
    assert len(LOOKS) == MOST_ARMS
    for name in ("token", "dash", "symbol", "pattern"):
        assert len({getattr(look, name) for look in LOOKS}) == MOST_ARMS
    assert {look.token for look in LOOKS} <= set(HUES)


def test_a_distribution_has_a_point_for_each_known_per_cent():
    first, hidden = charts.distributions(OPENS, [SKEWED, HIDDEN])["data"]

    assert (first["x"][50], first["y"][50]) == (250_000, 50)
    assert (hidden["x"][0], hidden["y"][0], hidden["y"][-1]) == (30, 30, 70)


def test_a_logarithmic_distribution_starts_at_the_share_of_zeros():
    [line] = charts.distributions(Quantity("Opens", "operations", log=True), [ZEROS])["data"]

    assert min(line["x"]) > 0
    assert line["y"][0] == 50


def test_a_box_has_quartiles_and_whiskers_from_p5_to_p95():
    drawn = charts.boxes(OPENS, [SKEWED, HIDDEN])
    [box] = drawn["data"]  # too few values of the other arm are known

    assert [box[part][0] for part in ("lowerfence", "q1", "median", "q3", "upperfence")] == (
        pytest.approx(np.quantile(np.arange(1_001) ** 2, (0.05, 0.25, 0.5, 0.75, 0.95)))
    )
    assert box["mean"] == [333_500.0]


def test_daily_medians_have_a_band_between_the_quartiles():
    noons = [MIDNIGHT + timedelta(days=number, hours=12) for number in range(3)]
    several = Days("first", noons, [5, 6, 7], [4, 5, 6], [9, 8, 7], [10, 11, 12])
    single = Days("second", noons[:1], [5], [4], [6], [3])
    upgrade = Mark(MIDNIGHT + timedelta(days=2), "lake: MDS 2.15", Meaning.BREAK)
    drawn = charts.daily_medians(OPENS, [several, single], AXIS, [upgrade])
    band, line, lone = drawn["data"]

    assert band["y"] == [4, 5, 6, 7, 8, 9]
    assert band["x"][0] == band["x"][-1] == "2017-07-05T12:00:00.000"
    assert (line["y"], line["customdata"]) == ([5, 6, 7], [10, 11, 12])
    assert (lone["mode"], lone["marker"]["symbol"]) == ("lines+markers", LOOKS[1].symbol)
    assert [mark["text"] for mark in drawn["layout"]["meta"]["key"]] == ["lake: MDS 2.15"]


def test_periods_are_shaded_and_named():
    base = {"data": [], "layout": layout(AXIS, (), (), title="Jobs", unit="jobs", highest=3)}
    edge = MIDNIGHT + timedelta(days=4)
    drawn = charts.with_regions(
        base,
        AXIS,
        [Region("<b>", MIDNIGHT, edge, 1), Region("excluded", edge, AXIS.end, None)],
    )["layout"]

    assert [shape["fillcolor"] for shape in drawn["shapes"]] == [
        f"{LOOKS[1].token}/0.1",
        "--series-rest/0.1",
    ]
    assert [label["text"] for label in drawn["annotations"]] == ["&lt;b>", "excluded"]
    assert drawn["annotations"][0]["x"] == "2017-07-07T00:00:00.000"


def test_shares_are_per_cent_of_each_arm():
    first, second = charts.shares(
        "Share", ["open", "stat"], [Shares("a", [0.75, 0.25, 0]), Shares("b", [0.5, 0.5, 0])]
    )["data"]

    assert (first["y"], first["x"], second["x"]) == (["open", "stat"], [75, 25], [50, 50])


def test_ratios_have_bounds_and_no_point_where_unknown():
    drawn = charts.ratios(
        [
            ("Opens", [Ratio("b", 0.25, 0.2, 0.3), Ratio("c", 2, 1, 4)]),
            ("Read", [None, Ratio("c", 1.0, None, None)]),
        ],
        "a",
    )
    second, third = drawn["data"]

    assert (second["x"], second["name"]) == ([0.25], "b")
    assert second["error_x"]["array"] == pytest.approx([0.05])
    assert second["error_x"]["arrayminus"] == pytest.approx([0.05])
    assert third["error_x"]["array"] == [2, 0]
    assert second["y"][0] < third["y"][0] < third["y"][1]  # arms of a row are apart


@pytest.mark.parametrize(
    ("length", "title", "at", "dtick"),
    [
        pytest.param(timedelta(minutes=65), "Time since start (min)", 13, 20, id="an hour"),
        pytest.param(timedelta(seconds=45), "Time since start (s)", 9, 10, id="seconds"),
        pytest.param(timedelta(hours=20), "Time since start (h)", 4, 6, id="hours"),
        pytest.param(timedelta(days=6), "Time since start (d)", 1.2, 1, id="days"),
    ],
)
def test_an_elapsed_axis_counts_from_the_start(length, title, at, dtick):
    axis = ElapsedAxis.of_run(MIDNIGHT, MIDNIGHT + length)

    assert axis.attributes["title"]["text"] == title
    assert axis.attributes["dtick"] == dtick
    assert axis.place(MIDNIGHT + length / 5) == pytest.approx(at)
    assert axis.length(length / 5) == pytest.approx(at)


def test_a_share_of_a_run_is_in_per_cent():
    axis = ElapsedAxis.share_of_run(MIDNIGHT, MIDNIGHT + timedelta(minutes=80))

    assert axis.place(axis.end) == 100
    assert axis.interval_text(MIDNIGHT, MIDNIGHT + timedelta(minutes=20)) == "0 to 25 %"


@pytest.mark.parametrize("log", [False, True])
def test_a_constant_is_inside_the_frame(log):
    constant = Distribution("first", (40.0,) * 101, 40.0)
    higher = Distribution("second", (40.0,) * 50 + (90.0,) * 51, 60.0)
    for draw in (charts.distributions, charts.boxes):
        for arms in ([constant], [constant, higher]):
            low, high = draw(Quantity("Run time", "s", log=log), arms)["layout"]["xaxis"]["range"]
            assert low < (log10(40) if log else 40) < high
