from math import log10

import pytest

from ioportal.analysis.histograms import Scale
from ioportal.charts.histograms import Bars, Chart, bounds_in_words, figure
from ioportal.charts.palette import SERIES
from tests.charts.test_timelines import strings

BINS = ((0, 1), (1_000, 1_600), (1_600, 2_500))
LINKS = ("/jobs/?a", "/jobs/?b", "/jobs/?c")
ONE = Bars("a week", 40, (10, 30, 0))
OTHER = Bars("<b>another", 100, (None, 50, 20))


def chart(scale=Scale.LOG, *, as_shares=False):
    return Chart(lambda value: f"{value:,}", str, scale, as_shares)


def test_a_log_scale_is_drawn_by_exponents_with_zeros_to_the_left():
    bars = figure(chart(), BINS, [ONE], LINKS)["data"][0]
    zero, first, second = zip(bars["x"], bars["width"], strict=True)

    assert first == (3, pytest.approx(log10(1.6)))
    assert second[0] == pytest.approx(log10(1_600))
    assert sum(zero) < 3
    assert bars["y"] == [10, 30, 0]


def test_a_linear_scale_is_drawn_as_it_is():
    bars = figure(chart(Scale.LINEAR), ((0, 50), (50, 100)), [ONE], LINKS)["data"][0]

    assert (bars["x"], bars["width"], bars["offset"]) == ([0, 50], [50, 50], 0)


def test_shares_are_of_the_known_values_of_each_population():
    one, other, _ = figure(chart(as_shares=True), BINS, [ONE, OTHER], LINKS)["data"]

    assert one["y"] == [25, 75, 0]
    assert other["y"] == [None, 50, 20]


def test_each_bin_says_its_bounds_and_counts_and_leads_to_its_jobs():
    pointed_at = figure(chart(), BINS, [ONE, OTHER], LINKS)["data"][-1]

    assert pointed_at["customdata"] == list(LINKS)
    assert pointed_at["hovertext"] == [
        "<b>0</b><br>a week: n = 10 (25.0%)<br>&lt;b>another: too few to be told",
        "<b>1,000 to below 1,600</b><br>a week: n = 30 (75.0%)<br>&lt;b>another: n = 50 (50.0%)",
        "<b>1,600 to below 2,500</b><br>a week: n = 0 (0.0%)<br>&lt;b>another: n = 20 (20.0%)",
    ]


def test_values_are_marked_where_they_lie():
    lines = {"a job": 2_000, "<b>none": 0}

    *_, job, none = figure(chart(), BINS, [ONE], LINKS, lines)["data"]

    assert (job["name"], job["x"]) == ("a job", [pytest.approx(log10(2_000))] * 2)
    assert none["name"] == "&lt;b>none"
    assert none["x"][0] < 3


def test_the_whole_height_of_a_bin_can_be_pointed_at():
    *_, pointed_at = figure(chart(), BINS, [ONE], LINKS)["data"]

    assert min(pointed_at["y"]) > 30
    assert pointed_at["opacity"] == 0


def test_one_population_needs_no_legend():
    assert not figure(chart(), BINS, [ONE], LINKS)["layout"]["showlegend"]
    assert figure(chart(), BINS, [ONE, OTHER], LINKS)["layout"]["showlegend"]


@pytest.mark.parametrize(
    ("scale", "bins", "ticks"),
    [
        pytest.param(Scale.LOG, ((0, 1), (1, 10**4)), ["0", "10", "100", "1000", "10000"]),
        pytest.param(Scale.LOG, ((1_000, 1_600), (1_600, 2_500)), ["1000", "2000"]),
        pytest.param(Scale.LOG, ((1, 10**10),), ["1", "1000", "1000000", "1000000000"]),
        pytest.param(Scale.LOG, ((0, 1),), ["0"]),
        pytest.param(Scale.LINEAR, ((0, 50), (50, 100)), ["0", "20", "40", "60", "80", "100"]),
        pytest.param(Scale.LINEAR, ((7, 8),), ["7", "8"]),
        pytest.param(Scale.LOG, (), []),
    ],
)
def test_ticks_are_round(scale, bins, ticks):
    bars = Bars("", 1, (1,) * len(bins))

    assert figure(chart(scale), bins, [bars], LINKS)["layout"]["xaxis"]["ticktext"] == ticks


def test_colours_are_tokens_of_the_palette():
    tokens = {
        text.partition("/")[0]
        for text in strings(figure(chart(), BINS, [ONE, OTHER], LINKS))
        if text.startswith("--")
    }

    assert tokens <= {*SERIES, "--line", "--line-strong"}


def test_a_bin_of_one_value_is_that_value():
    assert bounds_in_words(str, (3, 4)) == "3"
    assert bounds_in_words(str, (3, 5)) == "3 to below 5"
