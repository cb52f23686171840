from dataclasses import replace
from math import log10

import pytest

from ioportal.core.charts.palette import SERIES
from ioportal.jobs.analysis.histograms import Scale
from ioportal.jobs.charts.histograms import Bars, Chart, bounds_in_words, figure
from tests.core.charts.test_timelines import strings

BINS = ((0, 1), (1_000, 1_600), (1_600, 2_500))
LINKS = ("/jobs/?a", "/jobs/?b", "/jobs/?c")
FIRST = Bars("a week", 40, (10, 30, 0))
SECOND = Bars("<b>another", 100, (None, 50, 20))


def chart(scale=Scale.LOG, *, as_shares=False):
    return Chart("Opens", "ops", lambda value: f"{value:,}", str, scale, as_shares)


def test_a_log_scale_has_exponents_and_zeros_to_the_left():
    bars = figure(chart(), BINS, [FIRST], LINKS)["data"][0]
    zero, first, second = zip(bars["x"], bars["width"], strict=True)

    assert first == (3, pytest.approx(log10(1.6)))
    assert second[0] == pytest.approx(log10(1_600))
    assert sum(zero) < 3
    assert bars["y"] == [10, 30, 0]


def test_a_linear_scale_has_plain_values():
    bars = figure(chart(Scale.LINEAR), ((0, 50), (50, 100)), [FIRST], LINKS)["data"][0]

    assert (bars["x"], bars["width"], bars["offset"]) == ([0, 50], [50, 50], 0)


def test_shares_refer_to_the_known_values_of_each_population():
    first, second, _ = figure(chart(as_shares=True), BINS, [FIRST, SECOND], LINKS)["data"]

    assert first["y"] == [25, 75, 0]
    assert second["y"] == [None, 50, 20]


def test_each_bin_has_hover_text_and_a_link():
    hover_trace = figure(chart(), BINS, [FIRST, SECOND], LINKS)["data"][-1]

    assert hover_trace["customdata"] == list(LINKS)
    assert hover_trace["hovertext"] == [
        "<b>0</b><br>a week: n = 10 (25.0%)<br>&lt;b>another: too few to show",
        "<b>1,000 to below 1,600</b><br>a week: n = 30 (75.0%)<br>&lt;b>another: n = 50 (50.0%)",
        "<b>1,600 to below 2,500</b><br>a week: n = 0 (0.0%)<br>&lt;b>another: n = 20 (20.0%)",
    ]


def test_values_are_marked_by_lines():
    lines = {"a job": 2_000, "<b>none": 0}

    *_, job, none = figure(chart(), BINS, [FIRST], LINKS, lines)["data"]

    assert (job["name"], job["x"]) == ("a job", [pytest.approx(log10(2_000))] * 2)
    assert none["name"] == "&lt;b>none"
    assert none["x"][0] < 3


def test_hover_text_covers_the_full_height_of_a_bin():
    *_, hover_trace = figure(chart(), BINS, [FIRST], LINKS)["data"]

    assert min(hover_trace["y"]) > 30
    assert hover_trace["opacity"] == 0


def test_a_legend_needs_two_populations():
    assert not figure(chart(), BINS, [FIRST], LINKS)["layout"]["showlegend"]
    assert figure(chart(), BINS, [FIRST, SECOND], LINKS)["layout"]["showlegend"]


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
        for text in strings(figure(chart(), BINS, [FIRST, SECOND], LINKS))
        if text.startswith("--")
    }

    assert tokens <= {*SERIES, "--line", "--line-strong"}


def test_a_bin_of_one_value_is_labelled_by_the_value():
    assert bounds_in_words(str, (3, 4)) == "3"
    assert bounds_in_words(str, (3, 5)) == "3 to below 5"


def test_ticks_are_round_in_the_unit_of_the_axis():
    hours = replace(chart(), size=3_600)
    axis = figure(hours, ((2_000, 20_000), (20_000, 50_000)), [FIRST], LINKS[:2])["layout"]["xaxis"]

    assert axis["ticktext"] == ["1", "2", "5", "10"]
    assert axis["tickvals"][0] == pytest.approx(log10(3_600))
