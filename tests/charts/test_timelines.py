from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from ioportal.analysis.timelines import Steps
from ioportal.charts.palette import SERIES
from ioportal.charts.time_axis import Mark, Meaning, TimeAxis
from ioportal.charts.timelines import Chart, Style, figure, nonzero_kinds

NOON = datetime(2017, 7, 5, 12, tzinfo=UTC)
LINES = Chart("x", "X", "ops/s", "About.", Style.LINES, {"open": "opens"})
STACK = Chart("x", "X", "ops/s", "About.", Style.STACK, {})


def at(minutes):
    return NOON + timedelta(minutes=minutes)


AXIS = TimeAxis(at(0), at(60), timedelta(hours=-4))


def steps(*rows, kinds=("open", "close"), sources=1):
    """Steps of (start, end, rate, rate, ...) in minutes from noon."""
    return Steps(
        pl.DataFrame(
            [(at(start), at(end), 1, *values) for start, end, *values in rows],
            schema={
                "start": pl.Datetime("us", "UTC"),
                "end": pl.Datetime("us", "UTC"),
                "observed": pl.Int64,
                **dict.fromkeys(kinds, pl.Float64),
            },
            orient="row",
        ),
        kinds,
        sources,
    )


def strings(value):
    """Every text in a figure."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def test_lines_are_steps_that_lift_the_pen_over_a_gap():
    _, opens, _ = figure(LINES, steps((0, 10, 5, 1), (10, 20, 7, 1), (30, 40, 2, 1)), AXIS)["data"]

    assert opens["name"] == "opens"
    assert opens["y"] == [5, 5, 7, 7, None, 2, 2]
    assert opens["x"][0] == "2017-07-05T08:00:00.000"  # local to the axis
    assert opens["x"][4] is None
    assert opens["connectgaps"] is False


def test_a_line_too_short_to_see_has_dots():
    drawn = figure(LINES, steps((0, 10, 5, 1), (30, 30.1, 2, 1)), AXIS)["data"]
    _, opens, _ = drawn
    _, long, _ = figure(LINES, steps((0, 10, 5, 1)), AXIS)["data"]

    assert (opens["mode"], long["mode"]) == ("lines+markers", "lines")
    assert opens["marker"]["size"] == [0, 0, 0, 6, 6]


@pytest.mark.parametrize(
    ("minutes", "apart"),
    [
        pytest.param(60, timedelta(minutes=10), id="an hour"),
        pytest.param(0.01, timedelta(milliseconds=100), id="0.6 seconds"),
        pytest.param(117, timedelta(minutes=20), id="the golden job"),
        pytest.param(60 * 24 * 365, timedelta(days=61), id="a year"),
    ],
)
def test_ticks_depend_on_the_range_alone(minutes, apart):
    axis = TimeAxis(at(0), at(minutes), timedelta(hours=-4))
    ticks = {
        style: figure(chart, steps((0, 1, 5, 1)), axis)["layout"]["xaxis"]
        for style, chart in ((Style.LINES, LINES), (Style.STACK, STACK))
    }

    assert ticks[Style.LINES] == ticks[Style.STACK]
    assert ticks[Style.LINES]["dtick"] == apart / timedelta(milliseconds=1)
    assert ticks[Style.LINES]["tick0"] == "2017-07-05"


def test_means_alone_explain_their_colours():
    alone = over_a_gap(steps((0, 40, 7, 1)), row=0)
    beside = over_a_gap(steps((0, 10, 5, 1), (10, 40, 7, 1)), row=1)

    for chart in (LINES, STACK):
        *_, mean = figure(chart, alone, AXIS)["data"]
        *_, explained = figure(chart, beside, AXIS)["data"]
        assert (mean["showlegend"], explained["showlegend"]) == (True, False)


def test_the_area_below_a_line_stops_at_a_gap():
    area = figure(LINES, steps((0, 10, 5, 1), (30, 40, 2, 1)), AXIS)["data"][0]

    assert area["y"] == [0.0, 5, 5, 0.0, None, 0.0, 2, 2, 0.0]


def over_a_gap(steps, row):
    """The same steps, of which one row is a mean between two reads far apart."""
    observed = [0 if number == row else 1 for number in range(steps.frame.height)]
    frame = steps.frame.with_columns(observed=pl.Series(observed, dtype=pl.Int64))
    return Steps(frame, steps.kinds, steps.sources)


def test_a_mean_over_a_gap_is_a_dotted_line_without_an_area():
    drawn = figure(LINES, over_a_gap(steps((0, 10, 5, 1), (10, 40, 7, 1)), row=1), AXIS)
    area, opens, _, mean, _ = drawn["data"]

    assert (opens["y"], mean["y"]) == ([5, 5], [7, 7])
    assert area["y"] == [0.0, 5, 5, 0.0]
    assert mean["name"] == "opens, mean over a gap"
    assert mean["line"]["dash"] != opens["line"]["dash"]
    assert mean["line"]["color"] == opens["line"]["color"]
    assert "mean over a gap" in [words["text"] for words in drawn["layout"]["annotations"]]


def test_a_mean_over_a_gap_is_a_hatched_bar():
    given = over_a_gap(steps((0, 10, 5, 1), (10, 40, 7, 1)), row=1)
    opens, _, mean, _ = figure(STACK, given, AXIS)["data"]

    assert (opens["y"], mean["y"]) == ([5], [7])
    assert mean["width"] == [1_800_000]
    assert "pattern" in mean["marker"]
    assert "pattern" not in opens["marker"]


def test_an_unknown_rate_is_not_drawn():
    _, opens, _ = figure(LINES, steps((0, 10, None, 1), (10, 20, 7, 1)), AXIS)["data"]

    assert opens["y"] == [7, 7]


def test_a_stack_has_bars_of_true_width():
    bars = figure(STACK, steps((0, 10, 5, 1), (10, 12, 7, 1)), AXIS)["data"]

    assert [bar["name"] for bar in bars] == ["open", "close"]
    assert bars[0]["width"] == [600_000, 120_000]
    assert bars[0]["offset"] == 0


def test_a_stack_names_its_largest_layers_and_adds_up_the_others():
    kinds = tuple(f"k{number}" for number in range(10))
    bars = figure(STACK, steps((0, 10, *range(1, 11)), kinds=kinds), AXIS)["data"]

    assert [bar["name"] for bar in bars] == ["k9", "k8", "k7", "k6", "k5", "k4", "k3", "other"]
    assert bars[-1]["y"] == [1 + 2 + 3]


def test_kinds_that_never_happened_are_not_shown():
    assert nonzero_kinds(steps((0, 10, 0, 3))) == ["close"]
    assert nonzero_kinds(steps()) == []


@pytest.mark.parametrize(
    ("sources", "word"),
    [
        pytest.param(1, "not observed", id="nothing was"),
        pytest.param(2, "not all were read", id="one of two was"),
    ],
)
def test_gaps_are_shaded_and_named(sources, word):
    layout = figure(LINES, steps((0, 30, 5, 1), sources=sources), AXIS)["layout"]

    assert word in [words["text"] for words in layout["annotations"]]
    assert all(shape["fillcolor"].startswith("--gap") for shape in layout["shapes"])


def test_a_narrow_gap_is_shaded_without_words():
    layout = figure(LINES, steps((0, 30, 5, 1), (31, 60, 5, 1)), AXIS)["layout"]

    assert len(layout["shapes"]) == 1
    assert layout["annotations"] == []


def test_marks_are_lines_with_words_that_cannot_be_markup():
    marks = [
        Mark(at(0), "", Meaning.RUN),
        Mark(at(10), "mds1: 2.8 → <b>2.15</b>", Meaning.BREAK),
        Mark(at(10), "mds2: 2.8 → 2.15", Meaning.BREAK),
        Mark(at(500), "beyond the range", Meaning.FAULT),
    ]
    layout = figure(LINES, steps((0, 60, 5, 1)), AXIS, marks)["layout"]
    texts = [words["text"] for words in layout["annotations"]]

    assert texts == ["mds1: 2.8 → &lt;b>2.15&lt;/b>", "mds2: 2.8 → 2.15"]
    assert [shape["line"]["dash"] for shape in layout["shapes"]] == ["dot", "dash", "dash", "dash"]


def test_every_colour_is_a_token_that_pages_know():
    page = {"--accent", "--ink-soft", "--line", "--line-strong", "--gap"}
    page |= {"--warn", "--bad", "--panel"}
    marks = [Mark(at(1), "x", meaning) for meaning in Meaning]
    drawn = figure(LINES, steps((0, 30, 5, 1)), AXIS, marks)

    tokens = {text.partition("/")[0] for text in strings(drawn) if text.startswith("--")}
    assert tokens <= page | SERIES.keys()


def test_nothing_known_gives_an_empty_shaded_plot():
    drawn = figure(LINES, steps(), AXIS)

    assert all(trace["x"] == [] for trace in drawn["data"])
    assert len(drawn["layout"]["shapes"]) == 1


def test_words_stand_above_the_plot_from_the_first_to_the_last():
    marks = [Mark(at(minute), f"{minute}", Meaning.BREAK) for minute in (50, 14)]
    words = figure(LINES, steps((0, 30, 1, 1)), AXIS, marks)["layout"]["annotations"]

    assert [word["text"] for word in words] == ["14", "not observed", "50"]
    assert {(word["y"], word["yref"], word["yanchor"]) for word in words} == {
        (1, "paper", "bottom")
    }


def test_a_stack_of_nothing_at_all_is_drawn_empty():
    nothing = Steps(steps((0, 60), kinds=()).frame, (), 1)

    assert figure(STACK, nothing, AXIS)["data"] == []


def test_shares_are_told_in_per_cent():
    share = Chart("x", "X", "share", "About.", Style.LINES, {})
    drawn = figure(share, steps((0, 10, 0.4), kinds=("failed",)), AXIS)

    assert drawn["layout"]["yaxis"]["tickformat"] == "~%"
    assert "%{y:,.4~%} share" in strings(drawn["data"])
