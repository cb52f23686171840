from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from ioportal.core.charts.palette import SERIES
from ioportal.core.charts.time_axis import ElapsedAxis, Mark, Meaning, TimeAxis
from ioportal.core.charts.timelines import (
    INTERVALS,
    Chart,
    Style,
    figure,
    nonzero_kinds,
    on_common_axes,
    overlay,
)
from ioportal.core.timelines import Steps

NOON = datetime(2017, 7, 5, 12, tzinfo=UTC)
LINES = Chart("x", "X", "ops/s", "About.", Style.LINES, {"open": "opens"})
STACK = Chart("x", "X", "ops/s", "About.", Style.STACK, {})


def at(minutes):
    return NOON + timedelta(minutes=minutes)


AXIS = TimeAxis(at(0), at(60), timedelta(hours=-4))


def steps(*rows, kinds=("open", "close"), sources=1):
    """Return steps from (start, end, rate, rate, ...), in minutes from noon."""
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


def traces(*arguments):
    """Return the visible traces of a figure."""
    return [trace for trace in figure(*arguments)["data"] if trace.get("meta") != INTERVALS]


def strings(value):
    """Yield all strings of a figure."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def test_lines_are_steps_interrupted_by_gaps():
    _, opens, _ = traces(LINES, steps((0, 10, 5, 1), (10, 20, 7, 1), (30, 40, 2, 1)), AXIS)

    assert opens["name"] == "opens"
    assert opens["y"] == [5, 5, 5, 7, 7, 7, None, 2, 2, 2]
    assert opens["x"][0] == "2017-07-05T08:00:00.900"  # local to the axis
    assert opens["x"][6] is None
    assert opens["connectgaps"] is False


def test_a_very_short_line_has_dots():
    _, opens, _ = traces(LINES, steps((0, 10, 5, 1), (30, 30.1, 2, 1)), AXIS)
    _, long, _ = traces(LINES, steps((0, 10, 5, 1)), AXIS)

    assert (opens["mode"], long["mode"]) == ("lines+markers", "lines")
    assert opens["marker"]["size"] == [0, 0, 0, 0, 6, 6, 6]


@pytest.mark.parametrize(
    ("minutes", "interval"),
    [
        pytest.param(60, timedelta(minutes=10), id="an hour"),
        pytest.param(0.01, timedelta(milliseconds=100), id="0.6 seconds"),
        pytest.param(117, timedelta(minutes=20), id="the golden job"),
        pytest.param(60 * 24 * 365, timedelta(days=61), id="a year"),
    ],
)
def test_ticks_depend_only_on_the_range(minutes, interval):
    axis = TimeAxis(at(0), at(minutes), timedelta(hours=-4))
    ticks = {
        style: figure(chart, steps((0, 1, 5, 1)), axis)["layout"]["xaxis"]
        for style, chart in ((Style.LINES, LINES), (Style.STACK, STACK))
    }

    assert ticks[Style.LINES] == ticks[Style.STACK]
    assert ticks[Style.LINES]["dtick"] == interval / timedelta(milliseconds=1)
    assert ticks[Style.LINES]["tick0"] == "2017-07-05"


def test_means_have_legend_entries_only_without_observed_steps():
    means_only = over_a_gap(steps((0, 40, 7, 1)), row=0)
    mixed = over_a_gap(steps((0, 10, 5, 1), (10, 40, 7, 1)), row=1)

    for chart in (LINES, STACK):
        *_, lone_mean = traces(chart, means_only, AXIS)
        *_, mean = traces(chart, mixed, AXIS)
        assert (lone_mean["showlegend"], mean["showlegend"]) == (True, False)


def test_the_area_below_a_line_excludes_gaps():
    area = traces(LINES, steps((0, 10, 5, 1), (30, 40, 2, 1)), AXIS)[0]

    assert area["y"] == [0.0, 5, 5, 5, 0.0, None, 0.0, 2, 2, 2, 0.0]


def over_a_gap(steps, row):
    """Return the steps with one row changed to a mean between distant reads."""
    observed = [0 if number == row else 1 for number in range(steps.frame.height)]
    frame = steps.frame.with_columns(observed=pl.Series(observed, dtype=pl.Int64))
    return Steps(frame, steps.kinds, steps.sources)


def test_a_mean_over_a_gap_is_a_dotted_line_without_an_area():
    chart_figure = figure(LINES, over_a_gap(steps((0, 10, 5, 1), (10, 40, 7, 1)), row=1), AXIS)
    _, area, opens, _, mean, _ = chart_figure["data"]

    assert (opens["y"], mean["y"]) == ([5, 5, 5], [7, 7, 7])
    assert area["y"] == [0.0, 5, 5, 5, 0.0]
    assert mean["name"] == "opens, mean over a gap"
    assert mean["line"]["dash"] != opens["line"]["dash"]
    assert mean["line"]["color"] == opens["line"]["color"]
    assert "mean over a gap" in [label["text"] for label in chart_figure["layout"]["annotations"]]


def test_a_mean_over_a_gap_is_a_hatched_bar():
    mixed = over_a_gap(steps((0, 10, 5, 1), (10, 40, 7, 1)), row=1)
    opens, _, mean, _ = traces(STACK, mixed, AXIS)

    assert (opens["y"], mean["y"]) == ([5], [7])
    assert mean["width"] == [1_800_000]
    assert "pattern" in mean["marker"]
    assert "pattern" not in opens["marker"]


def test_an_unknown_rate_is_omitted():
    _, opens, _ = traces(LINES, steps((0, 10, None, 1), (10, 20, 7, 1)), AXIS)

    assert opens["y"] == [7, 7, 7]


def test_a_stack_has_bars_of_true_width():
    bars = traces(STACK, steps((0, 10, 5, 1), (10, 12, 7, 1)), AXIS)

    assert [bar["name"] for bar in bars] == ["open", "close"]
    assert bars[0]["width"] == [600_000, 120_000]
    assert bars[0]["offset"] == [-300_000, -60_000]
    assert bars[0]["x"][0] == "2017-07-05T08:05:00.000"


def test_the_smallest_layers_of_a_stack_are_summed_as_other():
    kinds = tuple(f"k{number}" for number in range(10))
    bars = traces(STACK, steps((0, 10, *range(1, 11)), kinds=kinds), AXIS)

    assert [bar["name"] for bar in bars] == ["k9", "k8", "k7", "k6", "k5", "k4", "k3", "other"]
    assert bars[-1]["y"] == [1 + 2 + 3]


def test_kinds_without_counts_are_omitted():
    assert nonzero_kinds(steps((0, 10, 0, 3))) == ["close"]
    assert nonzero_kinds(steps()) == []


@pytest.mark.parametrize(
    ("sources", "text"),
    [
        pytest.param(1, "not observed", id="no source"),
        pytest.param(2, "partly observed", id="one of two sources"),
    ],
)
def test_gaps_are_shaded_and_labelled(sources, text):
    layout = figure(LINES, steps((0, 30, 5, 1), sources=sources), AXIS)["layout"]

    assert text in [label["text"] for label in layout["annotations"]]
    assert all(shape["fillcolor"].startswith("--gap") for shape in layout["shapes"])


def test_the_future_is_not_shaded():
    axis = replace(AXIS, now=at(40))
    layout = figure(LINES, steps((0, 30, 5, 1)), axis)["layout"]

    [gap] = layout["shapes"]
    assert (gap["x0"], gap["x1"]) == (axis.place(at(30)), axis.place(at(40)))


def test_a_narrow_gap_has_no_label():
    layout = figure(LINES, steps((0, 30, 5, 1), (31, 60, 5, 1)), AXIS)["layout"]

    assert len(layout["shapes"]) == 1
    assert layout["annotations"] == []


def test_marks_are_lines_with_escaped_labels_or_numbers_in_order_of_time():
    marks = [
        Mark(at(0), "", Meaning.RUN),
        Mark(at(20), "striping", Meaning.MITIGATION),
        Mark(at(15), "counter <b>", Meaning.FAULT),
        Mark(at(10), "mds1: 2.15", Meaning.BREAK),
        Mark(at(500), "beyond the range", Meaning.FAULT),
    ]
    layout = figure(LINES, steps((0, 60, 5, 1)), AXIS, marks)["layout"]
    texts = [label["text"] for label in layout["annotations"]]

    assert texts == ["1", "counter &lt;b>", "2"]
    assert [(mark["number"], mark["at"], mark["kind"]) for mark in layout["meta"]["key"]] == [
        (1, "5 Jul 2017 08:10", "upgrade"),
        (2, "5 Jul 2017 08:20", "mitigation"),
    ]
    assert [shape["line"]["dash"] for shape in layout["shapes"]] == ["dot", *["dash"] * 4]


def test_colours_are_tokens_of_the_page_or_the_palette():
    page = {"--accent", "--ink-soft", "--line", "--line-strong", "--gap"}
    page |= {"--good", "--warn", "--bad", "--panel"}
    marks = [Mark(at(1), "x", meaning) for meaning in Meaning]
    chart_figure = figure(LINES, steps((0, 30, 5, 1)), AXIS, marks)

    tokens = {text.partition("/")[0] for text in strings(chart_figure) if text.startswith("--")}
    assert tokens <= page | SERIES.keys()


def test_missing_data_gives_an_empty_shaded_plot():
    chart_figure = figure(LINES, steps(), AXIS)

    assert all(trace["x"] == [] for trace in chart_figure["data"])
    assert len(chart_figure["layout"]["shapes"]) == 1


def test_labels_are_above_the_plot_in_order_of_time():
    marks = [Mark(at(minute), f"{minute}", Meaning.FAULT) for minute in (50, 14)]
    labels = figure(LINES, steps((0, 30, 1, 1)), AXIS, marks)["layout"]["annotations"]

    assert [label["text"] for label in labels] == ["14", "not observed", "50"]
    assert {(label["y"], label["yref"], label["yanchor"]) for label in labels} == {
        (1, "paper", "bottom")
    }


def test_a_stack_without_kinds_is_empty():
    empty = Steps(steps((0, 60), kinds=()).frame, (), 1)

    assert traces(STACK, empty, AXIS) == []


def test_shares_are_in_per_cent():
    share = Chart("x", "X", "share", "About.", Style.LINES, {})
    chart_figure = figure(share, steps((0, 10, 0.4), kinds=("failed",)), AXIS)

    assert chart_figure["layout"]["yaxis"]["tickformat"] == "~%"
    assert "%{y:,.4~%} share" in strings(chart_figure["data"])


@pytest.mark.parametrize("chart", [LINES, STACK])
def test_each_step_has_its_bounds_as_hover_text(chart):
    bounds, *_ = figure(chart, steps((0, 10, 5, 1), (10, 20 + 24 * 60, 7, 1)), AXIS)["data"]

    assert list(dict.fromkeys(bounds["hovertext"])) == [
        "08:00:00 to 08:10:00",
        "2017-07-05 08:10:00 to 2017-07-06 08:20:00",
    ]
    assert len(bounds["hovertext"]) == len(bounds["x"])


@pytest.mark.parametrize(
    ("title", "unit", "text"),
    [
        ("Metadata operations by kind", "ops/s", "Metadata operations (ops/s)"),
        ("Service and queue times of metadata RPCs", "µs", "Service and queue times (µs)"),
        ("Node-hours", "node-hours", "Node-hours"),
        ("Operations of all jobs on <b>", "", "Operations"),
    ],
)
def test_the_value_axis_names_quantity_and_unit(title, unit, text):
    chart = Chart("x", title, unit, "About.", Style.LINES, {})

    assert figure(chart, steps(), AXIS)["layout"]["yaxis"]["title"]["text"] == text


@pytest.mark.parametrize(
    ("highest_us", "drawn", "unit"),
    [(1_500, 1_500, "µs"), (15_000, 15, "ms"), (4_000_000, 4, "s")],
)
def test_long_times_are_drawn_in_larger_units(highest_us, drawn, unit):
    chart = Chart("x", "Queue time", "µs", "About.", Style.LINES, {})
    rates = steps((0, 10, highest_us), kinds=("open",))

    for drawing in (figure(chart, rates, AXIS), overlay(chart, [("1", rates, AXIS)], AXIS)):
        *_, line = drawing["data"]
        assert max(y for y in line["y"] if y is not None) == drawn
        assert line["hovertemplate"].endswith(f" {unit}")
        assert drawing["layout"]["yaxis"]["title"]["text"] == f"Queue time ({unit})"


def test_the_time_axis_names_its_clock():
    layout = figure(LINES, steps(), AXIS)["layout"]

    assert layout["xaxis"]["title"]["text"] == "Time (UTC-04:00)"


def test_runs_are_overlaid_from_their_starts():
    later = timedelta(days=3)
    first = steps((0, 10, 5), (10, 20, 7), kinds=("open",))
    second = over_a_gap(steps((0, 5, 9), (5, 40, 2), kinds=("open",)), row=1)
    moved = second.frame.with_columns(pl.col("start", "end") + later)
    longest = ElapsedAxis.of_run(at(0) + later, at(40) + later)
    own = replace(longest, start=at(0), end=at(40), origin=at(0))
    drawn = overlay(
        LINES, [("a", first, own), ("<b>", replace(second, frame=moved), longest)], longest
    )
    alone, observed, mean = drawn["data"]

    assert drawn["layout"]["xaxis"]["range"] == [0, 40]
    assert (alone["x"][1], alone["y"]) == (5, [5, 5, 5, 7, 7, 7])
    assert (observed["name"], observed["x"][1]) == ("&lt;b>", 2.5)
    assert (mean["x"][1], mean["showlegend"]) == (22.5, False)
    assert len({line["line"]["dash"] for line in drawn["data"]}) == 3


def test_several_figures_have_common_axes():
    axis = ElapsedAxis.of_run(at(0), at(120))
    short = figure(LINES, steps((0, 10, 5, 1)), replace(axis, end=at(30)))
    common = on_common_axes(short, axis, 100)["layout"]

    assert common["xaxis"]["range"] == [0, 120]
    assert common["yaxis"]["range"] == [0, 100]
    assert [shape["x1"] for shape in common["shapes"]] == [30]  # nothing is missing after the run
